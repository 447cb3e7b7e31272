//! No list reads much more than it gives, however much there is: each filter has an index behind it.
//!
//! The server says how it ran each statement, and how many rows it looked at (`auto_explain`). A partner has 100,000
//! orders over 100 days among partners with fewer, and what is looked for lies at the far end of them.

#[path = "list_plans/filled.rs"]
mod filled;

use futures_util::future::join_all;
use time::Duration;
use uuid::Uuid;
use vouchsafe::store::{
    AuditFilter, LedgerPlace, OrderFilter, Period, PgNode, Transaction, TransactionFilter,
};
use vouchsafe_actors::domain::ids::OrderId;
use vouchsafe_actors::domain::ledger::LedgerKind;
use vouchsafe_actors::domain::order::OrderStatus;

use self::filled::{BEGIN, Lists, day, first_day, partner};
use crate::explained::log_to_itself;

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_list_looks_at_little_more_than_it_gives() {
    let _log = log_to_itself().await;
    let lists = Lists::open().await;
    transactions(&lists).await;
    orders(&lists).await;
    by_their_ids(&lists).await;
    trail(&lists).await;
    stock(&lists).await;
    each_index_is_missed(&lists).await;
    lists.subject.remove().await;
}

async fn entries(
    lists: &Lists,
    filter: TransactionFilter,
    after: Option<LedgerPlace>,
) -> Result<Vec<Transaction>, sqlx::Error> {
    let page = lists
        .store
        .list_transactions(partner(1), filter, after, 25)
        .await?;
    assert!(
        page.next.is_none() || page.entries.len() == 25,
        "a page that is not the last is full"
    );
    Ok(page.entries)
}

async fn transactions(lists: &Lists) {
    let first: Uuid =
        sqlx::query_scalar("SELECT order_id FROM orders WHERE reference = 'po-8' AND partner_id = $1")
            .bind(partner(1).as_uuid())
            .fetch_one(lists.subject.pool())
            .await
            .unwrap();
    let any = TransactionFilter::default();
    let euros = "EUR".parse().ok();
    let (order_id, kind) = (Some(OrderId::from_uuid(first)), Some(LedgerKind::Refund));
    let period = first_day();
    for (what, filter, count) in [
        ("all", any, 25),
        ("a day", TransactionFilter { period, ..any }, 25),
        (
            "a currency",
            TransactionFilter {
                currency: euros,
                ..any
            },
            25,
        ),
        (
            "a currency and a day",
            TransactionFilter {
                currency: euros,
                period,
                ..any
            },
            25,
        ),
        (
            "debits",
            TransactionFilter {
                kind: Some(LedgerKind::Debit),
                ..any
            },
            25,
        ),
        ("refunds", TransactionFilter { kind, ..any }, 25),
        ("refunds of a day", TransactionFilter { kind, period, ..any }, 25),
        (
            "refunds in euros",
            TransactionFilter {
                kind,
                currency: euros,
                ..any
            },
            25,
        ),
        (
            "top-ups",
            TransactionFilter {
                kind: Some(LedgerKind::TopUp),
                ..any
            },
            10,
        ),
        (
            "adjustments",
            TransactionFilter {
                kind: Some(LedgerKind::Adjustment),
                ..any
            },
            0,
        ),
        ("an order", TransactionFilter { order_id, ..any }, 2),
        (
            "an order's refunds",
            TransactionFilter {
                order_id,
                kind,
                ..any
            },
            1,
        ),
    ] {
        for after in [None, Some("EUR3000 USD100000".parse::<LedgerPlace>().unwrap())] {
            let what = format!("transactions: {what}, after {after:?}");
            lists
                .assert_found(&what, count, entries(lists, filter, after))
                .await;
        }
    }
}

