//! Allocations of a day: which orders belong to it, when days are counted, and vouchers without records.

use serde_json::{Value, json};
use sqlx::Executor as _;
use time::macros::{date, datetime};
use time::{Date, Duration, OffsetDateTime};
use uuid::Uuid;
use vouchsafe_domain::reconciliation::allocations::{
    BatchAllocations, DayAllocations, RecordsAvailability, VoucherSource,
};
use vouchsafe_domain::timestamp;
use vouchsafe_store::AuditActor;

use super::test_shop::{TestShop, VENDOR, at, vendor_record};

const DAY: Date = date!(2026 - 11 - 20);

impl TestShop {
    /// Adds the product of the fixture, of a vendor without records.
    async fn add_product(&mut self) {
        let product = "INSERT INTO categories (category_id, name) VALUES ('games', 'Games');
            INSERT INTO products (product_id, name, brand, category_id, vendor, currency, countries, denominations,
                                  expiry_policy, redemption, route, approval, returnable, min_validity_days, low_stock_at,
                                  discontinued)
            VALUES ('game-us', 'Game', 'Game', 'games', 'by-hand', 'USD', '{}', '{2500}', '{\"type\":\"NONE\"}', '{}', 'stock',
                    'rule', false, 0, 0, false)";
        self.connection.execute(sqlx::raw_sql(product)).await.unwrap();
    }

    /// Adds imported codes with references `{prefix}1` …, of a batch or of none.
    async fn add_imported(&mut self, batch: Option<&str>, prefix: &str, count: i32) {
        let import_id: Option<i64> = match batch {
            Some(batch) => {
                let batch = sqlx::query_scalar(
                    "INSERT INTO stock_imports (vendor, batch) VALUES ('by-hand', $1) RETURNING import_id",
                )
                .bind(batch);
                Some(batch.fetch_one(&mut self.connection).await.unwrap())
            }
            None => None,
        };
        sqlx::query(
            "INSERT INTO codes (code_id, product_id, denomination, blind_index, code_index, key_id, nonce, ciphertext,
                                vendor_reference, import_id)
             SELECT nextval('code_ids'), 'game-us', 2500, sha256(convert_to($1 || n, 'UTF8')), sha256(convert_to('code ' || $1 || n, 'UTF8')), 1,
                    substr(sha256('nonce'), 1, 12), 'sealed', $1 || n, $3
               FROM generate_series(1, $2) AS n",
        )
        .bind(prefix)
        .bind(count)
        .bind(import_id)
        .execute(&mut self.connection)
        .await
        .unwrap();
    }

    /// Adds a closed order with this timeline that holds the codes with these references. Its last event was
    /// committed a second after the last stage.
    async fn add_order(&mut self, timeline: &[(&str, OffsetDateTime)], references: &[&str]) {
        let (created, settled) = (timeline[0].1, timeline[timeline.len() - 1]);
        let stages: Vec<Value> = timeline
            .iter()
            .map(|(status, at)| json!({ "status": status, "at": timestamp::format(*at).unwrap(), "by": "system" }))
            .collect();
        sqlx::query(
            "WITH feed AS (
                INSERT INTO feeds (partner_id, last_number) VALUES ($7, 1)
             ), event AS (
                INSERT INTO events (partner_id, number, count, order_id, first_sequence, body, created_at)
                VALUES ($7, 1, 1, $1, 1, '{}', $4)
             ), taken AS (
                INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
                SELECT code_id, gen_random_uuid(), $7, $1, 0 FROM codes WHERE vendor_reference = ANY ($6)
             ), stocked AS (
                INSERT INTO stock (stock_id, chunk_id, code_id)
                SELECT code_id, 1, code_id FROM codes WHERE vendor_reference = ANY ($6)
             )
             INSERT INTO orders (partner_id, order_id, status, currency, total, closed, last_sequence, lines, timeline,
                                 created_at, updated_at)
             VALUES ($7, $1, $2, 'USD', 2500, true, 1, '[]', $5, $3, $4)",
        )
        .bind(Uuid::now_v7())
        .bind(settled.0)
        .bind(created)
        .bind(settled.1 + Duration::SECOND)
        .bind((stages.len() > 1).then(|| Value::from(stages)))
        .bind(references)
        .bind(Uuid::now_v7())
        .execute(&mut self.connection)
        .await
        .unwrap();
    }

    async fn allocations(&self, day: Date) -> Option<DayAllocations> {
        self.store.reconciliations.find_allocations(day).await.unwrap()
    }
}

