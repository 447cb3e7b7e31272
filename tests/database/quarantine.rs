//! Quarantine of much stock, its release in parts, and the comparison with vouchers that were sold.

use sqlx::{Executor as _, PgConnection, PgPool};
use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe_domain::ids::VoucherId;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::Sku;
use vouchsafe_store::{
    AuditActor, PgStore, ReleaseGround, ReleaseOutcome, ReleasedPart, SoldVoucher, SoldVoucherOutcome,
    StockRelease,
};
use vouchsafe_test_harness::Database;

use crate::catalogue::{self, BRAND, product, seal_voucher, sku};
use crate::void::wait_until_blocked;

/// Two SKUs of chunks of two vouchers each. The first voucher of every hundredth chunk is sold.
const INSERT_CHUNKS: &str = "
    INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id, cleared_epoch)
    SELECT 'acme-us', CASE WHEN i <= 200000 THEN 2500 ELSE 5000 END, i * 2, i * 2 + 1, 0 FROM generate_series(1, 207000) AS i;
    INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
    SELECT i * 200, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 0 FROM generate_series(1, 2070) AS i";

/// Fails each statement that updates chunks.
const REFUSE_UPDATES: &str = "
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'a chunk is written'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE OR DELETE ON chunks FOR EACH STATEMENT EXECUTE FUNCTION refuse()";

async fn create_store() -> (Database, PgStore) {
    let database = Database::create().await;
    let store = PgStore::open(database.service_options(), Handle::current());
    catalogue::seed(&store, product(BRAND)).await;
    (database, store)
}

async fn start(store: &PgStore) {
    let start = store.quarantine.start("a test".to_owned(), AuditActor::service());
    start.await.unwrap();
}

async fn release(
    store: &PgStore,
    ground: ReleaseGround,
    quarantine: Option<i64>,
    kept: &[Sku],
) -> ReleaseOutcome {
    let request = StockRelease {
        ground,
        quarantine,
        kept: kept.to_vec(),
        reason: "a test".to_owned(),
    };
    store
        .quarantine
        .release(request, AuditActor::service())
        .await
        .unwrap()
}

/// Releases until nothing more is to be released; returns the vouchers of each part.
async fn release_all(store: &PgStore, kept: &[Sku]) -> (Vec<u64>, ReleasedPart) {
    let mut parts = Vec::new();
    loop {
        let outcome = release(store, ReleaseGround::NothingLost, Some(1), kept).await;
        let ReleaseOutcome::Released(part) = outcome else {
            panic!("{outcome:?}");
        };
        parts.push(part.vouchers);
        if !part.has_more {
            return (parts, part);
        }
    }
}

