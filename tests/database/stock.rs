//! Stock storage: contiguous chunks, unique codes, concurrent imports, expiry sweep.

use sqlx::{Executor as _, PgConnection};
use time::macros::date;
use tokio::runtime::Handle;
use vouchsafe_domain::product::{CodeIdentity, Product};
use vouchsafe_domain::stock::level::StockLevel;
use vouchsafe_domain::voucher::Expiry;
use vouchsafe_store::keyring::Keyring;
use vouchsafe_store::{AuditActor, ExpiryBatch, ImportOutcome, ImportSummary, PgStore, PutProductOutcome};
use vouchsafe_verify as verify;

use vouchsafe_test_harness::Database;

use crate::catalogue::{self, BRAND, product, seal_voucher, sku};

struct TestShop {
    store: PgStore,
    keyring: Keyring,
}

impl TestShop {
    async fn open(database: &Database) -> Self {
        let store = PgStore::open(database.service_options(), Handle::current());
        let keyring = catalogue::open_keyring(&store).await;
        catalogue::seed(&store, product(BRAND)).await;
        Self { store, keyring }
    }

    /// Imports one voucher, identified by the code or by code and PIN.
    async fn import_pair(&self, identity: CodeIdentity, code: &str, pin: &str) -> (u64, u64, usize) {
        let vault = self.keyring.sealing_vault().await.unwrap();
        let ids = self.store.stock.generate_ids(1).await.unwrap();
        let voucher = catalogue::seal_code(&vault, ids.codes[0], (code, pin), None);
        let outcome = catalogue::import_as(&self.store, identity, ids.stock, vec![voucher]).await;
        let ImportOutcome::Stored(summary) = outcome else {
            panic!("{outcome:?}")
        };
        (summary.imported, summary.duplicates, summary.conflicts.len())
    }

    async fn set_identity(&self, code_identity: CodeIdentity) {
        let product = Product {
            code_identity,
            ..product(BRAND)
        };
        let put = self.store.products.put(product, AuditActor::service());
        put.await.unwrap();
    }

    /// Imports vouchers with these codes; the first expires last.
    async fn import_codes(&self, codes: std::ops::Range<usize>) -> ImportOutcome {
        let vault = self.keyring.sealing_vault().await.unwrap();
        let ids = self.store.stock.generate_ids(codes.len()).await.unwrap();
        let last = codes.end;
        let voucher = |(number, &code_id): (usize, _)| {
            let days = i64::try_from(last - number).unwrap();
            let expiry = (number % 100 != 0).then(|| date!(2090 - 01 - 01) + time::Duration::days(days));
            seal_voucher(&vault, code_id, &format!("CODE-{number}"), expiry)
        };
        let vouchers = codes.zip(&ids.codes).map(voucher).collect();
        catalogue::import(&self.store, ids.stock, vouchers).await
    }

    /// Replaces the product by one of another brand.
    async fn put_brand(&self, brand: &str) -> PutProductOutcome {
        let product = product(brand);
        self.store
            .products
            .put(product, AuditActor::service())
            .await
            .unwrap()
    }

    async fn levels(&self) -> Vec<StockLevel> {
        self.store.stock.list_levels(None, None, 10).await.unwrap()
    }

    async fn expire_batch(&self) -> ExpiryBatch {
        self.store.stock.expire_batch().await.unwrap()
    }
}