fn batch(
    vendor: &str,
    source: VoucherSource,
    batch: Option<&str>,
    orders: i64,
    vouchers: i64,
    records: RecordsAvailability,
    [matched, drifted, unmatched]: [i64; 3],
) -> BatchAllocations {
    BatchAllocations {
        vendor: vendor.to_owned(),
        source,
        batch: batch.map(str::to_owned),
        orders,
        vouchers,
        matched,
        drifted,
        unmatched,
        records,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn order_counts_on_the_day_of_its_settlement() {
    let mut shop = TestShop::open().await;
    shop.add_product().await;
    shop.add_imported(Some("b-1"), "I-", 6).await;
    let before = datetime!(2026-11-19 23:59:59.9 UTC);
    // Delivered at once, at the first and after the last moment of the day.
    shop.add_order(&[("DELIVERED", at(DAY, 0))], &["I-1"]).await;
    shop.add_order(&[("DELIVERED", at(DAY, 0) + Duration::DAY)], &["I-2"])
        .await;
    // Placed the day before: delivered on the day, or the day before with a partial cancellation later.
    shop.add_order(
        &[("PENDING", before), ("DELIVERED", at(DAY, 10))],
        &["I-3", "I-4"],
    )
    .await;
    let partial = [("DELIVERED", before), ("PARTIALLY_DELIVERED", at(DAY, 11))];
    shop.add_order(&partial, &["I-5"]).await;
    // Its first part came the day before; the rest was refunded on the day.
    let closed = [
        ("PENDING", before - Duration::HOUR),
        ("PARTIALLY_DELIVERED", before),
        ("PARTIALLY_DELIVERED", at(DAY, 12)),
    ];
    shop.add_order(&closed, &["I-6"]).await;
    shop.compare(DAY, Vec::new()).await;
    let counted = shop.allocations(DAY).await.unwrap();
    assert_eq!((counted.orders_total, counted.vouchers_allocated), (3, 4));
    let none = RecordsAvailability::None;
    let expected = batch("by-hand", VoucherSource::Import, Some("b-1"), 3, 4, none, [0; 3]);
    assert_eq!(counted.batches, [expected]);
    assert_eq!(shop.allocations(DAY.next_day().unwrap()).await, None);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_have_vendor_records_or_none() {
    let mut shop = TestShop::open().await;
    shop.add_product().await;
    let bought = shop.add_purchase(VENDOR, at(DAY, 8)).await;
    let other = shop.add_purchase("silent", at(DAY, 8)).await;
    shop.add_vouchers(bought, "A-", 4, at(DAY, 8)).await;
    shop.add_vouchers(other, "S-", 2, at(DAY, 8)).await;
    shop.add_imported(Some("b-1"), "I-", 2).await;
    shop.add_imported(None, "O-", 1).await;
    shop.add_order(
        &[("DELIVERED", at(DAY, 9))],
        &["A-1", "A-2", "A-3", "A-4", "S-1", "I-1"],
    )
    .await;
    shop.add_order(&[("DELIVERED", at(DAY, 10))], &["S-2", "I-2", "O-1"])
        .await;
    let mut differs = vendor_record(DAY, "A-2", Some(bought));
    differs.terms.product_id = "other".parse().unwrap();
    let records = vec![
        vendor_record(DAY, "A-1", Some(bought)),
        differs,
        vendor_record(DAY, "A-4", None),
    ];
    shop.compare(DAY, records).await;
    let expected = [
        batch(
            VENDOR,
            VoucherSource::Purchase,
            None,
            1,
            4,
            RecordsAvailability::Compared,
            [2, 1, 1],
        ),
        batch(
            "by-hand",
            VoucherSource::Import,
            None,
            1,
            1,
            RecordsAvailability::None,
            [0; 3],
        ),
        batch(
            "by-hand",
            VoucherSource::Import,
            Some("b-1"),
            2,
            2,
            RecordsAvailability::None,
            [0; 3],
        ),
        batch(
            "silent",
            VoucherSource::Purchase,
            None,
            2,
            2,
            RecordsAvailability::None,
            [0; 3],
        ),
    ];
    assert_eq!(shop.allocations(DAY).await.unwrap().batches, expected);
    // Once the vendor can list its sales, they are outstanding.
    let mock = "INSERT INTO vendors (vendor_id, adapter, concurrency) VALUES ('silent', 'mock', 1)";
    shop.connection.execute(mock).await.unwrap();
    let batches = shop.allocations(DAY).await.unwrap().batches;
    assert_eq!(batches[3].records, RecordsAvailability::Pending);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn days_are_counted_once_and_on_request() {
    let shop = TestShop::open().await;
    let count = async || shop.store.reconciliations.count_due_day().await.unwrap();
    assert_eq!(count().await, None, "no deployment");
    let mut connection = shop.database.connect().await;
    let deployment =
        "INSERT INTO deployment (environment, created_at) VALUES ('sandbox', now() - interval '49 hours')";
    connection.execute(deployment).await.unwrap();
    let now = shop.store.reconciliations.database_time().await.unwrap();
    let last = (now - Duration::hours(2)).date().previous_day().unwrap();
    let mut days = Vec::new();
    while let Some(day) = count().await {
        days.push(day);
    }
    let first = (now - Duration::hours(49)).date();
    let expected: Vec<Date> = (0..7)
        .rev()
        .map(|ago| last - Duration::days(ago))
        .filter(|day| *day >= first)
        .collect();
    assert_eq!(days, expected);
    let today = now.date();
    let request = shop
        .store
        .reconciliations
        .request(today, Vec::new(), AuditActor::service());
    request.await.unwrap();
    assert_eq!(count().await, Some(today));
    assert_eq!(count().await, None);
    let empty = shop.allocations(last).await.unwrap();
    assert_eq!((empty.orders_total, empty.batches), (0, Vec::new()));
    drop(connection);
    shop.close().await;
}
