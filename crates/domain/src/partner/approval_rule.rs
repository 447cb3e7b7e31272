//! Approval rule of a partner: which orders wait for an operator.
//!
//! The database, the audit log and the API share the JSON form of these types.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::approval;
use crate::labels::labels;
use crate::money::{Amount, AmountText, Currency};

/// Conditions under which an order of the partner waits for an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRule {
    /// Order totals above which an order waits, by currency.
    #[serde(default)]
    pub amount_over: Thresholds,
    /// Treatment of currencies without a threshold.
    #[serde(default)]
    pub other_currencies: OtherCurrencies,
    /// Number of first orders of the partner that wait.
    #[serde(default, deserialize_with = "crate::whole_number::required")]
    pub first_orders: u32,
}

impl From<&ApprovalRule> for approval::ApprovalRule {
    fn from(rule: &ApprovalRule) -> Self {
        Self {
            amount_over: rule.amount_over.0.clone(),
            other_currencies: match rule.other_currencies {
                OtherCurrencies::Approve => approval::OtherCurrencies::RequireApproval,
                OtherCurrencies::Pass => approval::OtherCurrencies::NoApproval,
            },
            first_orders: rule.first_orders,
        }
    }
}

labels! {
    /// Treatment of an order in a currency without a threshold.
    #[derive(Default)]
    pub enum OtherCurrencies: "lowercase",
        "Treatment of an order in a currency without a threshold: `approve` (it waits for an operator) or `pass` \
         (it needs no approval)." {
        Approve,
        #[default]
        Pass,
    }
}

/// Amounts by currency, for instance `{"USD": 500.00}`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thresholds(pub BTreeMap<Currency, Amount>);

impl Thresholds {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn get(&self, currency: Currency) -> Option<Amount> {
        self.0.get(&currency).copied()
    }

    /// These amounts with those of `defaults` in other currencies.
    #[must_use]
    pub fn or(&self, defaults: &Self) -> Self {
        let mut amounts = defaults.0.clone();
        amounts.extend(&self.0);
        Self(amounts)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected amounts such as USD=1000,JPY=100000")]
pub struct InvalidThresholds;

/// The form of the settings: `USD=1000,JPY=100000`.
impl FromStr for Thresholds {
    type Err = InvalidThresholds;

    fn from_str(text: &str) -> Result<Self, InvalidThresholds> {
        let mut thresholds = BTreeMap::new();
        for threshold in text.split(',') {
            let (currency, amount) = threshold.trim().split_once('=').ok_or(InvalidThresholds)?;
            let currency: Currency = currency.parse().map_err(|_| InvalidThresholds)?;
            let amount = Amount::parse(amount, currency).map_err(|_| InvalidThresholds)?;
            if amount < Amount::ZERO || thresholds.insert(currency, amount).is_some() {
                return Err(InvalidThresholds);
            }
        }
        Ok(Self(thresholds))
    }
}

impl PartialSchema for Thresholds {
    fn schema() -> RefOr<Schema> {
        let amount = RefOr::Ref(Ref::from_schema_name(AmountText::name()));
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("Amounts by currency."))
            .property_names(Some(Schema::from(
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .pattern(Some("^[A-Z]{3}$"))
                    .build(),
            )))
            .additional_properties(Some(AdditionalProperties::RefOr(amount)))
            .into()
    }
}

impl ToSchema for Thresholds {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((AmountText::name().into_owned(), AmountText::schema()));
    }
}

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
        f.write_str("an object with an amount per currency")
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
    fn approval_rule_round_trips_through_json() {
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
    fn inexact_repeated_or_negative_threshold_is_rejected() {
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
}
