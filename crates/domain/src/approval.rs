//! Approval rules: decide whether an order needs an operator's approval. Pure.

use std::collections::BTreeMap;

use super::money::{Amount, Currency, Money};
use super::order::PricedOrder;
use super::product::ApprovalPolicy;

/// How the rule treats an order whose currency has no threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OtherCurrencies {
    RequireApproval,
    #[default]
    NoApproval,
}

/// Conditions under which an order of a partner needs approval; any one of them is enough. The default
/// requires none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApprovalRule {
    /// The order total exceeds this threshold of its currency, in minor units.
    pub amount_over: BTreeMap<Currency, Amount>,
    pub other_currencies: OtherCurrencies,
    /// The order is one of the partner's first `first_orders` orders.
    pub first_orders: u32,
}

impl ApprovalRule {
    /// Whether the rule needs the number of the partner's earlier orders.
    #[must_use]
    pub const fn is_order_count_needed(&self) -> bool {
        self.first_orders > 0
    }

    /// Whether an order of `total` needs approval. `earlier_orders: None` counts as the partner's first
    /// order.
    #[must_use]
    pub fn is_triggered_by(&self, total: Money, earlier_orders: Option<u64>) -> bool {
        let by_amount = match self.amount_over.get(&total.currency) {
            Some(threshold) => total.amount > *threshold,
            None => self.other_currencies == OtherCurrencies::RequireApproval,
        };
        by_amount || earlier_orders.unwrap_or(0) < u64::from(self.first_orders)
    }
}

/// Whether an operator must approve the order before stock is allocated.
#[must_use]
pub fn is_approval_required(
    order: &PricedOrder,
    rule: Option<&ApprovalRule>,
    earlier_orders: Option<u64>,
) -> bool {
    let by_rule = rule.is_some_and(|rule| rule.is_triggered_by(order.total, earlier_orders));
    order.lines.iter().any(|line| match line.approval {
        ApprovalPolicy::Always => true,
        ApprovalPolicy::Rule => by_rule,
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
    fn order_above_threshold_or_in_unlisted_currency_needs_approval() {
        use OtherCurrencies::{NoApproval, RequireApproval};
        for (other, total, expected) in [
            (NoApproval, money(50_000, "USD"), false),
            (NoApproval, money(50_001, "USD"), true),
            (NoApproval, money(1_000_000, "EUR"), false),
            (RequireApproval, money(50_000, "USD"), false),
            (RequireApproval, money(50_001, "USD"), true),
            (RequireApproval, money(1, "EUR"), true),
        ] {
            assert_eq!(
                rule(0, other).is_triggered_by(total, None),
                expected,
                "{other:?} {total:?}"
            );
        }
        assert!(!ApprovalRule::default().is_triggered_by(money(i64::MAX, "USD"), Some(0)));
    }

    #[test]
    fn first_orders_need_approval_and_uncounted_order_is_first() {
        let small = money(1, "USD");
        for (first_orders, earlier, expects_count, expected) in [
            (0, None, false, false),
            (0, Some(0), false, false),
            (2, Some(0), true, true),
            (2, Some(1), true, true),
            (2, Some(2), true, false),
            (2, Some(u64::MAX), true, false),
            (2, None, true, true),
        ] {
            let rule = rule(first_orders, OtherCurrencies::NoApproval);
            let found = (rule.is_order_count_needed(), rule.is_triggered_by(small, earlier));
            assert_eq!(found, (expects_count, expected), "{first_orders} {earlier:?}");
        }
    }
}
