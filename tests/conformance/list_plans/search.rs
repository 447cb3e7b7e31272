//! Plans of the search: probes of indexes, also of the largest tables.

use sqlx::Executor as _;
use uuid::Uuid;
use vouchsafe_domain::ids::{OrderId, TransactionId, VoucherId};
use vouchsafe_domain::order::filter::OrderSearch;

use super::filled::{ListFixture, partner};

pub(super) async fn check_search(lists: &ListFixture) {
    // As autovacuum does when a range of pages is full.
    for summarize in [
        "SELECT brin_summarize_new_values('allocations_by_voucher')",
        "SELECT brin_summarize_new_values('orders_by_trace')",
    ] {
        lists.subject.pool().execute(summarize).await.unwrap();
    }
    // The order, its debit and its voucher have the same 16 bytes in the fixture.
    let first = "SELECT order_id FROM orders WHERE reference = 'po-1' AND partner_id = $1";
    let first: Uuid = sqlx::query_scalar(first)
        .bind(partner(1).as_uuid())
        .fetch_one(lists.subject.pool())
        .await
        .unwrap();
    let voucher = VoucherId::from_uuid(first).to_string();
    let trace: String = sqlx::query_scalar("SELECT md5('trace-77')")
        .fetch_one(lists.subject.pool())
        .await
        .unwrap();
    for (text, count) in [
        (OrderId::from_uuid(first).to_string(), 1),
        (TransactionId::from_uuid(first).to_string(), 1),
        (voucher.clone(), 1),
        (first.to_string(), 0),
        (partner(2).to_string(), 1),
        ("po-1".to_owned(), 3),
        ("gift".to_owned(), 1),
        ("no such reference".to_owned(), 0),
    ] {
        let found = lists.store.search.find(text.clone(), 21);
        lists.assert_reads_few_rows(&text, count, found).await;
    }
    let of_voucher = || {
        let search = OrderSearch {
            voucher_id: Some(VoucherId::from_uuid(first)),
            ..OrderSearch::default()
        };
        lists.store.orders.search(search, None, 26)
    };
    lists
        .assert_reads_few_rows("orders: a voucher", 1, of_voucher())
        .await;
    let drop_index = "DROP INDEX allocations_by_voucher";
    let found = lists.store.search.find(voucher, 21);
    lists.assert_reads_many_rows_without(drop_index, found).await;
    // Three partners have an order with this trace: each is in a range of 16 pages.
    let (found, rows) = lists
        .count_rows_read(lists.store.search.find(trace.clone(), 21))
        .await;
    assert_eq!(found.len(), 3);
    assert!(rows < 6_000.0, "read {rows} rows for a trace");
    let drop_index = "DROP INDEX orders_by_trace";
    let found = lists.store.search.find(trace, 21);
    lists.assert_reads_many_rows_without(drop_index, found).await;
}
