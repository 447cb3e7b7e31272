//! Whole numbers in JSON requests. JSON Schema counts `2.0` as an integer, and some clients write it so.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// A whole number, written with or without a zero fraction. Other fractions and numbers out of range are
/// errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WholeNumber<T>(T);

/// Deserializes a whole number.
///
/// # Errors
/// Returns an error for any other value.
pub fn required<'de, T: TryFrom<u64>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    WholeNumber::deserialize(deserializer).map(|WholeNumber(number)| number)
}

/// Like [`required`], with `null` as `None`.
///
/// # Errors
/// Returns an error for any other value.
pub fn optional<'de, T: TryFrom<u64>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let number = Option::deserialize(deserializer)?;
    Ok(number.map(|WholeNumber(number)| number))
}

/// The whole number that this JSON number is.
#[must_use]
pub fn of(value: &serde_json::Value) -> Option<u64> {
    required(value).ok()
}

impl<'de, T: TryFrom<u64>> Deserialize<'de> for WholeNumber<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(NumberVisitor(PhantomData))
    }
}

struct NumberVisitor<T>(PhantomData<T>);

impl<T: TryFrom<u64>> Visitor<'_> for NumberVisitor<T> {
    type Value = WholeNumber<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        let converted = T::try_from(number).map(WholeNumber);
        converted.map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        if number.fract() != 0.0 {
            return Err(E::invalid_type(Unexpected::Float(number), &self));
        }
        // A float is displayed without exponent, and a whole one without fraction.
        match number.to_string().parse() {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Float(number), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_fraction_is_a_whole_number() {
        for (text, expected) in [
            ("7", Some(7)),
            ("7.0", Some(7)),
            ("3979.00", Some(3_979)),
            ("7e2", Some(700)),
            ("4294967295.0", Some(u32::MAX)),
            ("0.0", Some(0)),
            ("7.5", None),
            ("-1", None),
            ("-1.0", None),
            ("4294967296", None),
            ("4294967296.0", None),
            ("1e300", None),
            ("\"7\"", None),
            ("true", None),
        ] {
            let mut json = serde_json::Deserializer::from_str(text);
            assert_eq!(required::<u32, _>(&mut json).ok(), expected, "{text}");
        }
        let mut json = serde_json::Deserializer::from_str("null");
        assert_eq!(optional::<u32, _>(&mut json).unwrap(), None);
    }
}
