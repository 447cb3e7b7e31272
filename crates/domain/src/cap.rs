//! Use of caps: what an order or a cancellation counts against, and what is left. Pure.

use time::{Date, OffsetDateTime};

use crate::ids::CredentialId;
use crate::money::{Amount, Currency, Money};
use crate::partner::caps::PartnerCaps;

/// A number that the database has or counts for each partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CapCounter {
    /// Orders of which something is still to be delivered.
    PendingOrders,
    /// Paid for orders that are not delivered yet. Minor units.
    PendingAmount(Currency),
    /// Orders of the last so many seconds, by the clock of the database.
    RecentOrders(u32),
    /// Totals of the orders of the last so many seconds. Minor units.
    RecentAmount(u32, Currency),
    /// Orders that the partner has cancelled on a day.
    Cancellations(Date),
    /// Totals of the orders of a day, in minor units: of one credential, or all.
    Spend(Date, Currency, Option<CredentialId>),
}

/// A number that a decision adds to a counter, and the cap that the sum must not exceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapCheck {
    pub counter: CapCounter,
    pub added: i64,
    /// `None`: what is added counts for later checks only.
    pub cap: Option<i64>,
}

/// A cap that does not permit what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapExceeded {
    pub check: CapCheck,
    /// The counter before.
    pub used: i64,
}

impl CapCheck {
    #[must_use]
    pub fn is_exceeded(&self, used: i64) -> bool {
        self.cap.is_some_and(|cap| used.saturating_add(self.added) > cap)
    }

    /// The first of the checks that is exceeded. `used` has the counters of all of them.
    #[must_use]
    pub fn first_exceeded(checks: &[Self], used: &[i64]) -> Option<CapExceeded> {
        let exceeded = checks
            .iter()
            .zip(used)
            .find(|(check, used)| check.is_exceeded(**used));
        exceeded.map(|(check, used)| CapExceeded {
            check: check.clone(),
            used: *used,
        })
    }
}

impl PartnerCaps {
    /// What an order counts against the spend of its day.
    #[must_use]
    pub fn spend_checks(
        &self,
        total: Money,
        credential_id: CredentialId,
        at: OffsetDateTime,
    ) -> Vec<CapCheck> {
        let caps = [
            (self.spend_per_day.get(total.currency), None),
            (
                self.credential_spend_per_day.get(total.currency),
                Some(credential_id),
            ),
        ];
        let checks = caps.into_iter().filter_map(|(cap, credential_id)| {
            Some(CapCheck {
                counter: CapCounter::Spend(utc_date(at), total.currency, credential_id),
                added: total.amount.minor(),
                cap: Some(cap?.minor()),
            })
        });
        checks.collect()
    }

    /// What an order counts against the order rate above which orders wait for approval.
    #[must_use]
    pub fn rate_checks(&self, total: Money) -> Vec<CapCheck> {
        let Some(rate) = &self.approval_over else {
            return Vec::new();
        };
        let orders = rate.orders.map(|cap| CapCheck {
            counter: CapCounter::RecentOrders(rate.within_s),
            added: 1,
            cap: Some(i64::from(cap)),
        });
        let amount = rate.amount.get(total.currency).map(|cap| CapCheck {
            counter: CapCounter::RecentAmount(rate.within_s, total.currency),
            added: total.amount.minor(),
            cap: Some(cap.minor()),
        });
        orders.into_iter().chain(amount).collect()
    }

    /// What an order counts against the caps of pending orders, if it is not delivered at once.
    #[must_use]
    pub fn pending_checks(&self, total: Money) -> Vec<CapCheck> {
        let orders = self.pending_orders.map(|cap| CapCheck {
            counter: CapCounter::PendingOrders,
            added: 1,
            cap: Some(i64::from(cap)),
        });
        let amount = self.pending_amount.get(total.currency).map(|cap| CapCheck {
            counter: CapCounter::PendingAmount(total.currency),
            added: total.amount.minor(),
            cap: Some(cap.minor()),
        });
        orders.into_iter().chain(amount).collect()
    }

    /// What a cancellation counts against.
    #[must_use]
    pub fn cancellation_check(&self, at: OffsetDateTime) -> Option<CapCheck> {
        Some(CapCheck {
            counter: CapCounter::Cancellations(utc_date(at)),
            added: 1,
            cap: Some(i64::from(self.cancellations_per_day?)),
        })
    }
}

fn utc_date(at: OffsetDateTime) -> Date {
    at.to_offset(time::UtcOffset::UTC).date()
}

