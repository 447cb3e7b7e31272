//! How do a vendor's books come in? Page by page into a table of this connection, and into their place once all are there.

use std::collections::HashSet;

use sqlx::{Executor as _, PgConnection};
use time::OffsetDateTime;
use uuid::Uuid;

use super::ReconciliationRun;
use crate::reconciliation::RecordLine;
use crate::store::PgStore;
use crate::vault::blind_index::BlindIndex;

/// Tables of this connection alone: what is in them is gone with it. References are sorted by their bytes, as the walk
/// compares them.
const TABLES: &str = "
    CREATE TEMPORARY TABLE incoming (
        reference    text COLLATE \"C\" PRIMARY KEY,
        purchase_id  uuid,
        product_id   text NOT NULL,
        denomination bigint NOT NULL,
        currency     text NOT NULL,
        sold_at      timestamptz NOT NULL
    );
    CREATE TEMPORARY TABLE held (
        place        bigint PRIMARY KEY,
        reference    text NOT NULL,
        code_id      bigint NOT NULL,
        purchase_id  uuid NOT NULL,
        product_id   text NOT NULL,
        denomination bigint NOT NULL,
        currency     text NOT NULL,
        partner_id   uuid NOT NULL,
        order_id     uuid NOT NULL,
        due          boolean NOT NULL
    );
    CREATE TEMPORARY TABLE found (
        reference  text NOT NULL,
        kind       text, -- null: matched
        drift_id   uuid,
        code_id    bigint,
        partner_id uuid,
        order_id   uuid,
        ours       jsonb,
        theirs     jsonb
    );
    CREATE TEMPORARY TABLE given (
        code_id    bigint PRIMARY KEY,
        voucher_id uuid NOT NULL
    )";

impl PgStore {
    /// Which of these stand for codes that we have.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub(crate) async fn find_known_indexes(&self, indexes: Vec<BlindIndex>) -> Result<Vec<Vec<u8>>, sqlx::Error> {
        self.run(move |pool| async move {
            let indexes: Vec<&[u8]> = indexes.iter().map(|index| index.as_bytes().as_slice()).collect();
            sqlx::query_scalar("SELECT blind_index FROM codes WHERE blind_index = ANY ($1)")
                .bind(indexes)
                .fetch_all(&pool)
                .await
        })
        .await
    }
}

/// Makes the tables that a comparison works on.
pub(super) async fn create_tables(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    connection.execute(TABLES).await.map(drop)
}

/// Takes some lines in. Says which is the first of them whose reference is there already, from 0; then some are in and some
/// are not.
pub(super) async fn insert_records(
    connection: &mut PgConnection,
    lines: Vec<RecordLine>,
) -> Result<Option<usize>, sqlx::Error> {
    let column = |of: fn(&RecordLine) -> &str| lines.iter().map(of).collect::<Vec<&str>>();
    let purchases: Vec<Option<Uuid>> = lines
        .iter()
        .map(|line| line.terms.purchase.map(|key| key.0))
        .collect();
    let amounts: Vec<i64> = lines
        .iter()
        .map(|line| line.terms.denomination.amount.minor())
        .collect();
    let moments: Vec<OffsetDateTime> = lines.iter().map(|line| line.sold_at).collect();
    let taken: Vec<String> = sqlx::query_scalar(
        "INSERT INTO pg_temp.incoming (reference, purchase_id, product_id, denomination, currency, sold_at)
         SELECT reference, purchase_id, product_id, denomination, currency, sold_at
           FROM unnest($1::text[], $2::uuid[], $3::text[], $4::bigint[], $5::text[], $6::timestamptz[])
                AS l (reference, purchase_id, product_id, denomination, currency, sold_at)
         ON CONFLICT (reference) DO NOTHING
         RETURNING reference",
    )
    .bind(column(|line| line.reference.as_str()))
    .bind(purchases)
    .bind(column(|line| line.terms.product_id.as_str()))
    .bind(amounts)
    .bind(column(|line| line.terms.denomination.currency.as_str()))
    .bind(moments)
    .fetch_all(connection)
    .await?;
    if taken.len() == lines.len() {
        return Ok(None);
    }
    let mut taken: HashSet<String> = taken.into_iter().collect();
    let is_there = |line: &RecordLine| !taken.remove(line.reference.as_str());
    Ok(lines.iter().position(is_there))
}

/// Puts what came in the place of what the vendor said of the day before.
pub(super) async fn replace_records(connection: &mut PgConnection, books: &ReconciliationRun) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM vendor_records WHERE vendor = $1 AND day = $2")
        .bind(&books.vendor)
        .bind(books.day)
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "INSERT INTO vendor_records (vendor, day, reference, purchase_id, product_id, denomination, currency, sold_at)
         SELECT $1, $2, reference, purchase_id, product_id, denomination, currency, sold_at
           FROM pg_temp.incoming
          ORDER BY reference",
    )
    .bind(&books.vendor)
    .bind(books.day)
    .execute(&mut *connection)
    .await?;
    connection.execute("ANALYZE pg_temp.incoming").await.map(drop)
}
