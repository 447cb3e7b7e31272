//! Checks after each round: the checker's rules over the history, the invariants over the database, and the
//! comparison of both.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::check::{Violation, check};
use crate::history::{Call, Event, History};
use sqlx::{Connection as _, PgConnection};

use crate::invariants;
use crate::load_session::LoadSession;

/// Panics on the first violation.
pub(crate) async fn check_everything(session: &LoadSession, database: &mut PgConnection) {
    let history = session.history();
    if let Err(violation) = check(&history) {
        panic!("{violation}\n{}", operations_named_by(&history, &violation));
    }
    assert_reads_match_acknowledgements(&history);
    let mut snapshot = database.begin().await.unwrap();
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        .execute(&mut *snapshot)
        .await
        .unwrap();
    let broken = invariants::find_broken(&mut snapshot).await;
    assert!(broken.is_empty(), "broken in the database: {broken:#?}");
    assert_only_acknowledged_orders_exist(session, &history, &mut snapshot).await;
    assert_code_reads_are_audited(&history, &mut snapshot).await;
    snapshot.rollback().await.unwrap();
    assert_no_idle_transactions(database).await;
}

/// Returns the operations that a violation names by number, order, voucher or key.
pub(crate) fn operations_named_by(history: &History, violation: &Violation) -> String {
    let text = violation.to_string();
    let words: BTreeSet<&str> = text
        .split(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let named = |text: Option<&str>| text.is_some_and(|text| words.contains(text));
    let mut lines = String::new();
    for op in history.ops() {
        let vouchers = op
            .ok()
            .and_then(|event| event.order.as_ref())
            .map(|order| &order.vouchers);
        let is_named = named(Some(&op.invoke.op_id.to_string()))
            || named(op.invoke.key.as_deref())
            || named(op.invoke.order_id.as_deref())
            || named(op.completion.as_ref().and_then(|event| event.order_id.as_deref()))
            || vouchers.is_some_and(|vouchers| vouchers.iter().any(|voucher| named(Some(voucher))));
        if is_named {
            lines.push_str(&format!("{:?}\n  {:?}\n", op.invoke, op.completion));
        }
    }
    lines
}

/// A later read must return the acknowledged bytes, except for pending orders, which may have progressed; for
/// those the checker has verified totals and vouchers.
fn assert_reads_match_acknowledgements(history: &History) {
    let mut acknowledged = BTreeMap::new();
    let mut read = Vec::new();
    for op in history.ops() {
        let Some(event) = op.ok() else { continue };
        match op.invoke.f {
            Call::Order => drop(acknowledged.insert(event.order_id.as_deref(), event)),
            Call::GetOrder => read.push(event),
            Call::Codes => {}
        }
    }
    for event in read {
        let first = acknowledged.get(&event.order_id.as_deref());
        let first = first.unwrap_or_else(|| panic!("read but never acknowledged: {event:?}"));
        assert!(
            first.body_hash == event.body_hash || has_progressed(first, event),
            "acknowledged {first:?}\nread {event:?}"
        );
    }
}

/// Returns whether a pending order was processed between acknowledgement and read. These orders are never
/// cancelled.
fn has_progressed(acknowledged: &Event, read: &Event) -> bool {
    let status = |event: &Event| event.order.as_ref().map(|order| order.order_status.clone());
    let progressed = ["PROCESSING", "PARTIALLY_DELIVERED", "DELIVERED"];
    status(acknowledged).as_deref() == Some("PENDING")
        && status(read).is_some_and(|now| progressed.contains(&now.as_str()))
}

/// The database holds exactly the acknowledged orders: all keys are resolved by now.
async fn assert_only_acknowledged_orders_exist(
    session: &LoadSession,
    history: &History,
    snapshot: &mut PgConnection,
) {
    let partners: BTreeSet<&str> = session
        .buyers
        .iter()
        .map(|buyer| buyer.partner_id.as_str())
        .collect();
    let stored: Vec<(String, String)> = sqlx::query_as(
        "SELECT 'ptn_' || replace(partner_id::text, '-', ''), 'ord_' || replace(order_id::text, '-', '') FROM orders",
    )
    .fetch_all(snapshot)
    .await
    .unwrap();
    let stored: BTreeSet<(&str, &str)> = stored
        .iter()
        .map(|(partner, order)| (partner.as_str(), order.as_str()))
        .filter(|(partner, _)| partners.contains(partner))
        .collect();
    let orders = history
        .ops()
        .filter(|op| op.invoke.f == Call::Order)
        .filter_map(|op| op.ok());
    let acknowledged: BTreeSet<(&str, &str)> = orders
        .map(|event| (event.partner.as_str(), event.order_id.as_deref().unwrap()))
        .collect();
    let unknown: Vec<_> = stored.difference(&acknowledged).collect();
    let lost: Vec<_> = acknowledged.difference(&stored).collect();
    assert!(
        unknown.is_empty() && lost.is_empty(),
        "stored but not acknowledged: {unknown:?}; acknowledged but not stored: {lost:?}"
    );
}

/// Every returned code read has an audit entry, written before the codes were decrypted.
async fn assert_code_reads_are_audited(history: &History, snapshot: &mut PgConnection) {
    let traces: Vec<(String, i64)> = sqlx::query_as(
        "SELECT subject, count(*) FROM audit_log WHERE action = 'codes.retrieve' GROUP BY subject",
    )
    .fetch_all(snapshot)
    .await
    .unwrap();
    let traces: BTreeMap<String, i64> = traces.into_iter().collect();
    let mut reads: BTreeMap<&str, i64> = BTreeMap::new();
    for op in history
        .ops()
        .filter(|op| op.invoke.f == Call::Codes && op.ok().is_some())
    {
        *reads.entry(op.invoke.order_id.as_deref().unwrap()).or_default() += 1;
    }
    for (order_id, reads) in reads {
        let traces = traces.get(order_id).copied().unwrap_or_default();
        assert!(
            traces >= reads,
            "the codes of {order_id} were read {reads} times, {traces} reads are audited"
        );
    }
}

/// Repeated operator calls were applied once: the vouchers of the hot SKU and the partner's top-ups have
/// these totals.
pub(crate) async fn assert_applied_once(
    database: &mut PgConnection,
    vouchers: u64,
    partner_id: &str,
    cents: u64,
) {
    let (codes, booked): (i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM codes WHERE product_id = 'hot'),
                (SELECT sum(amount)::bigint
                   FROM ledger
                  WHERE kind = 'TOP_UP' AND 'ptn_' || replace(partner_id::text, '-', '') = $1)",
    )
    .bind(partner_id)
    .fetch_one(database)
    .await
    .unwrap();
    assert_eq!((codes.cast_unsigned(), booked.cast_unsigned()), (vouchers, cents));
}

async fn assert_no_idle_transactions(database: &mut PgConnection) {
    let idle: Vec<String> = sqlx::query_scalar(
        "SELECT a.query
           FROM pg_stat_activity AS a
          WHERE a.state LIKE 'idle in transaction%' AND a.state_change < clock_timestamp() - interval '1 second'",
    )
    .fetch_all(database)
    .await
    .unwrap();
    assert!(idle.is_empty(), "open transactions: {idle:?}");
}