async fn orders(lists: &Lists) {
    let any = OrderFilter::default;
    let status = |status| Some(status);
    let first = Some("po-1".to_owned());
    for (what, filter, count, everybodys) in [
        ("all", any(), 26, 26),
        (
            "a day",
            OrderFilter {
                period: first_day(),
                ..any()
            },
            26,
            26,
        ),
        (
            "delivered",
            OrderFilter {
                status: status(OrderStatus::Delivered),
                ..any()
            },
            26,
            26,
        ),
        (
            "pending",
            OrderFilter {
                status: status(OrderStatus::Pending),
                ..any()
            },
            26,
            26,
        ),
        (
            "pending of a day",
            OrderFilter {
                status: status(OrderStatus::Pending),
                period: first_day(),
                ..any()
            },
            26,
            26,
        ),
        (
            "processing",
            OrderFilter {
                status: status(OrderStatus::Processing),
                ..any()
            },
            0,
            0,
        ),
        (
            "a reference",
            OrderFilter {
                reference: first.clone(),
                ..any()
            },
            1,
            3,
        ),
        (
            "a reference and a status",
            OrderFilter {
                reference: first,
                status: status(OrderStatus::Pending),
                ..any()
            },
            0,
            0,
        ),
        (
            "no such reference",
            OrderFilter {
                reference: Some("x".to_owned()),
                ..any()
            },
            0,
            0,
        ),
    ] {
        for before in [None, day(99).map(OrderId::first_at)] {
            let what = format!("orders: {what}, before {before:?}");
            let read = lists.store.list_orders(partner(1), filter.clone(), before, 26);
            lists.assert_found(&what, count, read).await;
            let read = lists.store.search_orders(filter.clone(), before, 26);
            let what = format!("everybody's {what}");
            lists.assert_found(&what, everybodys, read).await;
        }
    }
}

async fn trail(lists: &Lists) {
    let any = AuditFilter::default;
    for (what, filter, count) in [
        ("all", any(), 26),
        (
            "an operator",
            AuditFilter {
                operator: Some("alice".to_owned()),
                ..any()
            },
            9,
        ),
        (
            "an action",
            AuditFilter {
                action: Some("stock.void".to_owned()),
                ..any()
            },
            9,
        ),
        (
            "a subject",
            AuditFilter {
                subject: Some("p1".to_owned()),
                ..any()
            },
            1,
        ),
        (
            "an hour",
            AuditFilter {
                period: Period {
                    from: day(0),
                    to: day(0).map(|at| at + Duration::HOUR),
                },
                ..any()
            },
            26,
        ),
    ] {
        let what = format!("audit: {what}");
        let read = lists.store.list_audit(filter, None, 26);
        lists.assert_found(&what, count, read).await;
    }
    let changes = lists.store.newest_changes();
    lists.assert_found("changes", 100, changes).await;
}

/// What is read by itself is looked up as often as it is asked for, however many ask at once.
async fn by_their_ids(lists: &Lists) {
    let node = PgNode::start(lists.store.clone(), "reader".to_owned())
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
    lists.assert_found("orders by their ids", 25, orders).await;
    let wallets = async { Ok(node.list_wallets(partner(1)).await.unwrap()) };
    lists.assert_found("wallets", 2, wallets).await;
}

/// What is counted of a SKU are its own vouchers, and those that were sold of them.
async fn stock(lists: &Lists) {
    let after = |denomination| Some(("gift".to_owned(), denomination));
    for after in [None, after(17)] {
        let what = format!("stock, after {after:?}");
        let levels = async {
            let levels = lists.store.stock_levels(None, after, 3).await?;
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
        lists.assert_found(&what, 3, levels).await;
    }
}

async fn each_index_is_missed(lists: &Lists) {
    let changes = "DROP INDEX audit_log_of_changes";
    lists.assert_missed(changes, lists.store.newest_changes()).await;
    let any = TransactionFilter::default();
    let of_kind = |kind| TransactionFilter {
        kind: Some(kind),
        ..any
    };
    let of_order = TransactionFilter {
        order_id: Some(OrderId::first_at(BEGIN)),
        ..any
    };
    let in_status = OrderFilter {
        status: Some(OrderStatus::Processing),
        ..OrderFilter::default()
    };
    let by_reference = OrderFilter {
        reference: Some("x".to_owned()),
        ..OrderFilter::default()
    };
    let orders = |filter| lists.store.list_orders(partner(1), filter, None, 26);
    // Either of these two would do where other entries than debits are few, as they are here.
    let others = "DROP INDEX IF EXISTS ledger_by_kind, ledger_of_order";
    let adjustments = entries(lists, of_kind(LedgerKind::Adjustment), None);
    lists.assert_missed(others, adjustments).await;
    lists.assert_missed(others, entries(lists, of_order, None)).await;
    let numbers = "ALTER TABLE ledger DROP CONSTRAINT ledger_partner_id_currency_sequence_key";
    lists.assert_missed(numbers, entries(lists, any, None)).await;
    let by_status = "DROP INDEX orders_by_status";
    lists.assert_missed(by_status, orders(in_status)).await;
    let references = "DROP INDEX orders_by_reference";
    lists.assert_missed(references, orders(by_reference)).await;
}
