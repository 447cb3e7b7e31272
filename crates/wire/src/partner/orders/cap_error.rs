//! Errors of requests that exceed a cap of the partner.

use time::{OffsetDateTime, UtcOffset};
use vouchsafe_domain::cap::{CapCounter, CapExceeded};
use vouchsafe_domain::money::Amount;

use crate::error_body::ErrorDetail;
use crate::error_code::Code;

const DAY_S: u32 = 86_400;

/// An error with its `Retry-After`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapError {
    pub code: Code,
    pub message: String,
    /// The amounts of a cap in money.
    pub details: Vec<ErrorDetail>,
    pub retry_after_s: Option<u32>,
}

impl CapError {
    /// Names the cap, what is left of it, and what to do. A daily cap is free again at midnight UTC.
    #[must_use]
    pub fn of(exceeded: &CapExceeded, now: OffsetDateTime) -> Self {
        let cap = exceeded.check.cap.unwrap_or(i64::MAX);
        let amounts = || match exceeded.amounts() {
            Some((cap, left)) => format!("at most {cap} {0}, of which {left} {0} is left", cap.currency),
            None => format!("at most {cap}"),
        };
        let (code, message) = match exceeded.check.counter {
            CapCounter::PendingOrders | CapCounter::RecentOrders(_) => (
                Code::PendingOrdersLimitReached,
                format!(
                    "too many pending orders: at most {cap}; wait until some are delivered, or cancel some"
                ),
            ),
            CapCounter::PendingAmount(_) | CapCounter::RecentAmount(..) => (
                Code::PendingAmountLimitReached,
                format!(
                    "the amount of pending orders is limited: {}; wait until some are delivered, or order less",
                    amounts()
                ),
            ),
            CapCounter::Cancellations(_) => (
                Code::CancellationLimitReached,
                format!(
                    "too many cancellations: at most {cap} on a day (UTC); cancel tomorrow, or ask the \
                     operator if the order can be cancelled only until then"
                ),
            ),
            CapCounter::Spend(_, _, None) => (
                Code::SpendLimitReached,
                format!(
                    "the partner's spend on a day (UTC) is limited: {}; order less or wait until tomorrow",
                    amounts()
                ),
            ),
            CapCounter::Spend(_, _, Some(_)) => (
                Code::SpendLimitReached,
                format!(
                    "the credential's spend on a day (UTC) is limited: {}; order less or wait until tomorrow",
                    amounts()
                ),
            ),
        };
        let is_daily = exceeded.check.counter.columns().day.is_some();
        let retry_after_s = if is_daily {
            Some(seconds_until_midnight(now))
        } else {
            code.retry_after_s()
        };
        let details = exceeded.amounts().map(|(cap, left)| {
            let total = Amount::from_minor(exceeded.check.added).of(cap.currency);
            let message = format!(
                "the items cost {total} {0}, expected at most {left} {0}",
                cap.currency
            );
            ErrorDetail::new("items", message)
        });
        Self {
            code,
            message,
            details: details.into_iter().collect(),
            retry_after_s,
        }
    }
}

/// At least 1, so that a client that waits for so long has reached the next day.
fn seconds_until_midnight(now: OffsetDateTime) -> u32 {
    let (hour, minute, second) = now.to_offset(UtcOffset::UTC).to_hms();
    DAY_S - (u32::from(hour) * 3_600 + u32::from(minute) * 60 + u32::from(second))
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use vouchsafe_domain::cap::CapCheck;

    use super::*;

    fn error(counter: CapCounter, now: OffsetDateTime) -> CapError {
        let check = CapCheck {
            counter,
            added: 500,
            cap: Some(1_000),
        };
        CapError::of(&CapExceeded { check, used: 700 }, now)
    }

    #[test]
    fn error_names_the_cap_and_what_is_left() {
        let (now, usd) = (datetime!(2026-11-20 23:59:59.9 UTC), "USD".parse().unwrap());
        let spend = error(CapCounter::Spend(now.date(), usd, None), now);
        assert_eq!(
            (spend.code, spend.retry_after_s),
            (Code::SpendLimitReached, Some(1))
        );
        assert!(
            spend
                .message
                .contains("at most 10.00 USD, of which 3.00 USD is left"),
            "{}",
            spend.message
        );
        let [detail] = &spend.details[..] else {
            panic!("{spend:?}")
        };
        assert_eq!(
            (detail.field.as_str(), detail.message.as_str()),
            ("items", "the items cost 5.00 USD, expected at most 3.00 USD")
        );
        let pending = error(CapCounter::PendingOrders, now);
        assert_eq!(pending.details, []);
        assert_eq!(
            (pending.code, pending.retry_after_s),
            (Code::PendingOrdersLimitReached, Some(60))
        );
        assert!(pending.message.contains("at most 1000"), "{}", pending.message);
    }

    #[test]
    fn daily_cap_is_free_at_midnight_utc() {
        for (now, expected) in [
            (datetime!(2026-11-20 00:00 UTC), 86_400),
            (datetime!(2026-11-20 12:00 UTC), 43_200),
            (datetime!(2026-11-21 00:59:58 +1), 2),
        ] {
            let cancellations = error(CapCounter::Cancellations(now.date()), now);
            assert_eq!(cancellations.retry_after_s, Some(expected), "{now}");
        }
    }
}
