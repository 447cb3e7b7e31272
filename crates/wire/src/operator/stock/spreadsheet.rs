//! What a spreadsheet makes of codes: texts that cannot be redeemed, and that several cards may share.

/// How a spreadsheet or an export has damaged a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("a number in scientific notation, whose digits are lost")]
    Scientific,
    #[error("an error value of a cell")]
    ErrorValue,
    #[error("the signs of a cell that is too narrow")]
    Overflow,
    #[error("a formula")]
    Formula,
    #[error("a text with the mark of a text cell (')")]
    TextMark,
    #[error("a number with decimals")]
    Decimals,
    #[error("a date")]
    Date,
    #[error("a placeholder for an empty cell")]
    Placeholder,
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

const PLACEHOLDERS: [&str; 8] = ["null", "none", "nan", "n/a", "nil", "undefined", "true", "false"];

impl Damage {
    /// What has damaged a code, PIN or serial number; `None` if it looks intact.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        if text.starts_with('=') {
            Some(Self::Formula)
        } else if text.starts_with('\'') {
            Some(Self::TextMark)
        } else if text.bytes().all(|byte| byte == b'#') {
            Some(Self::Overflow)
        } else if is_error_value(text) {
            Some(Self::ErrorValue)
        } else if is_scientific(text) {
            Some(Self::Scientific)
        } else if text
            .strip_suffix(".0")
            .is_some_and(|number| number.len() > 4 && is_digits(number))
        {
            Some(Self::Decimals)
        } else if is_month_and_number(text) {
            Some(Self::Date)
        } else if PLACEHOLDERS.contains(&&*text.to_ascii_lowercase()) {
            Some(Self::Placeholder)
        } else {
            None
        }
    }

    /// Whether no code of any brand looks so: a vendor's server must not send it either.
    #[must_use]
    pub const fn is_certain(self) -> bool {
        matches!(self, Self::Scientific | Self::ErrorValue | Self::Overflow)
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Such as `#N/A`, `#REF!`, `#DIV/0!`, also in other languages: capital letters after a number sign.
fn is_error_value(text: &str) -> bool {
    let Some(name) = text.strip_prefix('#') else {
        return false;
    };
    let name = name.strip_suffix(['!', '?']).unwrap_or(name);
    name == "DIV/0"
        || (name.chars().any(char::is_uppercase)
            && name.chars().all(|c| c.is_uppercase() || matches!(c, '/' | '_')))
}

/// Such as `6.03571E+15` or `6,03571E+15`: a digit, decimals and an exponent with its sign.
fn is_scientific(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some((mantissa, exponent)) = text.split_once(['E', 'e']) else {
        return false;
    };
    let has_exponent = exponent.strip_prefix(['+', '-']).is_some_and(is_digits);
    let (digit, decimals) = mantissa.split_once(['.', ',']).unwrap_or((mantissa, "0"));
    has_exponent && digit.len() == 1 && is_digits(digit) && is_digits(decimals)
}

/// Such as `4-Mar`, `Mar-04` or `04-Mar-26`, from codes such as `MAR4`.
fn is_month_and_number(text: &str) -> bool {
    let parts: Vec<String> = text.split('-').map(str::to_ascii_lowercase).collect();
    let is_month = |part: &str| MONTHS.contains(&part);
    let is_number = |part: &str| (1..=4).contains(&part.len()) && is_digits(part);
    match &parts[..] {
        [a, b] => (is_month(a) && is_number(b)) || (is_number(a) && is_month(b)),
        [day, month, year] => is_number(day) && is_month(month) && is_number(year),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_texts_are_told_from_codes() {
        for (text, expected) in [
            ("6.03571E+15", Damage::Scientific),
            ("6,03571E+15", Damage::Scientific),
            ("2.19E+26", Damage::Scientific),
            ("6E+15", Damage::Scientific),
            ("=\"0060357100001111\"", Damage::Formula),
            ("=A1", Damage::Formula),
            ("'0060357100002222", Damage::TextMark),
            ("#N/A", Damage::ErrorValue),
            ("#REF!", Damage::ErrorValue),
            ("#DIV/0!", Damage::ErrorValue),
            ("#NAME?", Damage::ErrorValue),
            ("#BEZUG!", Damage::ErrorValue),
            ("########", Damage::Overflow),
            ("60357100001111.0", Damage::Decimals),
            ("4-Mar", Damage::Date),
            ("Mar-04", Damage::Date),
            ("04-Mar-26", Damage::Date),
            ("NULL", Damage::Placeholder),
            ("nan", Damage::Placeholder),
        ] {
            assert_eq!(Damage::find(text), Some(expected), "{text}");
        }
        for text in [
            "GC-1",
            "0019",
            "6E15",
            "12E+15-7",
            "AB.0",
            "#1234",
            "#A1B2",
            "1.0",
            "MAR-ABCD",
            "2026-11-27",
            "A=B",
            "GC-MAR-04-1",
            "NONE-1",
            "",
        ] {
            assert_eq!(Damage::find(text), None, "{text}");
        }
    }
}
