//! Prefill of a deployment's database with plain SQL as the superuser: partners, delivered orders with their
//! rows in all tables, stored responses, and stock.
//!
//! Rule: the inserted data satisfies every invariant of `vouchsafe verify`, which the audit of the run
//! checks. This is the only part of the crate that knows the tables of the service: ten million orders over
//! the API would take more than an hour.

use std::fmt;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use crate::deployment::TestDeployment;
use crate::deployment::postgres::SERVICE_DATABASE;
use crate::runtime::new_runtime;

/// Rows per statement: a few seconds of work, so that a cancelled prefill ends soon.
const ROWS_PER_STATEMENT: u64 = 50_000;

/// Vouchers per chunk, as in an import.
const CHUNK_SIZE: u64 = 500;

/// Approximate vouchers per SKU; determines the number of SKUs.
const VOUCHERS_PER_SKU: u64 = 1_000;

/// Upper bound for the number of SKUs.
const MAX_SKUS: u64 = 10_000;

/// Number of rows to insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefillSizes {
    /// Orders of the last 100 days, each with one sold voucher.
    orders: u64,
    /// Number of these orders that date from today and have a stored response.
    stored_responses: u64,
    /// Unsold vouchers.
    stock: u64,
    /// The orders are distributed evenly over them.
    partners: u64,
}

impl PrefillSizes {
    /// A database with so many orders, as many unsold vouchers, a tenth of stored responses and a hundredth
    /// of partners.
    #[must_use]
    pub fn for_orders(orders: u64) -> Self {
        Self {
            orders,
            stored_responses: orders / 10,
            stock: orders,
            partners: (orders / 100).max(1),
        }
    }

    fn sku_count(&self) -> u64 {
        ((self.orders + self.stock) / VOUCHERS_PER_SKU).clamp(1, MAX_SKUS)
    }

    /// Statements in order, each with its number of rows.
    fn statements(&self) -> [(&'static str, u64); 5] {
        let vouchers = self.orders + self.stock;
        [
            (include_str!("sql/products.sql"), self.sku_count()),
            (include_str!("sql/partners.sql"), self.partners),
            (include_str!("sql/chunks.sql"), vouchers.div_ceil(CHUNK_SIZE)),
            (include_str!("sql/vouchers.sql"), vouchers),
            (include_str!("sql/orders.sql"), self.orders),
        ]
    }
}

impl fmt::Display for PrefillSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            orders,
            stored_responses,
            stock,
            partners,
        } = self;
        write!(
            f,
            "{orders} orders of {partners} partners, {stored_responses} stored responses, {stock} vouchers in stock"
        )
    }
}

/// Fills the database of a deployment, then restarts the service, which reads partners and products at its
/// start. Blocks.
///
/// # Errors
/// If a statement fails, after which rows of earlier statements remain, or the service does not restart.
pub fn prefill_deployment(deployment: &mut TestDeployment, sizes: &PrefillSizes) -> anyhow::Result<()> {
    let runtime = new_runtime()?;
    let superuser = deployment.postgres()?.superuser_options();
    runtime.block_on(prefill_database(&superuser.database(SERVICE_DATABASE), sizes))?;
    deployment.shut_down()?;
    deployment.restart()?;
    runtime.block_on(deployment.wait_until_ready())
}

/// Returns after a checkpoint.
async fn prefill_database(options: &PgConnectOptions, sizes: &PrefillSizes) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect_with(options).await?;
    for setting in [
        "SET statement_timeout = 0",
        // A crash would mean a new prefill anyway; the checkpoint at the end makes the rows durable.
        "SET synchronous_commit = off",
        "SET timezone = 'UTC'",
    ] {
        sqlx::query(setting).execute(&mut connection).await?;
    }
    let counts = [
        sizes.orders,
        sizes.stored_responses,
        sizes.stock,
        sizes.partners,
        sizes.sku_count(),
        CHUNK_SIZE,
    ];
    let mut plan = sqlx::query(include_str!("sql/plan.sql"));
    for count in counts {
        plan = plan.bind(to_bigint(count));
    }
    plan.execute(&mut connection).await?;
    sqlx::query(include_str!("sql/reserve.sql"))
        .execute(&mut connection)
        .await?;
    for (sql, rows) in sizes.statements() {
        for (from, to) in row_ranges(rows) {
            let statement = sqlx::query(sql).bind(to_bigint(from)).bind(to_bigint(to));
            statement.execute(&mut connection).await?;
        }
    }
    for statement in ["VACUUM (ANALYZE)", "CHECKPOINT"] {
        sqlx::query(statement).execute(&mut connection).await?;
    }
    connection.close().await
}

fn to_bigint(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
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
    fn rows_follow_from_orders() {
        let rows = PrefillSizes::for_orders(1_200).statements().map(|(_, rows)| rows);
        assert_eq!(rows, [2, 12, 5, 2_400, 1_200]);
    }
}
