//! Vouchers whose last valid day is over: they go out of sale as a void takes them, through the allocations' key.
//!
//! | step, in one transaction | locks |
//! |---|---|
//! | the turn: one node at a time | none is waited for |
//! | what has expired and is free gets its row of allocations | the rows, in the order of the stock ids, as a commit has it |
//! | the chunks are marked as looked through | those that nobody stands on; none is waited for |
//! | the trail tells how many of which SKU | |
//!
//! Rule: today is the database's day (UTC), and the last valid day is a valid one. Who was faster with the key has the
//! voucher: an order that was decided before midnight and commits first keeps it, else it is refused and decides again.

use serde::Serialize;
use sqlx::{PgConnection, PgPool};
use time::Date;
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::product::Sku;

use super::PgStore;
use crate::store::audit::{self, By, Deed, NOTHING, rows};

/// How many chunks one transaction looks through: some 5,000 rows, so that an order waits milliseconds for it.
const CHUNKS_AT_ONCE: usize = 10;

/// Taken for as long as a step lasts: nodes that start at the same minute do not do the same work. Any number that nothing
/// else uses.
const SWEEP_TURN: i64 = 0x5653_7377_6565_7000;

/// What a step took out of sale.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    pub expired: u64,
    /// Of which SKUs: their shelves in memory hold some of them still.
    pub skus: Vec<Sku>,
    /// Whether there is more to do at once.
    pub more: bool,
}

/// What the trail says of it.
#[derive(Serialize)]
struct Entry {
    expired: i64,
}

#[derive(sqlx::FromRow)]
struct TakenRow {
    product_id: String,
    denomination: i64,
    expired: i64,
}

impl PgStore {
    /// Takes some of the vouchers out of sale that have expired. May be repeated, and may run on several nodes: then all
    /// but one do nothing.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer; what was not taken out is found the next time.
    pub async fn sweep_expired(&self) -> Result<Swept, sqlx::Error> {
        self.run(|pool| async move { sweep(&pool).await }).await
    }
}

async fn sweep(pool: &PgPool) -> Result<Swept, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let (mine, today): (bool, Date) =
        sqlx::query_as("SELECT pg_try_advisory_xact_lock($1), (now() AT TIME ZONE 'UTC')::date")
            .bind(SWEEP_TURN)
            .fetch_one(&mut *transaction)
            .await?;
    if !mine {
        return Ok(Swept::default());
    }
    let chunks = chunks_with_expired(&mut transaction, today).await?;
    let taken = take(&mut transaction, &chunks, today).await?;
    let marked = mark(&mut transaction, &chunks, today).await?;
    let mut swept = Swept {
        more: chunks.len() == CHUNKS_AT_ONCE && marked > 0,
        ..Swept::default()
    };
    for row in taken {
        let sku = row.sku()?;
        write_trail(&mut transaction, &sku, row.expired).await?;
        swept.expired += row.expired.unsigned_abs();
        swept.skus.push(sku);
    }
    transaction.commit().await?;
    Ok(swept)
}

async fn chunks_with_expired(connection: &mut PgConnection, today: Date) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT chunk_id
           FROM chunks
          WHERE NOT emptied
            AND first_expiry < $1
            AND (swept_before IS NULL OR swept_before < $1)
          ORDER BY first_expiry, chunk_id
          LIMIT $2",
    )
    .bind(today)
    .bind(rows(CHUNKS_AT_ONCE))
    .fetch_all(connection)
    .await
}

/// Of any chunk, also of one that is kept for an order: what has expired is delivered to nobody.
async fn take(
    connection: &mut PgConnection,
    chunks: &[i64],
    today: Date,
) -> Result<Vec<TakenRow>, sqlx::Error> {
    sqlx::query_as(
        "WITH expired AS MATERIALIZED (
            SELECT c.product_id, c.denomination, s.stock_id
              FROM chunks AS c
             CROSS JOIN LATERAL free_stock(c.first_stock_id, c.last_stock_id, '-infinity') AS s
             WHERE c.chunk_id = ANY ($1)
               AND s.expiry < $2
         ), taken AS (
            INSERT INTO allocations (stock_id, taken_out)
            SELECT e.stock_id, 'expired'
              FROM expired AS e
             ORDER BY e.stock_id
            ON CONFLICT (stock_id) DO NOTHING
            RETURNING stock_id
         )
         SELECT e.product_id, e.denomination, count(*) AS expired
           FROM expired AS e
           JOIN taken AS t ON t.stock_id = e.stock_id
          GROUP BY e.product_id, e.denomination
          ORDER BY e.product_id, e.denomination",
    )
    .bind(chunks)
    .bind(today)
    .fetch_all(connection)
    .await
}

/// A chunk that a commit stands on is left for the next step: vouchers are locked already, and chunks come before them, so
/// none may be waited for.
async fn mark(connection: &mut PgConnection, chunks: &[i64], today: Date) -> Result<u64, sqlx::Error> {
    let marked = sqlx::query(
        "UPDATE chunks AS c
            SET swept_before = $2,
                emptied = NOT EXISTS (SELECT FROM free_stock(c.first_stock_id, c.last_stock_id, '-infinity'))
          WHERE c.chunk_id IN (
                SELECT k.chunk_id FROM chunks AS k WHERE k.chunk_id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED
                )",
    )
    .bind(chunks)
    .bind(today)
    .execute(connection)
    .await?;
    Ok(marked.rows_affected())
}

async fn write_trail(connection: &mut PgConnection, sku: &Sku, expired: i64) -> Result<(), sqlx::Error> {
    let subject = sku.to_string();
    let deed = Deed {
        action: "stock.expire",
        subject: &subject,
    };
    audit::write(
        connection,
        &By::service(),
        deed,
        NOTHING,
        Some(&Entry { expired }),
    )
    .await
}

impl TakenRow {
    fn sku(&self) -> Result<Sku, sqlx::Error> {
        let product_id = self.product_id.parse();
        Ok(Sku {
            product_id: product_id.map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            denomination: Amount::from_minor(self.denomination),
        })
    }
}
