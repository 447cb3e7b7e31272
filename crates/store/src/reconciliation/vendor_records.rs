//! Vendor records: loaded page by page into a temporary table, then moved to `vendor_records`.

use std::collections::HashSet;

use sqlx::{Executor as _, PgConnection};
use time::OffsetDateTime;
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_domain::reconciliation::RecordLine;

use super::ReconciliationRun;

/// Temporary tables of a comparison. References sort by bytes, like the merge compares them.
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
        position     bigint PRIMARY KEY,
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
    CREATE TEMPORARY TABLE allocated (
        code_id    bigint PRIMARY KEY,
        voucher_id uuid NOT NULL
    )";

pub(super) async fn create_tables(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    connection.execute(TABLES).await.map(drop)
}

/// Inserts records. Returns the index of the first record with a duplicate reference; then a part of the page
/// is inserted.
pub(super) async fn insert_records(
    connection: &mut PgConnection,
    lines: Vec<RecordLine>,
) -> Result<Option<usize>, sqlx::Error> {
    let column = |of: fn(&RecordLine) -> &str| lines.iter().map(of).collect::<Vec<&str>>();
    let purchases: Vec<Option<PurchaseKey>> = lines.iter().map(|line| line.terms.purchase).collect();
    let denominations = || lines.iter().map(|line| line.terms.denomination);
    let amounts: Vec<Amount> = denominations().map(|denomination| denomination.amount).collect();
    let currencies: Vec<Currency> = denominations()
        .map(|denomination| denomination.currency)
        .collect();
    let sold_at: Vec<OffsetDateTime> = lines.iter().map(|line| line.sold_at).collect();
    // Not checked at compile time, when the temporary table does not exist.
    let inserted: Vec<String> = sqlx::query_scalar(
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
    .bind(currencies)
    .bind(sold_at)
    .fetch_all(connection)
    .await?;
    if inserted.len() == lines.len() {
        return Ok(None);
    }
    let mut inserted: HashSet<String> = inserted.into_iter().collect();
    let is_duplicate = |line: &RecordLine| !inserted.remove(line.reference.as_str());
    Ok(lines.iter().position(is_duplicate))
}

/// Replaces the vendor's stored records of the day.
pub(super) async fn replace_records(
    connection: &mut PgConnection,
    run: &ReconciliationRun,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM vendor_records WHERE vendor = $1 AND day = $2",
        run.vendor,
        run.day,
    )
    .execute(&mut *connection)
    .await?;
    // Not checked at compile time, when the temporary table does not exist.
    sqlx::query(
        "INSERT INTO vendor_records (vendor, day, reference, purchase_id, product_id, denomination, currency, sold_at)
         SELECT $1, $2, reference, purchase_id, product_id, denomination, currency, sold_at
           FROM pg_temp.incoming
          ORDER BY reference",
    )
    .bind(&run.vendor)
    .bind(run.day)
    .execute(&mut *connection)
    .await?;
    connection.execute("ANALYZE pg_temp.incoming").await.map(drop)
}
