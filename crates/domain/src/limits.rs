//! Rate limits by request class: settings' defaults and partners' overrides.
//!
//! A limit allows at most `quota` requests of a class in any `window_s` seconds for each API key.
//!
//! The JSON of [`Limits`] is the same in the database, in the audit trail and on the wire.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::bounds::Count;

/// Largest quota of a limit.
pub const MAX_QUOTA: u32 = 1_000_000_000;

/// Longest window of a limit, seconds: one day, because counters live in memory.
pub const MAX_WINDOW_S: u32 = 86_400;

/// The rate limit that a request counts against.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum RequestClass {
    Orders,
    /// Everything without a class of its own.
    General,
    /// Credential endpoints; and, counted by client address, failed authentications.
    Auth,
    Vouchers,
}

/// At most `quota` requests in any `window_s` seconds. As text `100/60`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(description = "At most `quota` requests in any `window_s` seconds.")]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Number of requests.
    #[serde(deserialize_with = "crate::whole_number::required")]
    #[schema(value_type = Count<1, { MAX_QUOTA }>)]
    pub quota: u32,
    /// Length of the window in seconds.
    #[serde(deserialize_with = "crate::whole_number::required")]
    #[schema(value_type = Count<1, { MAX_WINDOW_S }>)]
    pub window_s: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLimit {
    /// Not two numbers separated by a slash.
    #[error("expected QUOTA/SECONDS, such as 100/60")]
    Form,
    /// Zero, or more than the maximum.
    #[error("expected a quota of 1 to {MAX_QUOTA} and 1 to {MAX_WINDOW_S} seconds")]
    OutOfRange,
}

impl From<ParseIntError> for InvalidLimit {
    fn from(error: ParseIntError) -> Self {
        match error.kind() {
            std::num::IntErrorKind::PosOverflow => Self::OutOfRange,
            _ => Self::Form,
        }
    }
}

impl Limit {
    #[must_use]
    pub fn is_in_range(&self) -> bool {
        (1..=MAX_QUOTA).contains(&self.quota) && (1..=MAX_WINDOW_S).contains(&self.window_s)
    }

    /// The most requests that so many callers with this limit each can send in `window_s` seconds.
    #[must_use]
    pub const fn total_of(&self, callers: u32, window_s: u32) -> u32 {
        // A longer window begins and ends with a burst.
        let windows = match window_s > self.window_s {
            true => window_s.div_ceil(self.window_s).saturating_add(1),
            false => 1,
        };
        self.quota.saturating_mul(callers).saturating_mul(windows)
    }

    /// This limit for so many callers together, raised to what they can send with the limit `each`.
    #[must_use]
    pub fn raised_for(self, each: Self, callers: u32) -> Self {
        Self {
            quota: self.quota.max(each.total_of(callers, self.window_s)),
            ..self
        }
    }
}

impl FromStr for Limit {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        let (quota, window_s) = text.split_once('/').ok_or(InvalidLimit::Form)?;
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if !digits(quota) || !digits(window_s) {
            return Err(InvalidLimit::Form);
        }
        let limit = Self {
            quota: quota.parse()?,
            window_s: window_s.parse()?,
        };
        limit
            .is_in_range()
            .then_some(limit)
            .ok_or(InvalidLimit::OutOfRange)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.quota, self.window_s)
    }
}

/// A partner's limits that override the settings, by class (contract §8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(description = "Limits that override the settings, by class.")]
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
    /// The override of a class; `None` leaves it to the settings.
    #[must_use]
    pub const fn get(&self, class: RequestClass) -> Option<Limit> {
        match class {
            RequestClass::Orders => self.orders,
            RequestClass::General => self.general,
            RequestClass::Auth => self.auth,
            RequestClass::Vouchers => self.vouchers,
        }
    }

    /// The first class whose limit is out of range.
    #[must_use]
    pub fn first_out_of_range(&self) -> Option<&'static str> {
        let is_wrong = |class: &&RequestClass| self.get(**class).is_some_and(|limit| !limit.is_in_range());
        RequestClass::VARIANTS.iter().find(is_wrong).map(<&str>::from)
    }
}

/// The limits of the settings, for partners without overrides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultLimits {
    pub orders: Limit,
    pub general: Limit,
    pub auth: Limit,
    pub vouchers: Limit,
}

impl DefaultLimits {
    #[must_use]
    pub const fn get(&self, class: RequestClass) -> Limit {
        match class {
            RequestClass::Orders => self.orders,
            RequestClass::General => self.general,
            RequestClass::Auth => self.auth,
            RequestClass::Vouchers => self.vouchers,
        }
    }

