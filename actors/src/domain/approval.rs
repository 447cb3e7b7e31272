//! Whether an order waits for an operator: by its products, or by what was agreed with its partner. Pure.

use std::collections::BTreeMap;

use super::money::{Amount, Currency, Money};
use super::order::PricedOrder;
use super::product::Approval;

/// What becomes of an order in a currency without a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OtherCurrencies {
    Approve,
    #[default]
    Pass,
}

/// When an order of a partner waits for an operator. Any of the three is enough; the default lets everything through.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApprovalRule {
    /// Its total is more than this, in minor units of the currency.
    pub amount_over: BTreeMap<Currency, Amount>,
    /// Its currency has no threshold.
    pub other_currencies: OtherCurrencies,
    /// It is among the first so many of the partner.
    pub first_orders: u32,
}

impl ApprovalRule {
    /// Whether the rule asks how many orders the partner placed before.
    #[must_use]
    pub const fn counts_orders(&self) -> bool {
        self.first_orders > 0
    }

    /// Whether an order over `total` waits. One of which nobody knows how many came before is taken for the first.
    #[must_use]
    pub fn waits(&self, total: Money, earlier_orders: Option<u64>) -> bool {
        let by_amount = match self.amount_over.get(&total.currency) {
            Some(threshold) => total.amount > *threshold,
            None => self.other_currencies == OtherCurrencies::Approve,
        };
        by_amount || earlier_orders.unwrap_or(0) < u64::from(self.first_orders)
    }
}

/// Whether an order waits for an operator before anything of it is allocated.
#[must_use]
pub fn waits_for_approval(
    order: &PricedOrder,
    rule: Option<&ApprovalRule>,
    earlier_orders: Option<u64>,
) -> bool {
    let by_rule = rule.is_some_and(|rule| rule.waits(order.total, earlier_orders));
    order.lines.iter().any(|line| match line.approval {
        Approval::Always => true,
        Approval::Rule => by_rule,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(minor: i64, currency: &str) -> Money {
        Amount::from_minor(minor).of(currency.parse().unwrap())
    }

    fn rule(first_orders: u32, other_currencies: OtherCurrencies) -> ApprovalRule {
        let usd = money(50_000, "USD");
        ApprovalRule {
            amount_over: BTreeMap::from([(usd.currency, usd.amount)]),
            other_currencies,
            first_orders,
        }
    }

    #[test]
    fn an_order_waits_above_its_threshold_or_where_there_is_none_if_that_was_agreed() {
        use OtherCurrencies::{Approve, Pass};
        for (other, total, waits) in [
            (Pass, money(50_000, "USD"), false),
            (Pass, money(50_001, "USD"), true),
            (Pass, money(1_000_000, "EUR"), false),
            (Approve, money(50_000, "USD"), false),
            (Approve, money(50_001, "USD"), true),
            (Approve, money(1, "EUR"), true),
        ] {
            assert_eq!(rule(0, other).waits(total, None), waits, "{other:?} {total:?}");
        }
        assert!(!ApprovalRule::default().waits(money(i64::MAX, "USD"), Some(0)));
    }

    #[test]
    fn the_first_orders_wait_and_one_that_was_not_counted_is_taken_for_the_first() {
        let small = money(1, "USD");
        for (first_orders, earlier, counts, waits) in [
            (0, None, false, false),
            (0, Some(0), false, false),
            (2, Some(0), true, true),
            (2, Some(1), true, true),
            (2, Some(2), true, false),
            (2, Some(u64::MAX), true, false),
            (2, None, true, true),
        ] {
            let rule = rule(first_orders, OtherCurrencies::Pass);
            let found = (rule.counts_orders(), rule.waits(small, earlier));
            assert_eq!(found, (counts, waits), "{first_orders} {earlier:?}");
        }
    }
}
