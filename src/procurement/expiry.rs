//! Until when is a bought voucher good whose vendor does not say so?

use time::util::days_in_month;
use time::{Date, Month};
use vouchsafe_actors::domain::product::{ExpiryKind, ExpiryPolicy};

use crate::iso_date;

/// The last valid day by the product's policy of a voucher issued on this day; `None` if it never expires.
///
/// A month later is the same day of that month, or its last one where it is shorter. A value that the policy's kind does
/// not have is refused when a product is put, and counts as no end here.
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
    let counted = u32::from(u8::from(day.month()) - 1) + months;
    let year = day.year().checked_add(i32::try_from(counted / 12).ok()?)?;
    let month = Month::try_from(u8::try_from(counted % 12 + 1).ok()?).ok()?;
    Date::from_calendar_date(year, month, day.day().min(days_in_month(month, year))).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::macros::date;

    use super::*;

    #[test]
    fn a_policy_says_the_last_valid_day() {
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
