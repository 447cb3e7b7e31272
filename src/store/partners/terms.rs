//! What was agreed with a partner beside its name and addresses: limits, the approval rule.
//!
//! The JSON of these types is what the database keeps, what the trail shows and what is on the wire: one spelling.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vouchsafe_actors::domain::money::{Amount, AmountText, Currency};

/// Most requests that one limit may allow. More is no limit.
const MAX_QUOTA: u32 = 1_000_000_000;

/// Longest window of a limit, seconds: a day, since counters live in memory.
const MAX_WINDOW_S: u32 = 86_400;

/// At most `quota` requests in any `window_s` seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// How many.
    pub quota: u32,
    /// In how many seconds.
    pub window_s: u32,
}

/// The limits that differ from the settings, by class (contract §8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Placing orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<Limit>,
    /// Everything without a class of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub general: Option<Limit>,
    /// Credential endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Limit>,
    /// Retrieving codes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vouchers: Option<Limit>,
}

impl Limits {
    /// The limits by the name of their class.
    #[must_use]
    pub const fn by_class(&self) -> [(&'static str, Option<Limit>); 4] {
        [
            ("orders", self.orders),
            ("general", self.general),
            ("auth", self.auth),
            ("vouchers", self.vouchers),
        ]
    }

    /// The first class whose limit is out of range.
    #[must_use]
    pub fn out_of_range(&self) -> Option<&'static str> {
        let wrong = |limit: Limit| {
            !(1..=MAX_QUOTA).contains(&limit.quota) || !(1..=MAX_WINDOW_S).contains(&limit.window_s)
        };
        let classes = self.by_class().into_iter();
        classes
            .filter(|(_, limit)| limit.is_some_and(wrong))
            .map(|(class, _)| class)
            .next()
    }
}

/// When an order of the partner waits for an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRule {
    /// Above these totals.
    #[serde(default)]
    pub amount_over: Thresholds,
    /// In a currency that has no threshold.
    #[serde(default)]
    pub other_currencies: OtherCurrencies,
    /// So many orders from the first on.
    #[serde(default)]
    pub first_orders: u32,
}

/// What becomes of an order in a currency without a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OtherCurrencies {
    /// It waits.
    Approve,
    /// It goes through.
    #[default]
    Pass,
}

/// An amount for each of some currencies: `{"USD": 500.00}`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thresholds(pub BTreeMap<Currency, Amount>);

impl Serialize for Thresholds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (currency, amount) in &self.0 {
            map.serialize_entry(currency, &amount.of(*currency))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Thresholds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ThresholdsVisitor)
    }
}

struct ThresholdsVisitor;

impl<'de> Visitor<'de> for ThresholdsVisitor {
    type Value = Thresholds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with an amount for each currency")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Thresholds, A::Error> {
        let mut thresholds = BTreeMap::new();
        while let Some(currency) = map.next_key::<Currency>()? {
            let amount = map.next_value::<AmountText>()?.parse(currency);
            let amount = amount.map_err(A::Error::custom)?;
            if amount < Amount::ZERO {
                return Err(A::Error::custom(format!("{currency}: expected zero or more")));
            }
            if thresholds.insert(currency, amount).is_some() {
                return Err(A::Error::custom(format!("{currency} is given more than once")));
            }
        }
        Ok(Thresholds(thresholds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_reads_back_as_it_was_written() {
        let text =
            r#"{"amount_over":{"JPY":50000,"USD":500.00},"other_currencies":"approve","first_orders":3}"#;
        let rule: ApprovalRule = serde_json::from_str(text).unwrap();
        assert_eq!(
            rule.amount_over.0.values().map(|a| a.minor()).collect::<Vec<_>>(),
            [50_000, 50_000]
        );
        assert_eq!(serde_json::to_string(&rule).unwrap(), text);
    }

    #[test]
    fn thresholds_are_exact_unique_and_not_negative() {
        for text in [
            r#"{"USD":500.001}"#,
            r#"{"USD":-1}"#,
            r#"{"usd":1}"#,
            r#"{"USD":1,"USD":2}"#,
            r#"{"USD":null}"#,
            "[]",
        ] {
            assert!(serde_json::from_str::<Thresholds>(text).is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Thresholds>(r#"{"USD":"500.00","KWD":1.005}"#).is_ok());
    }

    #[test]
    fn a_limit_allows_something_and_not_everything() {
        let limits = |quota, window_s| Limits {
            vouchers: Some(Limit { quota, window_s }),
            ..Limits::default()
        };
        for (quota, window_s, wrong) in [
            (1, 1, false),
            (100, 60, false),
            (0, 60, true),
            (1, 0, true),
            (1, 86_401, true),
            (u32::MAX, 1, true),
        ] {
            let found = limits(quota, window_s).out_of_range();
            assert_eq!(found.is_some(), wrong, "{quota}/{window_s}");
        }
    }
}
