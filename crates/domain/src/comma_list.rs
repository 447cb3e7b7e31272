//! Filter by several values, separated by commas: an entry matches one of them.

use std::borrow::Cow;
use std::str::FromStr;

use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::Value;

/// At least one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommaList<T>(Vec<T>);

impl<T: PartialEq> CommaList<T> {
    /// The values, each once.
    pub(crate) fn of(values: Vec<T>) -> Self {
        let mut list = Self(Vec::new());
        for value in values {
            list.push(value);
        }
        list
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    #[must_use]
    pub fn contains(&self, value: &T) -> bool {
        self.0.contains(value)
    }

    fn push(&mut self, value: T) {
        if !self.contains(&value) {
            self.0.push(value);
        }
    }
}

impl<T> From<T> for CommaList<T> {
    fn from(value: T) -> Self {
        Self(vec![value])
    }
}

impl<T: FromStr + PartialEq> FromStr for CommaList<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        let values: Result<_, _> = text.split(',').map(str::parse).collect();
        values.map(Self::of)
    }
}

/// The values are texts.
impl<T: Serialize> Serialize for CommaList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |value| match serde_json::to_value(value) {
            Ok(Value::String(text)) => Ok(text),
            Ok(other) => Err(ser::Error::custom(format!("{other} is not a text"))),
            Err(error) => Err(ser::Error::custom(error)),
        };
        let texts: Result<Vec<_>, S::Error> = self.0.iter().map(text).collect();
        texts?.join(",").serialize(serializer)
    }
}

impl<'de, T: PartialEq + for<'a> Deserialize<'a>> Deserialize<'de> for CommaList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let values: Result<Vec<T>, D::Error> = text
            .split(',')
            .map(|part| T::deserialize(part.into_deserializer()))
            .collect();
        values.map(Self::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PartnerId;
    use crate::order::OrderStatus;

    #[test]
    fn list_has_each_value_once_and_at_least_one() {
        let both = CommaList(vec![OrderStatus::Refunded, OrderStatus::Pending]);
        let parse = |text: &str| serde_json::from_str::<CommaList<OrderStatus>>(&format!("{text:?}")).ok();
        assert_eq!(parse("REFUNDED,PENDING,REFUNDED"), Some(both.clone()));
        assert_eq!(serde_json::to_string(&both).unwrap(), r#""REFUNDED,PENDING""#);
        for text in ["", ",", "PENDING,", "pending", "PENDING REFUNDED"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn list_of_ids_is_read_back() {
        let ids: CommaList<PartnerId> = CommaList::of(vec![PartnerId::generate(), PartnerId::generate()]);
        let text = serde_json::to_value(&ids).unwrap();
        assert_eq!(
            text.as_str().unwrap().parse::<CommaList<PartnerId>>().unwrap(),
            ids
        );
        assert!("ptn_1".parse::<CommaList<PartnerId>>().is_err());
    }
}
