//! How does a service fare with what years have left? A stand's database is filled before a run by plain SQL, as its
//! superuser: partners, orders with all that belongs to them, keys that are still kept, and stock.
//!
//! Rule: whatever is put there keeps every invariant of `vouchsafe verify`; the run's audit asks it. This is the one part of
//! the package that knows the service's tables: over the wire ten million orders would take an hour, and days of waiting.

use std::fmt;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

/// Rows of each kind that one statement puts there: some seconds of work, so that the bar moves.
const STEP: u64 = 50_000;

/// Vouchers of a chunk, as an import forms them.
const CHUNK: u64 = 500;

/// Vouchers of a SKU, about; and so how many SKUs there are.
const VOUCHERS_OF_SKU: u64 = 1_000;

/// Most SKUs.
const MAX_SKUS: u64 = 10_000;

/// How much is put there.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PrefillSizes {
    /// Orders of the last hundred days, each of a voucher that is sold.
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub orders: u64,
    /// How many of them are of today, with their answers kept under their keys.
    #[arg(long, default_value_t = 1_000_000)]
    pub keys: u64,
    /// Vouchers that nobody has bought yet.
    #[arg(long, default_value_t = 10_000_000)]
    pub stock: u64,
    /// Partners, among whom the orders are spread evenly.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub partners: u64,
}

/// Why nothing was put there.
#[derive(Debug, thiserror::Error)]
pub enum PrefillError {
    /// An answer is kept of an order.
    #[error("{keys} keys are more than {orders} orders")]
    Keys {
        /// So many keys were wanted,
        keys: u64,
        /// and so many orders.
        orders: u64,
    },
    #[error("cannot fill the database")]
    Database(#[from] sqlx::Error),
}

/// What is put there, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    name: &'static str,
    sql: &'static str,
    rows: u64,
}

impl PrefillSizes {
    fn skus(&self) -> u64 {
        ((self.orders + self.stock) / VOUCHERS_OF_SKU).clamp(1, MAX_SKUS)
    }

    fn kinds(&self) -> [Kind; 5] {
        let vouchers = self.orders + self.stock;
        let kind = |name, sql, rows| Kind { name, sql, rows };
        [
            kind("SKUs", include_str!("prefill/sql/products.sql"), self.skus()),
            kind("partners", include_str!("prefill/sql/partners.sql"), self.partners),
            kind(
                "chunks",
                include_str!("prefill/sql/chunks.sql"),
                vouchers.div_ceil(CHUNK),
            ),
            kind("vouchers", include_str!("prefill/sql/vouchers.sql"), vouchers),
            kind("orders", include_str!("prefill/sql/orders.sql"), self.orders),
        ]
    }
}

impl fmt::Display for PrefillSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            orders,
            keys,
            stock,
            partners,
        } = self;
        write!(
            f,
            "{orders} orders of {partners} partners, {keys} kept answers, {stock} vouchers in stock"
        )
    }
}

/// Fills the database of these options, which are the superuser's; returns when all of it is on disk. The service learns of
/// partners and products at its next start.
///
/// # Errors
/// [`GrowthError`]; what was put there before stays.
pub async fn prefill_database(options: &PgConnectOptions, growth: &PrefillSizes) -> Result<(), PrefillError> {
    let PrefillSizes { orders, keys, .. } = *growth;
    if keys > orders {
        return Err(PrefillError::Keys { keys, orders });
    }
    let mut connection = PgConnection::connect_with(options).await?;
    for setting in [
        "SET statement_timeout = 0",
        // What a crash would lose is put there again; the checkpoint at the end is what counts.
        "SET synchronous_commit = off",
        "SET timezone = 'UTC'",
    ] {
        sqlx::query(setting).execute(&mut connection).await?;
    }
    let sizes = [orders, keys, growth.stock, growth.partners, growth.skus(), CHUNK];
    let mut plan = sqlx::query(include_str!("prefill/sql/plan.sql"));
    for size in sizes {
        plan = plan.bind(i64::try_from(size).unwrap_or(i64::MAX));
    }
    plan.execute(&mut connection).await?;
    sqlx::query(include_str!("prefill/sql/reserve.sql"))
        .execute(&mut connection)
        .await?;
    for kind in growth.kinds() {
        put(&mut connection, kind).await?;
    }
    for statement in ["VACUUM (ANALYZE)", "CHECKPOINT"] {
        let bar = bar(statement, 1);
        sqlx::query(statement).execute(&mut connection).await?;
        bar.finish_and_clear();
    }
    connection.close().await?;
    Ok(())
}

async fn put(connection: &mut PgConnection, kind: Kind) -> sqlx::Result<()> {
    let bar = bar(kind.name, kind.rows);
    for (from, to) in steps(kind.rows) {
        sqlx::query(kind.sql)
            .bind(i64::try_from(from).unwrap_or(i64::MAX))
            .bind(i64::try_from(to).unwrap_or(i64::MAX))
            .execute(&mut *connection)
            .await?;
        bar.set_position(to);
    }
    bar.finish_and_clear();
    Ok(())
}

/// From the first to the last of each step, counted from 1.
fn steps(rows: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..rows.div_ceil(STEP)).map(move |step| (step * STEP + 1, rows.min((step + 1) * STEP)))
}

/// Drawn on a terminal alone.
fn bar(name: &'static str, rows: u64) -> ProgressBar {
    let bar = ProgressBar::new(rows);
    if let Ok(style) =
        ProgressStyle::with_template("{elapsed:>4} [{bar:40}] {msg} {pos} of {len}, {eta} left")
    {
        bar.set_style(style);
    }
    bar.set_message(name);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_of_all_rows_once() {
        for (rows, expected) in [
            (0, vec![]),
            (1, vec![(1, 1)]),
            (STEP, vec![(1, STEP)]),
            (STEP + 1, vec![(1, STEP), (STEP + 1, STEP + 1)]),
        ] {
            assert_eq!(steps(rows).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn there_is_a_chunk_for_each_voucher_and_a_sku_for_some() {
        let growth = PrefillSizes {
            orders: 1_000,
            keys: 10,
            stock: 1_001,
            partners: 3,
        };
        let rows: Vec<_> = growth.kinds().iter().map(|kind| kind.rows).collect();
        assert_eq!(rows, [2, 3, 5, 2_001, 1_000]);
    }
}
