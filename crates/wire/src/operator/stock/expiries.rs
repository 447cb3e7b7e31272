//! Body of `GET /stock/expiries`.

use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_domain::stock::level::ExpiringStock;

/// Available vouchers that expire in a month.
#[derive(Serialize, ToSchema)]
pub struct StockExpiry {
    /// Month of the last valid day, as `YYYY-MM`; null: they never expire.
    #[schema(required, example = "2027-12")]
    month: Option<String>,
    /// Number of vouchers.
    vouchers: i64,
    /// Share of all available vouchers of the list, from 0 to 1.
    share: f64,
}

impl StockExpiry {
    /// The months in order; the vouchers that never expire come last.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn list(stock: Vec<ExpiringStock>) -> Vec<Self> {
        let all: i64 = stock.iter().map(|entry| entry.vouchers).sum();
        let body = |entry: ExpiringStock| Self {
            month: entry
                .month
                .map(|day| format!("{:04}-{:02}", day.year(), u8::from(day.month()))),
            vouchers: entry.vouchers,
            share: (entry.vouchers as f64 / all.max(1) as f64 * 10_000.0).round() / 10_000.0,
        };
        stock.into_iter().map(body).collect()
    }

    /// The position after this entry, in list order.
    #[must_use]
    pub fn cursor(&self) -> String {
        self.month.clone().unwrap_or_else(|| "never".to_owned())
    }
}
