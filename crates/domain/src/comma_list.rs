//! Filter by several values, separated by commas: an entry matches one of them.

use std::borrow::Cow;

use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

impl<T: Copy + Into<&'static str>> Serialize for CommaList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let labels: Vec<&str> = self.0.iter().map(|value| (*value).into()).collect();
        labels.join(",").serialize(serializer)
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
}