async fn assert_invariants(connection: &mut PgConnection) {
    let findings = verify::check(connection).await.unwrap();
    assert!(findings.iter().all(|finding| finding.holds), "{findings:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_id_allocations_are_contiguous() {
    let database = Database::create().await;
    let shop = TestShop::open(&database).await;
    let allocations = (0..8).map(|_| shop.store.stock.generate_ids(3_000));
    let mut all = Vec::new();
    for ids in futures_util::future::join_all(allocations).await {
        let ids = ids.unwrap();
        assert!(
            ids.stock.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "stock ids have a gap"
        );
        assert_eq!((ids.codes.len(), ids.stock.len()), (3_000, 3_000));
        all.extend(ids.stock);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 24_000, "an id was allocated twice");
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn small_import_is_split_into_twenty_chunks_by_expiry() {
    let database = Database::create().await;
    let shop = TestShop::open(&database).await;
    let outcome = shop.import_codes(0..1_200).await;
    let earliest = Some(Expiry::on(date!(2090 - 01 - 02)));
    assert_eq!(
        outcome,
        ImportOutcome::Stored(ImportSummary {
            imported: 1_200,
            duplicates: 0,
            conflicts: Vec::new(),
            earliest
        })
    );
    let mut connection = database.connect().await;
    let chunks: Vec<(i64, Option<time::Date>, Option<time::Date>)> = sqlx::query_as(
        "SELECT last_stock_id - first_stock_id + 1, first_expiry, last_expiry FROM chunks ORDER BY first_stock_id",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(chunks.len(), 20);
    assert!(chunks.iter().all(|(vouchers, ..)| *vouchers == 60), "{chunks:?}");
    assert_eq!(chunks[0].1, Some(date!(2090 - 01 - 02)));
    // Without expiry: last.
    let order = |day: Option<time::Date>| day.unwrap_or(time::Date::MAX);
    let is_ordered =
        |pair: &[(i64, Option<time::Date>, Option<time::Date>)]| order(pair[0].2) <= order(pair[1].1);
    assert!(chunks.windows(2).all(is_ordered), "{chunks:?}");
    assert_eq!(chunks[19].2, None);
    assert_invariants(&mut connection).await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn overlapping_concurrent_imports_store_each_code_once() {
    let database = Database::create().await;
    let shop = TestShop::open(&database).await;
    let imports = (0..4).map(|n| shop.import_codes(n * 500..n * 500 + 2_000));
    let outcomes = futures_util::future::join_all(imports).await;
    let (mut imported, mut duplicates) = (0, 0);
    for outcome in outcomes {
        let ImportOutcome::Stored(one) = outcome else {
            panic!("{outcome:?}")
        };
        imported += one.imported;
        duplicates += one.duplicates;
    }
    assert_eq!((imported, duplicates), (3_500, 4_500));
    let levels = shop.levels().await;
    assert_eq!(
        (levels.len(), levels[0].loaded, levels[0].free),
        (1, 3_500, 3_500)
    );
    let mut connection = database.connect().await;
    assert_invariants(&mut connection).await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_imports_of_a_code_with_different_pins_store_one() {
    let database = Database::create().await;
    let shop = TestShop::open(&database).await;
    let pins = ["1", "2", "3", "4", "5", "6"];
    let imports = pins.map(|pin| shop.import_pair(CodeIdentity::Code, "ONE", pin));
    let mut outcomes = futures_util::future::join_all(imports).await;
    outcomes.sort_unstable();
    assert_eq!(outcomes, [[(0, 0, 1); 5].as_slice(), &[(1, 0, 0)]].concat());
    shop.set_identity(CodeIdentity::CodeAndPin).await;
    let imports = pins.map(|pin| shop.import_pair(CodeIdentity::CodeAndPin, "ONE", pin));
    let mut outcomes = futures_util::future::join_all(imports).await;
    outcomes.sort_unstable();
    assert_eq!(outcomes, [&[(0, 1, 0)], [(1, 0, 0); 5].as_slice()].concat());
    shop.set_identity(CodeIdentity::Code).await;
    assert_eq!(shop.import_pair(CodeIdentity::Code, "ONE", "3").await, (0, 1, 0));
    assert_eq!(shop.import_pair(CodeIdentity::Code, "ONE", "9").await, (0, 0, 1));
    assert_invariants(&mut database.connect().await).await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_that_vouchers_shared_conflict_once_the_product_identifies_by_code() {
    let database = Database::create().await;
    let shop = TestShop::open(&database).await;
    shop.set_identity(CodeIdentity::CodeAndPin).await;
    for (code, pin) in [("A", "1"), ("A", "2"), ("B", "1"), ("C", "1")] {
        assert_eq!(
            shop.import_pair(CodeIdentity::CodeAndPin, code, pin).await,
            (1, 0, 0)
        );
    }
    shop.set_identity(CodeIdentity::Code).await;
    for (code, pin, expected) in [
        ("A", "1", (0, 1, 0)),
        ("A", "2", (0, 1, 0)),
        ("A", "3", (0, 0, 1)),
        ("B", "2", (0, 0, 1)),
        ("C", "1", (0, 1, 0)),
        ("D", "1", (1, 0, 0)),
    ] {
        assert_eq!(
            shop.import_pair(CodeIdentity::Code, code, pin).await,
            expected,
            "{code} {pin}"
        );
    }
    assert_invariants(&mut database.connect().await).await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn import_for_changed_product_writes_nothing() {
    let database = Database::create().await;
    let shop = TestShop::open(&database).await;
    assert!(matches!(
        shop.put_brand("Other").await,
        PutProductOutcome::Replaced(_)
    ));
    assert_eq!(shop.import_codes(0..10).await, ImportOutcome::ProductChanged);
    assert_eq!(shop.levels().await, []);
    shop.put_brand(BRAND).await;
    assert!(matches!(shop.import_codes(0..10).await, ImportOutcome::Stored(_)));
    assert_eq!(shop.put_brand("Other").await, PutProductOutcome::BrandFixed);
    database.remove().await;
}

/// Counts the stock rows taken out because they expired.
async fn count_expired(connection: &mut PgConnection) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM allocations WHERE withdrawal_reason = 'expired'")
        .fetch_one(connection)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_stock_is_removed_in_steps() {
    let database = Database::create().await;
    let shop = TestShop::open(&database).await;
    // Chunks of 500.
    shop.import_codes(0..10_000).await;
    let mut connection = database.connect().await;
    // One dated voucher expires today and is still valid; those before it have expired: 11 chunks and part of
    // another.
    let expire_stock = "UPDATE stock
                  SET expiry = (now() AT TIME ZONE 'UTC')::date
                             - (5600 - (stock_id - (SELECT min(stock_id) FROM stock)))::integer / 56
                WHERE expiry IS NOT NULL";
    let update_chunks = "UPDATE chunks AS c
                    SET first_expiry = (SELECT min(expiry) FROM stock AS s WHERE s.chunk_id = c.chunk_id),
                        last_expiry = (SELECT CASE WHEN count(*) = count(expiry) THEN max(expiry) END
                                         FROM stock AS s WHERE s.chunk_id = c.chunk_id)";
    for statement in [expire_stock, update_chunks] {
        connection.execute(statement).await.unwrap();
    }
    let level = shop.levels().await.remove(0);
    let expired = u64::try_from(level.expired).unwrap();
    assert!(expired > 5_000 && level.free > 60, "{level:?}");
    let first = shop.expire_batch().await;
    assert_eq!(
        (first.expired, first.has_more),
        (5_000, true),
        "a step sweeps ten chunks"
    );
    assert_eq!(first.skus, [sku()]);
    let second = shop.expire_batch().await;
    assert_eq!((second.expired, second.has_more), (expired - 5_000, false));
    assert_eq!(shop.expire_batch().await, ExpiryBatch::default());
    assert_eq!(count_expired(&mut connection).await.unsigned_abs(), expired);
    let after = shop.levels().await.remove(0);
    assert_eq!(after, level, "the sweep must not change the levels");
    assert_invariants(&mut connection).await;
    // The sweep skips these chunks for today and emptied chunks forever.
    let marked =
        "SELECT count(*) FILTER (WHERE expired_before IS NOT NULL) || ' ' || count(*) FILTER (WHERE emptied)
                    FROM chunks";
    let marked: String = sqlx::query_scalar(marked)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(marked, "12 11");
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expiry_sweep_without_lock_does_nothing() {
    let database = Database::create().await;
    let shop = TestShop::open(&database).await;
    shop.import_codes(0..10).await;
    let mut connection = database.connect().await;
    let expire_stock = "UPDATE stock SET expiry = '2020-02-29'; UPDATE chunks SET first_expiry = \
        '2020-02-29', last_expiry = '2020-02-29'";
    connection.execute(sqlx::raw_sql(expire_stock)).await.unwrap();
    connection.execute("BEGIN").await.unwrap();
    connection
        .execute("SELECT pg_advisory_xact_lock(x'5653737765657000'::bigint)")
        .await
        .unwrap();
    assert_eq!(shop.expire_batch().await, ExpiryBatch::default());
    connection.execute("COMMIT").await.unwrap();
    assert_eq!(shop.expire_batch().await.expired, 10);
    database.remove().await;
}