/// A counter as the columns of the SQL function `cap_usage`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterColumns {
    pub kind: &'static str,
    pub currency: Option<Currency>,
    pub credential_id: Option<CredentialId>,
    pub day: Option<Date>,
    pub within_s: Option<u32>,
}

impl CapCounter {
    /// The same counter for all decisions of a batch, of which some may have an earlier length of the window.
    #[must_use]
    pub fn without_window(&self) -> Self {
        match self {
            Self::RecentOrders(_) => Self::RecentOrders(0),
            Self::RecentAmount(_, currency) => Self::RecentAmount(0, *currency),
            other => other.clone(),
        }
    }

    /// Whether the counter exists only for caps; others follow from orders and wallets.
    #[must_use]
    pub const fn is_stored(&self) -> bool {
        matches!(self, Self::Cancellations(_) | Self::Spend(..))
    }

    #[must_use]
    pub const fn columns(&self) -> CounterColumns {
        let (kind, currency, credential_id, day, within_s) = match *self {
            Self::PendingOrders => ("pending_orders", None, None, None, None),
            Self::PendingAmount(currency) => ("pending_amount", Some(currency), None, None, None),
            Self::RecentOrders(within_s) => ("recent_orders", None, None, None, Some(within_s)),
            Self::RecentAmount(within_s, currency) => {
                ("recent_amount", Some(currency), None, None, Some(within_s))
            }
            Self::Cancellations(day) => ("cancellations", None, None, Some(day), None),
            Self::Spend(day, currency, None) => ("spend", Some(currency), None, Some(day), None),
            Self::Spend(day, currency, credential_id) => {
                ("credential_spend", Some(currency), credential_id, Some(day), None)
            }
        };
        CounterColumns {
            kind,
            currency,
            credential_id,
            day,
            within_s,
        }
    }
}

impl CapExceeded {
    /// What is left of the cap, in the unit of the counter.
    #[must_use]
    pub fn left(&self) -> i64 {
        self.check
            .cap
            .unwrap_or(i64::MAX)
            .saturating_sub(self.used)
            .max(0)
    }

    /// The amounts of a cap in money: cap and rest.
    #[must_use]
    pub fn amounts(&self) -> Option<(Money, Money)> {
        let currency = self.check.counter.columns().currency?;
        let money = |minor| Amount::from_minor(minor).of(currency);
        Some((money(self.check.cap?), money(self.left())))
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    fn caps(text: &str) -> PartnerCaps {
        serde_json::from_str(text).unwrap()
    }

    fn usd(minor: i64) -> Money {
        Amount::from_minor(minor).of("USD".parse().unwrap())
    }

    #[test]
    fn only_caps_of_the_order_s_currency_are_checked() {
        let at = datetime!(2026-11-20 23:59:59 UTC);
        let text = r#"{"pending_orders":3,"pending_amount":{"EUR":1},"spend_per_day":{"USD":9},"credential_spend_per_day":{"EUR":1}}"#;
        let (caps, id) = (caps(text), CredentialId::generate());
        let spend = CapCheck {
            counter: CapCounter::Spend(at.date(), usd(1).currency, None),
            added: 500,
            cap: Some(900),
        };
        assert_eq!(caps.spend_checks(usd(500), id, at), [spend]);
        assert_eq!(caps.pending_checks(usd(500)).len(), 1);
        assert_eq!(caps.rate_checks(usd(500)), []);
        assert_eq!(caps.cancellation_check(at), None);
    }

    #[test]
    fn day_is_utc_wherever_the_clock_is() {
        let caps = caps(r#"{"cancellations_per_day":1}"#);
        let check = caps.cancellation_check(datetime!(2026-11-21 00:30 +1)).unwrap();
        assert_eq!(
            check.counter.columns().day,
            Some(time::macros::date!(2026 - 11 - 20))
        );
    }

    #[test]
    fn cap_is_reached_before_it_is_exceeded() {
        let check = |cap| CapCheck {
            counter: CapCounter::PendingOrders,
            added: 2,
            cap,
        };
        for (cap, used, expected) in [
            (Some(5), 3, false),
            (Some(5), 4, true),
            (Some(0), 0, true),
            (Some(i64::MAX), i64::MAX, false),
            (None, i64::MAX, false),
        ] {
            assert_eq!(check(cap).is_exceeded(used), expected, "{cap:?} {used}");
        }
        let exceeded = CapCheck::first_exceeded(&[check(None), check(Some(5))], &[9, 4]).unwrap();
        assert_eq!((exceeded.used, exceeded.left()), (4, 1));
    }
}
