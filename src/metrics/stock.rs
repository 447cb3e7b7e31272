//! Stock metrics: vouchers of all SKUs by state, SKUs without stock, and the SKUs with the least stock. Not
//! of every SKU: their number is unbounded.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::stock::level::StockLevel;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SkuLabels {
    product_id: String,
    denomination: String,
}

/// Sums over the stock levels of all SKUs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StockTotals {
    skus: i64,
    empty_skus: i64,
    free: i64,
    quarantined: i64,
    sold: i64,
    void: i64,
    expired: i64,
}

impl StockTotals {
    pub(crate) fn add(&mut self, level: &StockLevel) {
        self.skus += 1;
        self.empty_skus += i64::from(level.free == 0);
        self.free += level.free;
        self.quarantined += level.quarantined;
        self.sold += level.sold;
        self.void += level.void;
        self.expired += level.expired;
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct StockMetrics {
    vouchers: Family<StateLabels, Gauge>,
    skus: Gauge,
    empty_skus: Gauge,
    low_skus: Family<SkuLabels, Gauge>,
    named_low_skus: Arc<Mutex<HashSet<SkuLabels>>>,
}

impl StockMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let vouchers = "Vouchers of all SKUs, by state";
        registry.register("stock_vouchers", vouchers, self.vouchers.clone());
        registry.register("stock_skus", "SKUs that have or had stock", self.skus.clone());
        let empty = "SKUs that had stock and have no free voucher";
        registry.register("stock_skus_empty", empty, self.empty_skus.clone());
        let low = "Free vouchers of the SKUs with the least stock, at most 50 of those that are low";
        registry.register("stock_sku_low_vouchers", low, self.low_skus.clone());
    }

    /// Replaces the SKUs that are low: face value and free vouchers of each.
    pub(crate) fn set_low<'a>(&self, levels: impl Iterator<Item = (&'a ProductId, String, i64)>) {
        let mut named = HashSet::new();
        for (product_id, denomination, free) in levels {
            let labels = SkuLabels {
                product_id: product_id.to_string(),
                denomination,
            };
            self.low_skus.get_or_create(&labels).set(free);
            named.insert(labels);
        }
        // Those that stay are never missing: an alert that waits for some minutes would begin again.
        let mut before = self.named_low_skus.lock();
        for labels in before.difference(&named) {
            self.low_skus.remove(labels);
        }
        *before = named;
    }

    /// Updates the gauges.
    pub(crate) fn set(&self, totals: &StockTotals) {
        for (state, vouchers) in [
            ("free", totals.free),
            ("quarantined", totals.quarantined),
            ("sold", totals.sold),
            ("void", totals.void),
            ("expired", totals.expired),
        ] {
            self.vouchers.get_or_create(&StateLabels { state }).set(vouchers);
        }
        self.skus.set(totals.skus);
        self.empty_skus.set(totals.empty_skus);
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn skus_that_are_no_longer_low_have_no_series() {
        let (stock, mut registry) = (StockMetrics::default(), Registry::default());
        stock.register(&mut registry);
        let products: [ProductId; 2] = ["one", "two"].map(|id| id.parse().unwrap());
        let series = |low: &[(usize, i64)]| {
            let levels = low
                .iter()
                .map(|(index, free)| (&products[*index], "25.00 USD".to_owned(), *free));
            stock.set_low(levels);
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            let lines = text
                .lines()
                .filter(|line| line.starts_with("stock_sku_low_vouchers{"));
            let mut lines: Vec<_> = lines.map(ToOwned::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        let line = |product: &str, free| {
            format!("stock_sku_low_vouchers{{product_id=\"{product}\",denomination=\"25.00 USD\"}} {free}")
        };
        assert_eq!(series(&[(0, 3), (1, 4)]), [line("one", 3), line("two", 4)]);
        assert_eq!(series(&[(1, 2)]), [line("two", 2)]);
        assert_eq!(series(&[]), [""; 0]);
    }
}