    /// The partner's limit of a class, or the default.
    #[must_use]
    pub fn effective_limit(&self, own: &Limits, class: RequestClass) -> Limit {
        own.get(class).unwrap_or(self.get(class))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limit_parses_quota_and_window() {
        use InvalidLimit::{Form, OutOfRange};
        for (text, expected) in [
            ("100/60", Ok((100, 60))),
            ("1/1", Ok((1, 1))),
            ("1000000000/86400", Ok((MAX_QUOTA, MAX_WINDOW_S))),
            ("007/060", Ok((7, 60))),
            ("0/60", Err(OutOfRange)),
            ("1/0", Err(OutOfRange)),
            ("1000000001/60", Err(OutOfRange)),
            ("99999999999999999999/60", Err(OutOfRange)),
            ("1/86401", Err(OutOfRange)),
            ("", Err(Form)),
            ("100", Err(Form)),
            ("/", Err(Form)),
            ("100/", Err(Form)),
            ("/60", Err(Form)),
            ("100/60/1", Err(Form)),
            ("+100/60", Err(Form)),
            ("-100/60", Err(Form)),
            (" 100/60", Err(Form)),
            ("100 / 60", Err(Form)),
            ("100/1m", Err(Form)),
        ] {
            let read = text.parse::<Limit>().map(|limit| (limit.quota, limit.window_s));
            assert_eq!(read, expected, "{text:?}");
        }
    }

    #[test]
    fn ceiling_is_never_below_what_callers_can_send() {
        let limit = |text: &str| text.parse::<Limit>().unwrap();
        for (ceiling, each, callers, expected) in [
            ("500/60", "100/60", 3, "500/60"),
            ("500/60", "100/60", 6, "600/60"),
            ("500/60", "100/3600", 6, "600/60"),
            ("500/60", "100/30", 2, "600/60"),
            ("500/60", "100/7", 0, "500/60"),
        ] {
            let raised = limit(ceiling).raised_for(limit(each), callers);
            assert_eq!(raised.to_string(), expected, "{ceiling}, {callers} x {each}");
        }
    }

    #[test]
    fn limit_out_of_range_is_reported_by_class() {
        let limits = |quota, window_s| Limits {
            vouchers: Some(Limit { quota, window_s }),
            ..Limits::default()
        };
        for (quota, window_s, wrong) in [
            (1, 1, None),
            (100, 60, None),
            (0, 60, Some("vouchers")),
            (1, 0, Some("vouchers")),
            (1, 86_401, Some("vouchers")),
            (u32::MAX, 1, Some("vouchers")),
        ] {
            assert_eq!(
                limits(quota, window_s).first_out_of_range(),
                wrong,
                "{quota}/{window_s}"
            );
        }
    }

    #[test]
    fn limit_of_the_partner_overrides_the_settings_by_class() {
        let limit = |text: &str| text.parse::<Limit>().unwrap();
        let defaults = DefaultLimits {
            orders: limit("100/60"),
            general: limit("1000/3600"),
            auth: limit("5/60"),
            vouchers: limit("101/60"),
        };
        let own: Limits = serde_json::from_str(r#"{"general":{"quota":7,"window_s":9}}"#).unwrap();
        for (class, of_settings, of_partner) in [
            (RequestClass::Orders, "100/60", "100/60"),
            (RequestClass::General, "1000/3600", "7/9"),
            (RequestClass::Auth, "5/60", "5/60"),
            (RequestClass::Vouchers, "101/60", "101/60"),
        ] {
            assert_eq!(defaults.get(class).to_string(), of_settings);
            assert_eq!(defaults.effective_limit(&own, class).to_string(), of_partner);
            let name = serde_json::to_value(own).unwrap().get(class.into_str()).is_some();
            assert_eq!(
                name,
                own.get(class).is_some(),
                "a class has the name of its field"
            );
        }
    }

    proptest! {
        #[test]
        fn limit_round_trips_through_text(quota in 1..=MAX_QUOTA, window_s in 1..=MAX_WINDOW_S) {
            let limit = Limit { quota, window_s };
            prop_assert_eq!(limit.to_string().parse(), Ok(limit));
        }

        #[test]
        fn limit_of_any_text_is_in_range_or_refused(text in "[0-9+ ./-]{0,16}|.{0,16}") {
            if let Ok(limit) = text.parse::<Limit>() {
                prop_assert!(limit.is_in_range());
                let numbers: Vec<u32> = text.split('/').map(|part| part.parse().unwrap()).collect();
                prop_assert_eq!(numbers, vec![limit.quota, limit.window_s]);
            }
        }
    }
}
