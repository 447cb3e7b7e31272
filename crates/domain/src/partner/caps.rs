//! Caps of a partner: pending orders, cancellations and spend, and the order rate above which orders wait for
//! approval.
//!
//! The database, the audit log and the API share the JSON form of these types.

use serde::{Deserialize, Serialize};

use super::approval_rule::Thresholds;
use crate::bounds::Count;

/// Longest window of an order rate: one day. Seconds.
pub const MAX_RATE_WINDOW_S: u32 = 86_400;

/// Caps of a partner. Without any, nothing is capped.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PartnerCaps {
    /// Maximum number of orders of which something is still to be delivered, also `PARTIALLY_DELIVERED` ones.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::whole_number::optional"
    )]
    pub pending_orders: Option<u32>,
    /// Maximum amount paid for orders that are not delivered yet, by currency.
    #[serde(default, skip_serializing_if = "Thresholds::is_empty")]
    pub pending_amount: Thresholds,
    /// Maximum number of orders that the partner cancels on a day (UTC).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::whole_number::optional"
    )]
    pub cancellations_per_day: Option<u32>,
    /// Maximum total of the orders that the partner places on a day (UTC), by currency.
    #[serde(default, skip_serializing_if = "Thresholds::is_empty")]
    pub spend_per_day: Thresholds,
    /// Spend of the orders that are placed with one credential.
    #[serde(default, skip_serializing_if = "Thresholds::is_empty")]
    pub credential_spend_per_day: Thresholds,
    /// Order rate above which orders wait for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_over: Option<OrderRate>,
}

/// An order rate. An order exceeds it if it is more than the `orders`-th of the last `within_s` seconds, or
/// if it and the orders before it exceed the `amount` of their currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderRate {
    /// Length of the window in seconds.
    #[serde(deserialize_with = "crate::whole_number::required")]
    #[schema(value_type = Count<1, { MAX_RATE_WINDOW_S }>)]
    pub within_s: u32,
    /// Number of orders.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::whole_number::optional"
    )]
    pub orders: Option<u32>,
    /// Totals of orders, by currency.
    #[serde(default, skip_serializing_if = "Thresholds::is_empty")]
    pub amount: Thresholds,
}

impl PartnerCaps {
    /// Whether nothing is capped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These caps with those of `defaults` that they lack, amounts by currency. Without any they exempt from
    /// the defaults, too.
    #[must_use]
    pub fn or(&self, defaults: &Self) -> Self {
        if self.is_empty() {
            return Self::default();
        }
        Self {
            pending_orders: self.pending_orders.or(defaults.pending_orders),
            pending_amount: self.pending_amount.or(&defaults.pending_amount),
            cancellations_per_day: self.cancellations_per_day.or(defaults.cancellations_per_day),
            spend_per_day: self.spend_per_day.or(&defaults.spend_per_day),
            credential_spend_per_day: self
                .credential_spend_per_day
                .or(&defaults.credential_spend_per_day),
            approval_over: self
                .approval_over
                .clone()
                .or_else(|| defaults.approval_over.clone()),
        }
    }

    /// Why these caps are invalid.
    #[must_use]
    pub fn validation_error(&self) -> Option<String> {
        let rate = self.approval_over.as_ref()?;
        if !(1..=MAX_RATE_WINDOW_S).contains(&rate.within_s) {
            return Some(format!(
                "expected approval_over.within_s of 1 to {MAX_RATE_WINDOW_S}"
            ));
        }
        let is_empty = rate.orders.is_none() && rate.amount.is_empty();
        is_empty.then(|| "expected orders or amount in approval_over".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(text: &str) -> PartnerCaps {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn caps_round_trip_through_json() {
        let text = r#"{"pending_orders":3,"pending_amount":{"USD":10.00},"cancellations_per_day":2,"spend_per_day":{"JPY":500},"credential_spend_per_day":{"EUR":1.50},"approval_over":{"within_s":60,"orders":9,"amount":{"USD":5.00}}}"#;
        assert_eq!(serde_json::to_string(&caps(text)).unwrap(), text);
        assert_eq!(serde_json::to_string(&PartnerCaps::default()).unwrap(), "{}");
    }

    #[test]
    fn cap_of_the_partner_overrides_the_default_by_currency() {
        let own = caps(r#"{"pending_amount":{"USD":5},"pending_orders":0}"#);
        let defaults =
            caps(r#"{"pending_amount":{"USD":7,"EUR":9},"pending_orders":4,"cancellations_per_day":1}"#);
        let effective =
            r#"{"pending_amount":{"USD":5,"EUR":9},"pending_orders":0,"cancellations_per_day":1}"#;
        assert_eq!(own.or(&defaults), caps(effective));
        assert_eq!(caps("{}").or(&defaults), PartnerCaps::default());
    }

    #[test]
    fn order_rate_needs_a_window_and_a_bound() {
        for (text, is_valid) in [
            (r#"{"within_s":60,"orders":1}"#, true),
            (r#"{"within_s":86400,"orders":1}"#, true),
            (r#"{"within_s":86400,"amount":{"USD":1}}"#, true),
            (r#"{"within_s":0,"orders":1}"#, false),
            (r#"{"within_s":86401,"orders":1}"#, false),
            (r#"{"within_s":60}"#, false),
        ] {
            let caps = caps(&format!(r#"{{"approval_over":{text}}}"#));
            assert_eq!(caps.validation_error().is_none(), is_valid, "{text}");
        }
    }
}
