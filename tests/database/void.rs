//! Void of named codes while orders are committed.

use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe_domain::stock::level::CodeVoidOutcome;
use vouchsafe_store::{AuditActor, CodeMatch, PgStore, VoidTarget};
use vouchsafe_test_harness::Database;

use crate::catalogue::{self, BRAND, product, seal_voucher, sku};

const CODES: [&str; 2] = ["CODE-1", "CODE-2"];

/// A stock of two vouchers; returns their stock ids and what names their codes.
async fn stock_two(store: &PgStore) -> (Vec<i64>, Vec<CodeMatch>) {
    let keyring = catalogue::open_keyring(store).await;
    catalogue::seed(store, product(BRAND)).await;
    let vault = keyring.sealing_vault().await.unwrap();
    let ids = store.stock.generate_ids(CODES.len()).await.unwrap();
    let vouchers: Vec<_> = CODES
        .iter()
        .zip(&ids.codes)
        .map(|(code, &code_id)| seal_voucher(&vault, code_id, code, None))
        .collect();
    let matches = vouchers.iter().map(|voucher| CodeMatch {
        blind_index: voucher.blind_index,
        code_index: None,
    });
    let matches = matches.collect();
    catalogue::import(store, ids.stock.clone(), vouchers).await;
    (ids.stock, matches)
}

async fn sell(connection: &mut PgConnection, stock_id: i64) {
    sqlx::query("INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line) VALUES ($1, $2, $2, $2, 0)")
        .bind(stock_id)
        .bind(Uuid::now_v7())
        .execute(connection)
        .await
        .unwrap();
}

pub(super) async fn wait_until_blocked(pool: &PgPool) {
    let blocked = "SELECT EXISTS (
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')";
    while !sqlx::query_scalar::<_, bool>(blocked)
        .fetch_one(pool)
        .await
        .unwrap()
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A code that is sold between look and write is `SOLD`, so that the order that holds it is found; one that a
/// cancellation returns to stock meanwhile does not stay on sale.
#[tokio::test(flavor = "multi_thread")]
async fn code_sold_or_returned_during_void_is_reported_as_it_is_now() {
    let database = Database::create().await;
    let store = PgStore::open(database.options(), Handle::current());
    let (stock, matches) = stock_two(&store).await;
    let pool = PgPool::connect_with(database.options()).await.unwrap();
    let [first, second] = stock[..] else {
        panic!("two vouchers are in stock")
    };
    sell(&mut pool.acquire().await.unwrap(), first).await;
    let mut order = pool.begin().await.unwrap();
    sell(&mut order, second).await;
    let returned = sqlx::query(
        "WITH returned AS (
            UPDATE allocations SET returned_at = now() WHERE stock_id = $1
         ), id AS (
            SELECT nextval('stock_ids') AS stock_id
         ), chunk AS (
            INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id)
            SELECT c.product_id, c.denomination, id.stock_id, id.stock_id
              FROM id, chunks AS c
             WHERE $1 BETWEEN c.first_stock_id AND c.last_stock_id
            RETURNING chunk_id, first_stock_id
         )
         INSERT INTO stock
         SELECT c.first_stock_id, c.chunk_id, s.code_id, s.expiry
           FROM chunk AS c, stock AS s
          WHERE s.stock_id = $1",
    );
    returned.bind(first).execute(&mut *order).await.unwrap();
    let target = VoidTarget::Codes(sku().product_id, matches);
    let void = store
        .stock
        .void(target, "stolen".to_owned(), AuditActor::service());
    let ordering = async {
        wait_until_blocked(&pool).await;
        order.commit().await.unwrap();
    };
    let (outcome, ()) = tokio::join!(void, ordering);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.codes, [CodeVoidOutcome::Voided, CodeVoidOutcome::Sold]);
    assert_eq!(outcome.voided, 1);
    let levels = store.stock.list_levels(None, None, 1).await.unwrap();
    assert_eq!(
        (levels[0].loaded, levels[0].free, levels[0].sold, levels[0].void),
        (2, 0, 1, 1),
        "the returned voucher counts once"
    );
}