async fn count(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn quarantine_writes_no_chunk_and_its_release_goes_in_parts() {
    let (database, store) = create_store().await;
    let mut connection = database.connect().await;
    connection.execute(INSERT_CHUNKS).await.unwrap();
    connection.execute(REFUSE_UPDATES).await.unwrap();
    start(&store).await;
    assert!(store.quarantine.is_active().await.unwrap());
    let locked = "SELECT count(*) FROM chunks WHERE xmax <> '0'";
    assert_eq!(count(&mut connection, locked).await, 0, "no chunk was locked");
    connection.execute("DROP TRIGGER refuse ON chunks").await.unwrap();

    let kept = Sku {
        denomination: Amount::from_minor(5_000),
        ..sku()
    };
    let (parts, last) = release_all(&store, &[kept]).await;
    assert!(parts.iter().all(|vouchers| *vouchers <= 2_000), "{parts:?}");
    assert_eq!(parts.iter().sum::<u64>(), 400_000 - 2_000);
    assert!(last.is_active, "the other SKU stays quarantined");
    let remaining = "SELECT count(*) FROM chunks WHERE cleared_epoch = 0";
    assert_eq!(count(&mut connection, remaining).await, 7_000);

    let (parts, last) = release_all(&store, &[]).await;
    assert_eq!(parts.iter().sum::<u64>(), 14_000 - 70);
    assert!(!last.is_active && !store.quarantine.is_active().await.unwrap());
    assert_eq!(count(&mut connection, remaining).await, 0);
    let audited =
        "SELECT sum((after ->> 'vouchers')::bigint)::bigint FROM audit_log WHERE action = 'stock.release'";
    assert_eq!(count(&mut connection, audited).await, 414_000 - 2_070);
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn release_continues_no_other_quarantine_and_can_be_repeated() {
    let (database, store) = create_store().await;
    start(&store).await;
    start(&store).await;
    let outcome = release(&store, ReleaseGround::NothingLost, Some(1), &[]).await;
    assert_eq!(outcome, ReleaseOutcome::AnotherQuarantine);
    let outcome = release(&store, ReleaseGround::Compared, Some(2), &[]).await;
    assert_eq!(outcome, ReleaseOutcome::NotCompared);
    let compared = store
        .quarantine
        .withdraw_sold(Vec::new(), "a test".to_owned(), AuditActor::service());
    compared.await.unwrap();
    let released = ReleaseOutcome::Released(ReleasedPart {
        vouchers: 0,
        has_more: false,
        quarantine: 2,
        is_active: false,
    });
    for attempt in ["first", "repeated"] {
        let outcome = release(&store, ReleaseGround::Compared, None, &[]).await;
        assert_eq!(outcome, released, "{attempt}");
    }
    database.remove().await;
}

/// A release would end with the chunk left behind.
#[tokio::test(flavor = "multi_thread")]
async fn quarantine_waits_for_an_import_and_includes_it() {
    const IMPORT: &str = "INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id) \
        VALUES ('acme-us', 2500, 1, 1)";
    let (database, store) = create_store().await;
    let mut connection = database.connect().await;
    let pool = PgPool::connect_with(database.superuser_options()).await.unwrap();
    start(&store).await;
    release_all(&store, &[]).await;
    connection.execute("BEGIN").await.unwrap();
    connection.execute(IMPORT).await.unwrap();
    let mut started = std::pin::pin!(start(&store));
    tokio::select! {
        () = &mut started => panic!("the quarantine has missed an import"),
        () = wait_until_blocked(&pool) => {}
    }
    connection.execute("COMMIT").await.unwrap();
    started.await;
    let quarantined = "SELECT count(*) FROM chunks WHERE cleared_epoch = 1";
    assert_eq!(count(&mut connection, quarantined).await, 1);
    connection.execute(IMPORT).await.unwrap();
    let cleared = "SELECT count(*) FROM chunks WHERE cleared_epoch = 2";
    assert_eq!(
        count(&mut connection, cleared).await,
        1,
        "what is imported later is for sale"
    );
    pool.close().await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sold_voucher_is_known_by_its_code_or_by_the_time_of_its_sale() {
    let (database, store) = create_store().await;
    let mut connection = database.connect().await;
    let vault = catalogue::open_keyring(&store)
        .await
        .sealing_vault()
        .await
        .unwrap();
    let ids = store.stock.generate_ids(3).await.unwrap();
    let seal = |(number, code_id): (usize, _)| seal_voucher(&vault, code_id, &format!("CODE-{number}"), None);
    let vouchers = ids.codes.iter().copied().enumerate().map(seal).collect();
    catalogue::import(&store, ids.stock.clone(), vouchers).await;
    start(&store).await;
    let [sold, returned, lost] = [(); 3].map(|()| VoucherId::from_uuid(Uuid::now_v7()));
    for (stock_id, voucher_id, returned_at) in [
        (ids.stock[0], sold, None),
        (ids.stock[1], returned, Some("2026-01-01Z")),
    ] {
        sqlx::query(
            "INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line, returned_at)
             VALUES ($1, $2, $2, $2, 0, $3::timestamptz)",
        )
        .bind(stock_id)
        .bind(voucher_id.as_uuid())
        .bind(returned_at)
        .execute(&mut connection)
        .await
        .unwrap();
    }
    let code = |place: usize| ids.codes[place].0;
    let named = vec![
        SoldVoucher::CodeRow(code(0), Some(sold)),
        SoldVoucher::Voucher(sold),
        SoldVoucher::CodeRow(code(1), Some(returned)),
        SoldVoucher::Voucher(returned),
        SoldVoucher::Voucher(lost),
        SoldVoucher::CodeRow(code(2), Some(lost)),
        SoldVoucher::CodeRow(code(2) + 1, Some(lost)),
    ];
    let compared = store
        .quarantine
        .withdraw_sold(named, "a test".to_owned(), AuditActor::service());
    assert_eq!(
        compared.await.unwrap(),
        [
            SoldVoucherOutcome::Known,
            SoldVoucherOutcome::Known,
            SoldVoucherOutcome::Known,
            SoldVoucherOutcome::Known,
            SoldVoucherOutcome::Unidentified,
            SoldVoucherOutcome::Withdrawn,
            SoldVoucherOutcome::Absent,
        ]
    );
    database.remove().await;
}
