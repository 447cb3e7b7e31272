//! Numbers as an operator reads them: separators, percent, and three significant digits of what was measured.

/// Fields with a number from 0 to 1.
const SHARES: [&str; 3] = ["share", "success_rate", "unavailable_share"];

/// Ends of the names of fields with measured values. Amounts and counts keep all their digits.
const MEASURED: [&str; 4] = ["_per_s", "_ms", "_us", "_lag_s"];

/// The digits of a field of the API for a page.
pub(crate) fn format(field: &str, digits: &str) -> String {
    let measured = || digits.parse::<f64>().ok();
    if SHARES.contains(&field)
        && let Some(share) = measured()
    {
        return format!("{} %", three_digits(share * 100.0));
    }
    if MEASURED.iter().any(|end| field.ends_with(end))
        && let Some(value) = measured()
    {
        return with_separators(&three_digits(value));
    }
    with_separators(digits)
}

/// Rounds to three significant digits; a whole number keeps all of its digits.
fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0..100.0 => 1,
        1.0..10.0 => 2,
        0.1..1.0 => 3,
        0.01..0.1 => 4,
        _ => 5,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `4,731,815.00`
fn with_separators(digits: &str) -> String {
    let end = digits.find(['.', 'e', 'E']).unwrap_or(digits.len());
    let (whole, fraction) = digits.split_at(end);
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut text = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_values_have_three_digits_and_amounts_all() {
        for (field, digits, shown) in [
            ("orders_per_s", "354.0245579755377", "354"),
            ("orders_per_s", "12.5", "12.5"),
            ("order_p99_ms", "0.012345", "0.0123"),
            ("commit_ms", "0", "0"),
            ("last_commit_us", "2097152", "2,097,152"),
            ("success_rate", "0.4152", "41.5 %"),
            ("share", "1", "100 %"),
            ("balance", "4731815.00", "4,731,815.00"),
            ("amount", "-1000.000", "-1,000.000"),
            ("quantity", "999", "999"),
            ("attempts", "1000", "1,000"),
        ] {
            assert_eq!(format(field, digits), shown, "{field}");
        }
    }
}
