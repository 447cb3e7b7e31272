//! Exact decimal amounts: an integer count of ten-thousandths, parsed from the digits of the JSON number without
//! binary floating point.

use std::fmt;
use std::str::FromStr;

/// No currency of ISO 4217 has more than four decimals.
const DECIMALS: usize = 4;
/// 10 to the power of [`DECIMALS`].
const UNITS_PER_ONE: i128 = 10_000;
/// Maximum digits before the decimal point. Sums of 18-digit values cannot overflow in any run.
const MAX_WHOLE_DIGITS: usize = 18;

/// Amount of one currency, in ten-thousandths of its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(i128);

/// The text is not a plain decimal number with at most 18 integer and 4 fractional digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an exact amount")]
pub struct AmountError(String);

impl FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let invalid = || AmountError(text.to_owned());
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (integer, decimals) = match digits.split_once('.') {
            Some((_, "")) => return Err(invalid()),
            Some(parts) => parts,
            None => (digits, ""),
        };
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let sized = !integer.is_empty() && integer.len() <= MAX_WHOLE_DIGITS && decimals.len() <= DECIMALS;
        if !(sized && is_digits(integer) && is_digits(decimals)) {
            return Err(invalid());
        }
        let units = integer
            .bytes()
            .chain(decimals.bytes())
            .chain(std::iter::repeat_n(b'0', DECIMALS - decimals.len()))
            .fold(0_i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
        Ok(Self(if negative { -units } else { units }))
    }
}

impl std::ops::Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl std::ops::AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::ops::Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let units = self.0.abs();
        let decimals = format!("{:04}", units % UNITS_PER_ONE);
        match decimals.trim_end_matches('0') {
            "" => write!(f, "{sign}{}", units / UNITS_PER_ONE),
            digits => write!(f, "{sign}{}.{digits:0<2}", units / UNITS_PER_ONE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact() {
        for (text, formatted) in [
            ("25.00", "25"),
            ("25.5", "25.50"),
            ("0.005", "0.005"),
            ("-0.10", "-0.10"),
            ("0", "0"),
            ("9007199254740993.01", "9007199254740993.01"),
        ] {
            assert_eq!(text.parse::<Amount>().unwrap().to_string(), formatted);
        }
    }

    #[test]
    fn tenths_sum_exactly() {
        let tenth: Amount = "0.10".parse().unwrap();
        let mut sum = Amount::default();
        for _ in 0..10 {
            sum += tenth;
        }
        assert_eq!(sum, "1".parse().unwrap());
        assert_eq!((sum - tenth - tenth).to_string(), "0.80");
    }

    #[test]
    fn inexact_amount_is_rejected() {
        for text in [
            "",
            "-",
            ".5",
            "5.",
            "1e3",
            "1.00001",
            "+1",
            "1,5",
            "NaN",
            "1234567890123456789",
            "--1",
            "1.-5",
        ] {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
    }
}
