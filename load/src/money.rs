//! How is an amount on the wire compared and summed exactly? As an integer count of ten-thousandths, parsed from
//! the digits of the JSON number, never through a binary fraction.

use std::fmt;
use std::str::FromStr;

/// Decimals kept. No currency of ISO 4217 has more than four, so every amount of the wire fits.
const DECIMALS: usize = 4;
/// Units in one unit of currency: 10 to the power of [`DECIMALS`].
const UNITS_PER_ONE: i128 = 10_000;
/// Digits accepted in front of the point. 18 digits sum without overflow for longer than any run lasts.
const MAX_WHOLE_DIGITS: usize = 18;

/// An exact amount of one currency, in ten-thousandths of its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(i128);

/// The text is no plain decimal number of at most 18 whole and 4 decimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an exact amount")]
pub struct AmountError(String);

impl FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let refused = || AmountError(text.to_owned());
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, decimals) = match digits.split_once('.') {
            Some((_, "")) => return Err(refused()),
            Some(parts) => parts,
            None => (digits, ""),
        };
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let sized = !whole.is_empty() && whole.len() <= MAX_WHOLE_DIGITS && decimals.len() <= DECIMALS;
        if !(sized && plain(whole) && plain(decimals)) {
            return Err(refused());
        }
        let units = whole
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
            rest => write!(f, "{sign}{}.{rest:0<2}", units / UNITS_PER_ONE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact() {
        for (text, shown) in [
            ("25.00", "25"),
            ("25.5", "25.50"),
            ("0.005", "0.005"),
            ("-0.10", "-0.10"),
            ("0", "0"),
            ("9007199254740993.01", "9007199254740993.01"),
        ] {
            assert_eq!(text.parse::<Amount>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn tenths_sum_without_a_remainder() {
        let tenth: Amount = "0.10".parse().unwrap();
        let mut sum = Amount::default();
        for _ in 0..10 {
            sum += tenth;
        }
        assert_eq!(sum, "1".parse().unwrap());
        assert_eq!((sum - tenth - tenth).to_string(), "0.80");
    }

    #[test]
    fn what_is_not_exact_is_refused() {
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
