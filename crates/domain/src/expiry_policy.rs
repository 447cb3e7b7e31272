//! Expiry policies of products, and the expiry of vouchers for which the vendor states none.

use serde::{Deserialize, Serialize};
use time::util::days_in_month;
use time::{Date, Month};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{Deprecated, Schema};

use crate::iso_date;
use crate::labels::labels;

/// Validity of the product's vouchers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(from = "StoredExpiryPolicy")]
pub struct ExpiryPolicy {
    /// Kind of policy; determines which other field is set.
    #[serde(rename = "type")]
    pub kind: ExpiryKind,
    /// The last valid day for `FIXED_DATE`; otherwise null.
    #[schema(required, format = Date)]
    pub expires_on: Option<String>,
    /// Months of validity for `MONTHS_FROM_ISSUE`; otherwise null.
    #[schema(required)]
    pub valid_months: Option<u32>,
    #[schema(required, schema_with = expiry_value_schema)]
    value: Option<serde_json::Value>,
}

/// An expiry policy as version 1.0.0-rc.1 stores and reads it; later versions store both forms.
#[derive(Deserialize)]
struct StoredExpiryPolicy {
    #[serde(rename = "type")]
    kind: ExpiryKind,
    #[serde(default)]
    value: Option<serde_json::Value>,
}

impl From<StoredExpiryPolicy> for ExpiryPolicy {
    fn from(StoredExpiryPolicy { kind, value }: StoredExpiryPolicy) -> Self {
        let text = value.as_ref().and_then(serde_json::Value::as_str);
        let months = value.as_ref().and_then(serde_json::Value::as_u64);
        Self {
            kind,
            expires_on: text.map(str::to_owned),
            valid_months: months.and_then(|months| u32::try_from(months).ok()),
            value,
        }
    }
}

impl ExpiryPolicy {
    /// Vouchers that never expire.
    pub const NONE: Self = Self {
        kind: ExpiryKind::None,
        expires_on: None,
        valid_months: None,
        value: None,
    };

    /// Every voucher is valid until this day, written as YYYY-MM-DD.
    #[must_use]
    pub fn fixed_date(day: &str) -> Self {
        Self {
            kind: ExpiryKind::FixedDate,
            expires_on: Some(day.to_owned()),
            valid_months: None,
            value: Some(day.into()),
        }
    }

    /// A voucher is valid for this number of months.
    #[must_use]
    pub fn months_from_issue(months: u32) -> Self {
        Self {
            kind: ExpiryKind::MonthsFromIssue,
            expires_on: None,
            valid_months: Some(months),
            value: Some(months.into()),
        }
    }
}

labels! {
    /// The kinds of expiry policy.
    pub enum ExpiryKind: "SCREAMING_SNAKE_CASE",
        "Kind of expiry policy: `FIXED_DATE` (every voucher expires on one date), `MONTHS_FROM_ISSUE` (a \
         number of months after the day on which the voucher was imported or bought, unless its vendor \
         names a day), `NONE` (vouchers never expire)." {
        /// Every voucher expires on one date.
        FixedDate,
        /// A number of months after issue.
        MonthsFromIssue,
        None,
    }
}

/// The last valid day of a voucher issued on this day, by the product's policy; `None` if it never expires.
///
/// Adding months keeps the day of the month, or takes the last day of a shorter month. An invalid policy
/// value, which is rejected when a product is put, counts as no expiry.
#[must_use]
pub fn last_valid_day(policy: &ExpiryPolicy, issued: Date) -> Option<Date> {
    match policy.kind {
        ExpiryKind::None => None,
        ExpiryKind::FixedDate => iso_date::parse_date(policy.expires_on.as_deref()?),
        ExpiryKind::MonthsFromIssue => months_later(issued, policy.valid_months?),
    }
}

fn months_later(day: Date, months: u32) -> Option<Date> {
    let month_index = u32::from(u8::from(day.month()) - 1) + months;
    let year = day.year().checked_add(i32::try_from(month_index / 12).ok()?)?;
    let month = Month::try_from(u8::try_from(month_index % 12 + 1).ok()?).ok()?;
    Date::from_calendar_date(year, month, day.day().min(days_in_month(month, year))).ok()
}

/// Schema of an expiry policy's value.
#[must_use]
pub fn expiry_value_schema() -> Schema {
    // One list of types: the format applies to the text, the minimum to the number. Generators stumble over
    // null in `oneOf`.
    let types = SchemaType::from_iter([Type::String, Type::Integer, Type::Null]);
    let value = ObjectBuilder::new()
        .schema_type(types)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)))
        .minimum(Some(1))
        .deprecated(Some(Deprecated::True))
        .description(Some(
            "Earlier form of `expires_on` and `valid_months`: one field for both.",
        ));
    Schema::from(value.build())
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;

    #[test]
    fn last_valid_day_follows_the_policy() {
        for (policy, issued, expected) in [
            (ExpiryPolicy::NONE, date!(2026 - 01 - 31), None),
            (
                ExpiryPolicy::fixed_date("2027-12-31"),
                date!(2026 - 01 - 31),
                Some(date!(2027 - 12 - 31)),
            ),
            (
                ExpiryPolicy::months_from_issue(1),
                date!(2026 - 01 - 31),
                Some(date!(2026 - 02 - 28)),
            ),
            (
                ExpiryPolicy::months_from_issue(25),
                date!(2026 - 01 - 31),
                Some(date!(2028 - 02 - 29)),
            ),
            (
                ExpiryPolicy::months_from_issue(12),
                date!(2026 - 12 - 15),
                Some(date!(2027 - 12 - 15)),
            ),
            (
                ExpiryPolicy::months_from_issue(1_200),
                date!(2026 - 05 - 05),
                Some(date!(2126 - 05 - 05)),
            ),
            (ExpiryPolicy::fixed_date("x"), date!(2026 - 05 - 05), None),
        ] {
            assert_eq!(last_valid_day(&policy, issued), expected, "{policy:?} {issued}");
        }
    }

    #[test]
    fn stored_policy_of_an_earlier_version_is_read() {
        for (stored, policy) in [
            (r#"{"type":"NONE","value":null}"#, ExpiryPolicy::NONE),
            (
                r#"{"type":"FIXED_DATE","value":"2027-12-31"}"#,
                ExpiryPolicy::fixed_date("2027-12-31"),
            ),
            (
                r#"{"type":"MONTHS_FROM_ISSUE","value":12}"#,
                ExpiryPolicy::months_from_issue(12),
            ),
        ] {
            assert_eq!(serde_json::from_str::<ExpiryPolicy>(stored).unwrap(), policy);
            let written = serde_json::to_string(&policy).unwrap();
            assert_eq!(serde_json::from_str::<ExpiryPolicy>(&written).unwrap(), policy);
        }
    }
}
