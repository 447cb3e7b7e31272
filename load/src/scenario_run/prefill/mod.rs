//! Prefill of a deployment's database with plain SQL as the superuser: partners, delivered orders with their rows in
//! all tables, stored responses, and stock.
//!
//! Rule: the inserted data satisfies every invariant of `vouchsafe verify`, which the audit of the run checks. This
//! is the only part of the crate that knows the tables of the service: ten million orders over the API would take
//! more than an hour.

use std::fmt;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

/// Rows per statement: a few seconds of work, so that the progress bar moves.
const ROWS_PER_STATEMENT: u64 = 50_000;

/// Vouchers per chunk, as in an import.
const CHUNK_SIZE: u64 = 500;

/// Approximate vouchers per SKU; determines the number of SKUs.
const VOUCHERS_PER_SKU: u64 = 1_000;

/// Upper bound for the number of SKUs.
const MAX_SKUS: u64 = 10_000;

/// Number of rows to insert.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PrefillSizes {
    /// Number of orders of the last 100 days, each with one sold voucher
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub orders: u64,
    /// Number of these orders that date from today and have a stored response
    #[arg(long, default_value_t = 1_000_000)]
    pub keys: u64,
    /// Number of unsold vouchers
    #[arg(long, default_value_t = 10_000_000)]
    pub stock: u64,
    /// Number of partners; the orders are distributed evenly
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub partners: u64,
}

/// Reason for a failed prefill.
#[derive(Debug, thiserror::Error)]
pub enum PrefillError {
    #[error("--keys {keys} exceeds --orders {orders}")]
    Keys { keys: u64, orders: u64 },
    #[error("cannot prefill the database")]
    Database(#[from] sqlx::Error),
}

/// One kind of rows with its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowKind {
    name: &'static str,
    sql: &'static str,
    rows: u64,
}

impl PrefillSizes {
    fn sku_count(&self) -> u64 {
        ((self.orders + self.stock) / VOUCHERS_PER_SKU).clamp(1, MAX_SKUS)
    }

    fn row_kinds(&self) -> [RowKind; 5] {
        let vouchers = self.orders + self.stock;
        let row_kind = |name, sql, rows| RowKind { name, sql, rows };
        [
            row_kind("SKUs", include_str!("sql/products.sql"), self.sku_count()),
            row_kind("partners", include_str!("sql/partners.sql"), self.partners),
            row_kind(
                "chunks",
                include_str!("sql/chunks.sql"),
                vouchers.div_ceil(CHUNK_SIZE),
            ),
            row_kind("vouchers", include_str!("sql/vouchers.sql"), vouchers),
            row_kind("orders", include_str!("sql/orders.sql"), self.orders),
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
            "{orders} orders of {partners} partners, {keys} stored responses, {stock} vouchers in stock"
        )
    }
}

/// Fills the database with a superuser connection; returns after a checkpoint. The service reads partners and
/// products at its next start.
///
/// # Errors
/// [`PrefillError`]; rows of earlier statements remain.
pub async fn prefill_database(
    options: &PgConnectOptions,
    prefill: &PrefillSizes,
) -> Result<(), PrefillError> {
    let PrefillSizes { orders, keys, .. } = *prefill;
    if keys > orders {
        return Err(PrefillError::Keys { keys, orders });
    }
    let mut connection = PgConnection::connect_with(options).await?;
    for setting in [
        "SET statement_timeout = 0",
        // A crash would mean a new prefill anyway; the checkpoint at the end makes the rows durable.
        "SET synchronous_commit = off",
        "SET timezone = 'UTC'",
    ] {
        sqlx::query(setting).execute(&mut connection).await?;
    }
    let sizes = [
        orders,
        keys,
        prefill.stock,
        prefill.partners,
        prefill.sku_count(),
        CHUNK_SIZE,
    ];
    let mut plan = sqlx::query(include_str!("sql/plan.sql"));
    for size in sizes {
        plan = plan.bind(i64::try_from(size).unwrap_or(i64::MAX));
    }
    plan.execute(&mut connection).await?;
    sqlx::query(include_str!("sql/reserve.sql"))
        .execute(&mut connection)
        .await?;
    for row_kind in prefill.row_kinds() {
        insert_rows(&mut connection, row_kind).await?;
    }
    for statement in ["VACUUM (ANALYZE)", "CHECKPOINT"] {
        let progress_bar = progress_bar(statement, 1);
        sqlx::query(statement).execute(&mut connection).await?;
        progress_bar.finish_and_clear();
    }
    connection.close().await?;
    Ok(())
}

async fn insert_rows(connection: &mut PgConnection, row_kind: RowKind) -> sqlx::Result<()> {
    let progress_bar = progress_bar(row_kind.name, row_kind.rows);
    for (from, to) in row_ranges(row_kind.rows) {
        sqlx::query(row_kind.sql)
            .bind(i64::try_from(from).unwrap_or(i64::MAX))
            .bind(i64::try_from(to).unwrap_or(i64::MAX))
            .execute(&mut *connection)
            .await?;
        progress_bar.set_position(to);
    }
    progress_bar.finish_and_clear();
    Ok(())
}

/// First and last row number of each statement, counted from 1.
fn row_ranges(rows: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..rows.div_ceil(ROWS_PER_STATEMENT)).map(move |step| {
        (
            step * ROWS_PER_STATEMENT + 1,
            rows.min((step + 1) * ROWS_PER_STATEMENT),
        )
    })
}

/// Visible only on a terminal.
fn progress_bar(name: &'static str, rows: u64) -> ProgressBar {
    let progress_bar = ProgressBar::new(rows);
    if let Ok(style) =
        ProgressStyle::with_template("{elapsed:>4} [{bar:40}] {msg} {pos} of {len}, {eta} left")
    {
        progress_bar.set_style(style);
    }
    progress_bar.set_message(name);
    progress_bar.enable_steady_tick(Duration::from_millis(500));
    progress_bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_ranges_cover_all_rows_once() {
        for (rows, expected) in [
            (0, vec![]),
            (1, vec![(1, 1)]),
            (ROWS_PER_STATEMENT, vec![(1, ROWS_PER_STATEMENT)]),
            (
                ROWS_PER_STATEMENT + 1,
                vec![
                    (1, ROWS_PER_STATEMENT),
                    (ROWS_PER_STATEMENT + 1, ROWS_PER_STATEMENT + 1),
                ],
            ),
        ] {
            assert_eq!(row_ranges(rows).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn row_kinds_derive_chunk_and_sku_counts() {
        let prefill = PrefillSizes {
            orders: 1_000,
            keys: 10,
            stock: 1_001,
            partners: 3,
        };
        let rows: Vec<_> = prefill.row_kinds().iter().map(|row_kind| row_kind.rows).collect();
        assert_eq!(rows, [2, 3, 5, 2_001, 1_000]);
    }
}
