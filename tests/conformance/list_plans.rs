//! Query plans of list endpoints: every filter has an index, so a page reads few rows beyond those it
//! returns.
//!
//! Row counts come from `auto_explain`. One partner has 100,000 orders over 100 days, other partners fewer;
//! the searched rows are at the far end.

#[path = "list_plans/comparison.rs"]
mod comparison;
#[path = "list_plans/filled.rs"]
mod filled;
#[path = "list_plans/monitoring.rs"]
mod monitoring;
#[path = "list_plans/orders.rs"]
mod orders;
#[path = "list_plans/search.rs"]
mod search;

use futures_util::future::join_all;
use sqlx::Executor as _;
use time::Duration;
use uuid::Uuid;
use vouchsafe_domain::audit_log::AuditFilter;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::ledger::cursor::LedgerCursor;
use vouchsafe_domain::ledger::transaction::{Transaction, TransactionFilter};
use vouchsafe_domain::order::OrderStatus;
use vouchsafe_domain::order::filter::{OrderFilter, OrderSearch};
use vouchsafe_domain::period::Period;
use vouchsafe_store::StoreError;
use vouchsafe_store::{PgNode, RecentChanges};

use self::filled::{FIRST_ORDER_AT, ListFixture, day, first_day, partner};
use crate::explain::lock_log;

#[tokio::test(flavor = "multi_thread")]
async fn list_page_reads_few_rows() {
    let _log = lock_log().await;
    let lists = ListFixture::create().await;
    check_transactions(&lists).await;
    orders::check_orders(&lists).await;
    orders::check_updated_orders(&lists).await;
    check_lookups_by_id(&lists).await;
    check_audit_log(&lists).await;
    check_stock_levels(&lists).await;
    comparison::check_comparison(&lists).await;
    search::check_search(&lists).await;
    monitoring::check_monitoring(&lists).await;
    check_each_index_is_needed(&lists).await;
    lists.subject.remove().await;
}

async fn list_entries(
    lists: &ListFixture,
    filter: TransactionFilter,
    after: Option<LedgerCursor>,
) -> Result<Vec<Transaction>, StoreError> {
    let page = lists
        .store
        .transactions
        .list(partner(1), filter, after, 25)
        .await?;
    assert!(
        page.next.is_none() || page.entries.len() == 25,
        "a page that is not the last is full"
    );
    Ok(page.entries)
}

async fn check_transactions(lists: &ListFixture) {
    let first: Uuid =
        sqlx::query_scalar("SELECT order_id FROM orders WHERE reference = 'po-8' AND partner_id = $1")
            .bind(partner(1).as_uuid())
            .fetch_one(lists.subject.pool())
            .await
            .unwrap();
    let any = TransactionFilter::default();
    let currency = "EUR".parse().ok();
    let (order_id, period) = (Some(OrderId::from_uuid(first)), first_day());
    let of_kind = |kind| TransactionFilter {
        kind: Some(kind),
        ..any
    };
    let in_euros = |filter| TransactionFilter { currency, ..filter };
    let of_a_day = |filter| TransactionFilter { period, ..filter };
    let of_order = |filter| TransactionFilter { order_id, ..filter };
    let refunds = of_kind(LedgerKind::Refund);
    for (description, filter, count) in [
        ("all", any, 25),
        ("a day", of_a_day(any), 25),
        ("a currency", in_euros(any), 25),
        ("a currency and a day", of_a_day(in_euros(any)), 25),
        ("debits", of_kind(LedgerKind::Debit), 25),
        ("refunds", refunds, 25),
        ("refunds of a day", of_a_day(refunds), 25),
        ("refunds in euros", in_euros(refunds), 25),
        ("top-ups", of_kind(LedgerKind::TopUp), 10),
        ("adjustments", of_kind(LedgerKind::Adjustment), 0),
        ("an order", of_order(any), 2),
        ("an order's refunds", of_order(refunds), 1),
    ] {
        for after in [None, Some("EUR3000 USD100000".parse::<LedgerCursor>().unwrap())] {
            let description = format!("transactions: {description}, after {after:?}");
            lists
                .assert_reads_few_rows(&description, count, list_entries(lists, filter, after))
                .await;
        }
    }
}

async fn check_audit_log(lists: &ListFixture) {
    let any = AuditFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let operator = AuditFilter {
        operator: text("alice"),
        ..any()
    };
    let action = AuditFilter {
        action: text("stock.void"),
        ..any()
    };
    let subject = AuditFilter {
        subject: text("p1"),
        ..any()
    };
    let code_reads = AuditFilter {
        operator: text("a partner"),
        action: text("codes.retrieve"),
        subject: text("o1"),
        ..any()
    };
    let changes = AuditFilter {
        code_reads: Some(false),
        ..any()
    };
    let period = Period {
        from: day(0),
        to: day(0).map(|at| at + Duration::HOUR),
    };
    let hour = AuditFilter { period, ..any() };
    for (description, filter, count) in [
        ("all", any(), 26),
        ("an operator", operator, 9),
        ("an action", action, 9),
        ("a subject", subject, 1),
        ("the code reads of an order", code_reads, 1),
        ("without code reads", changes, 26),
        ("an hour", hour, 26),
    ] {
        let description = format!("audit: {description}");
        let read = lists.store.audit_log.list(filter, None, 26);
        lists.assert_reads_few_rows(&description, count, read).await;
    }
    lists
        .assert_reads_few_rows("changes", 1, recent_changes(lists))
        .await;
}

