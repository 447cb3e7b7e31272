//! Counters of money moved by committed ledger entries, by currency.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use vouchsafe_domain::ledger::Movement;
use vouchsafe_domain::money::Currency;

/// Money that entered and left wallets. The number of series is bounded by the currencies of ISO 4217.
#[derive(Debug, Clone, Default)]
pub(super) struct MoneyMetrics(Arc<Mutex<Totals>>);

/// Summed in minor units: a sum of decimals in floating point would drift.
#[derive(Debug, Default)]
pub(super) struct Totals {
    debited: ByCurrency,
    credited: ByCurrency,
}

type ByCurrency = BTreeMap<(Currency, &'static str), u64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MoneyLabels {
    currency: String,
    kind: &'static str,
}

impl MoneyMetrics {
    /// The totals of all lanes, for the entries of a batch.
    pub(super) fn lock(&self) -> MutexGuard<'_, Totals> {
        self.0.lock()
    }
}

impl Totals {
    pub(super) fn add(&mut self, movement: &Movement) {
        let minor = movement.amount.minor();
        let totals = if minor < 0 {
            &mut self.debited
        } else {
            &mut self.credited
        };
        let kind = movement.kind.into_str();
        let total = totals.entry((movement.currency, kind)).or_default();
        *total = total.saturating_add(minor.unsigned_abs());
    }
}

impl Collector for MoneyMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let totals = self.lock();
        for (name, help, by_currency) in [
            (
                "money_debited",
                "Money debited from wallets in major units of the currency, by kind of ledger entry.",
                &totals.debited,
            ),
            (
                "money_credited",
                "Money credited to wallets in major units of the currency, by kind of ledger entry.",
                &totals.credited,
            ),
        ] {
            if by_currency.is_empty() {
                continue;
            }
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for ((currency, kind), minor) in by_currency {
                let labels = MoneyLabels {
                    currency: currency.to_string(),
                    kind,
                };
                let total = ConstCounter::new(to_major_units(*minor, *currency));
                total.encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// The decimal amount, exact up to 2^53 minor units, as every sample of Prometheus.
fn to_major_units(minor: u64, currency: Currency) -> f64 {
    minor as f64 / f64::from(10_u32.pow(currency.exponent()))
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;
    use vouchsafe_domain::ids::TransactionId;
    use vouchsafe_domain::ledger::LedgerKind;
    use vouchsafe_domain::money::Amount;

    use super::*;

    fn movement(kind: LedgerKind, currency: &str, minor: i64) -> Movement {
        Movement {
            transaction_id: TransactionId::from_uuid(uuid::Uuid::nil()),
            currency: currency.parse().unwrap(),
            kind,
            amount: Amount::from_minor(minor),
            order_id: None,
            payout_id: None,
            reference: None,
            booked_by: None,
        }
    }

    fn encoded(money: &MoneyMetrics) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(money.clone()));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn amounts_are_summed_exactly_by_currency_kind_and_sign() {
        let money = MoneyMetrics::default();
        assert_eq!(encoded(&money), "# EOF\n", "no series without a movement");
        for (kind, currency, minor) in [
            (LedgerKind::Debit, "USD", -10),
            (LedgerKind::Debit, "USD", -20),
            (LedgerKind::Debit, "JPY", -250),
            (LedgerKind::Debit, "KWD", -1),
            (LedgerKind::Refund, "USD", 1_234),
            (LedgerKind::TopUp, "USD", 500_000),
            (LedgerKind::Adjustment, "USD", -99),
            (LedgerKind::Adjustment, "USD", 1),
        ] {
            money.lock().add(&movement(kind, currency, minor));
        }
        let text = encoded(&money);
        let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                r#"money_debited_total{currency="JPY",kind="DEBIT"} 250.0"#,
                r#"money_debited_total{currency="KWD",kind="DEBIT"} 0.001"#,
                r#"money_debited_total{currency="USD",kind="ADJUSTMENT"} 0.99"#,
                // 0.1 + 0.2 is not 0.3 in floating point.
                r#"money_debited_total{currency="USD",kind="DEBIT"} 0.3"#,
                r#"money_credited_total{currency="USD",kind="ADJUSTMENT"} 0.01"#,
                r#"money_credited_total{currency="USD",kind="REFUND"} 12.34"#,
                r#"money_credited_total{currency="USD",kind="TOP_UP"} 5000.0"#,
            ]
        );
    }

    #[test]
    fn total_at_its_limit_stays_there() {
        let money = MoneyMetrics::default();
        for _ in 0..3 {
            money.lock().add(&movement(LedgerKind::Debit, "USD", i64::MIN));
        }
        assert_eq!(money.lock().debited.values().copied().max(), Some(u64::MAX));
    }
}
