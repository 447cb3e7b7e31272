//! Expiry of purchased and imported vouchers for which the vendor states none.

use time::util::days_in_month;
use time::{Date, Month};

use crate::iso_date;
use crate::product::{ExpiryKind, ExpiryPolicy};

/// The last valid day of a voucher issued on this day, by the product's policy; `None` if it never expires.
///
/// Adding months keeps the day of the month, or takes the last day of a shorter month. An invalid policy
/// value, which is rejected when a product is put, counts as no expiry.
#[must_use]
pub fn last_valid_day(policy: &ExpiryPolicy, issued: Date) -> Option<Date> {
    let value = policy.value.as_ref()?;
    match policy.kind {
        ExpiryKind::None => None,
        ExpiryKind::FixedDate => iso_date::parse_date(value.as_str()?),
        ExpiryKind::MonthsFromIssue => months_later(issued, u32::try_from(value.as_u64()?).ok()?),
    }
}

fn months_later(day: Date, months: u32) -> Option<Date> {
    let month_index = u32::from(u8::from(day.month()) - 1) + months;
    let year = day.year().checked_add(i32::try_from(month_index / 12).ok()?)?;
    let month = Month::try_from(u8::try_from(month_index % 12 + 1).ok()?).ok()?;
    Date::from_calendar_date(year, month, day.day().min(days_in_month(month, year))).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::macros::date;

    use super::*;

    #[test]
    fn last_valid_day_follows_the_policy() {
        for (kind, value, issued, expected) in [
            (ExpiryKind::None, json!(null), date!(2026 - 01 - 31), None),
            (
                ExpiryKind::FixedDate,
                json!("2027-12-31"),
                date!(2026 - 01 - 31),
                Some(date!(2027 - 12 - 31)),
            ),
            (
                ExpiryKind::MonthsFromIssue,
                json!(1),
                date!(2026 - 01 - 31),
                Some(date!(2026 - 02 - 28)),
            ),
            (
                ExpiryKind::MonthsFromIssue,
                json!(25),
                date!(2026 - 01 - 31),
                Some(date!(2028 - 02 - 29)),
            ),
            (
                ExpiryKind::MonthsFromIssue,
                json!(12),
                date!(2026 - 12 - 15),
                Some(date!(2027 - 12 - 15)),
            ),
            (
                ExpiryKind::MonthsFromIssue,
                json!(1_200),
                date!(2026 - 05 - 05),
                Some(date!(2126 - 05 - 05)),
            ),
            (
                ExpiryKind::MonthsFromIssue,
                json!("x"),
                date!(2026 - 05 - 05),
                None,
            ),
        ] {
            let policy = ExpiryPolicy {
                kind,
                value: Some(value).filter(|value| !value.is_null()),
            };
            assert_eq!(last_valid_day(&policy, issued), expected, "{policy:?} {issued}");
        }
    }
}