/// Concurrent lookups by id read only their own rows.
async fn check_lookups_by_id(lists: &ListFixture) {
    let node = PgNode::start(&lists.store.database, "reader".to_owned())
        .await
        .unwrap();
    let ids = "SELECT order_id FROM orders WHERE partner_id = $1 ORDER BY order_id LIMIT 25";
    let ids: Vec<Uuid> = sqlx::query_scalar(ids)
        .bind(partner(1).as_uuid())
        .fetch_all(lists.subject.pool())
        .await
        .unwrap();
    let orders = ids
        .iter()
        .map(|id| node.find_order(partner(1), OrderId::from_uuid(*id)));
    let orders = async {
        let found = join_all(orders).await.into_iter();
        Ok(found.filter_map(Result::unwrap).collect())
    };
    lists.assert_reads_few_rows("orders by id", 25, orders).await;
    let wallets = async { Ok(node.list_wallets(partner(1)).await.unwrap()) };
    lists.assert_reads_few_rows("wallets", 2, wallets).await;
}

/// Stock levels read only the SKU's own vouchers and allocations, and none of chunks that are counted.
async fn check_stock_levels(lists: &ListFixture) {
    let after = |denomination| Some(("gift".to_owned(), denomination));
    for after in [None, after(17)] {
        let description = format!("stock, after {after:?}");
        let levels = async {
            let levels = lists.store.stock.list_levels(None, after, 3).await?;
            for level in &levels {
                let (loaded, sold) = (level.loaded, level.sold);
                assert_eq!(
                    (loaded, loaded - sold, level.void + level.expired),
                    (20, level.free, 0)
                );
                assert!((15..20).contains(&sold), "{level:?}");
            }
            Ok(levels)
        };
        lists.assert_reads_few_rows(&description, 3, levels).await;
    }
    // A SKU of a hundred chunks, and one of 20,000, all of them counted.
    let levels = || lists.store.stock.list_levels(None, after(20), 3);
    const COUNT: &str = "
        INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id)
        SELECT 'gift', 22, 3000000 + i, 3000000 + i FROM generate_series(1, 20000) AS i;
        UPDATE chunks SET emptied = true, voided = 0, expired = 0, restocked = 0 WHERE denomination IN (21, 22);
        INSERT INTO stock_totals
        SELECT product_id, denomination, sum(last_stock_id - first_stock_id + 1), 0, 0
          FROM chunks
         WHERE denomination IN (21, 22)
         GROUP BY product_id, denomination;
        ANALYZE chunks";
    lists.subject.pool().execute(COUNT).await.unwrap();
    lists
        .assert_reads_few_rows("stock of counted chunks", 3, levels())
        .await;
    const FORGET: &str = "
        UPDATE chunks SET voided = NULL, expired = NULL, restocked = NULL WHERE denomination = 21;
        DELETE FROM stock_totals WHERE denomination = 21";
    lists.assert_reads_many_rows_without(FORGET, levels()).await;
    // Other lists visit every chunk.
    for remove in ["DELETE FROM chunks WHERE denomination = 22", "VACUUM chunks"] {
        lists.subject.pool().execute(remove).await.unwrap();
    }
}

async fn recent_changes(lists: &ListFixture) -> Result<Vec<RecentChanges>, StoreError> {
    lists
        .store
        .audit_log
        .recent_changes()
        .await
        .map(|changes| vec![changes])
}

async fn check_each_index_is_needed(lists: &ListFixture) {
    let changes = "DROP INDEX audit_log_of_changes";
    lists
        .assert_reads_many_rows_without(changes, recent_changes(lists))
        .await;
    let any = TransactionFilter::default();
    let of_kind = |kind| TransactionFilter {
        kind: Some(kind),
        ..any
    };
    let of_order = TransactionFilter {
        order_id: Some(OrderId::lower_bound_at(FIRST_ORDER_AT)),
        ..any
    };
    let in_status = OrderFilter {
        status: Some(OrderStatus::Processing.into()),
        ..OrderFilter::default()
    };
    let by_reference = OrderFilter {
        reference: Some("x".to_owned()),
        ..OrderFilter::default()
    };
    let orders = |filter| {
        let own = OrderSearch {
            partner_id: Some(partner(1)),
            filter,
            ..OrderSearch::default()
        };
        lists.store.orders.search(own, None, 26)
    };
    // Either index suffices while entries other than debits are few, as here.
    let others = "DROP INDEX IF EXISTS ledger_by_kind, ledger_of_order";
    let adjustments = list_entries(lists, of_kind(LedgerKind::Adjustment), None);
    lists.assert_reads_many_rows_without(others, adjustments).await;
    lists
        .assert_reads_many_rows_without(others, list_entries(lists, of_order, None))
        .await;
    let numbers = "ALTER TABLE ledger DROP CONSTRAINT ledger_partner_id_currency_sequence_key";
    lists
        .assert_reads_many_rows_without(numbers, list_entries(lists, any, None))
        .await;
    let changed = "DROP INDEX orders_changed";
    let updated = OrderSearch {
        partner_id: Some(partner(1)),
        filter: OrderFilter {
            updated_from: day(99),
            ..OrderFilter::default()
        },
        ..OrderSearch::default()
    };
    let placed_before = day(99).map(OrderId::lower_bound_at);
    let read = lists.store.orders.search(updated, placed_before, 2_000);
    lists.assert_reads_many_rows_without(changed, read).await;
    let open = OrderFilter {
        closed: Some(false),
        ..OrderFilter::default()
    };
    lists
        .assert_reads_many_rows_without("DROP INDEX orders_open_by_id", orders(open))
        .await;
    let by_status = "DROP INDEX orders_by_status";
    lists
        .assert_reads_many_rows_without(by_status, orders(in_status))
        .await;
    let references = "DROP INDEX orders_by_reference";
    lists
        .assert_reads_many_rows_without(references, orders(by_reference))
        .await;
}
