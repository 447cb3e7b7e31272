//! Negative controls of the checks: each database invariant is broken in a transaction that is rolled back,
//! and histories are forged.

use std::path::Path;

use crate::history::check::{Violation, check};
use crate::history::{Call, Event, EventKind, History};
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::invariants::{self, INVARIANTS};

/// One breakage per invariant, in the order of `INVARIANTS`.
const BREAKAGES: [&str; INVARIANTS.len()] = [
    "UPDATE wallets SET balance = balance + 1",
    "ALTER TABLE ledger DISABLE TRIGGER USER;
     UPDATE ledger SET balance_after = balance_after + 1
      WHERE transaction_id IN (SELECT l.transaction_id FROM ledger AS l WHERE l.kind = 'DEBIT' LIMIT 1)",
    "ALTER TABLE ledger DISABLE TRIGGER USER;
     DELETE FROM ledger
      WHERE transaction_id IN (SELECT l.transaction_id FROM ledger AS l WHERE l.kind = 'DEBIT' LIMIT 1)",
    "DELETE FROM orders WHERE order_id IN (SELECT o.order_id FROM orders AS o LIMIT 1)",
    "UPDATE wallets SET pending_orders = pending_orders + 1",
    "UPDATE orders SET total = total + 1 WHERE order_id IN (SELECT o.order_id FROM orders AS o LIMIT 1)",
    "DELETE FROM allocations WHERE stock_id IN (SELECT a.stock_id FROM allocations AS a LIMIT 1)",
    "UPDATE allocations SET line = 99 WHERE stock_id IN (SELECT a.stock_id FROM allocations AS a LIMIT 1)",
    "UPDATE stock
        SET code_id = (SELECT s.code_id FROM stock AS s JOIN allocations AS a ON a.stock_id = s.stock_id LIMIT 1)
      WHERE stock_id IN (SELECT a.stock_id FROM allocations AS a ORDER BY a.stock_id DESC LIMIT 2)",
    "DELETE FROM idempotency_keys
      WHERE key IN (
            SELECT k.key
              FROM idempotency_keys AS k
             WHERE k.status IN (201, 202) AND substr(k.body, 3, 8) = 'order_id'::bytea
             LIMIT 1
            )",
    "DELETE FROM events WHERE number = 1",
    "UPDATE orders SET last_sequence = last_sequence + 1",
    "DELETE FROM stock WHERE stock_id IN (SELECT s.stock_id FROM stock AS s LIMIT 1)",
    "UPDATE chunks SET emptied = true",
    "DELETE FROM stock WHERE stock_id IN (SELECT s.stock_id FROM stock AS s LIMIT 1)",
    "UPDATE orders SET codes_retrieved_at = NULL",
    "UPDATE allocations SET returned_at = now() WHERE first_retrieved_at IS NOT NULL",
];

pub(crate) async fn assert_each_breakage_is_detected(database: &mut PgConnection) {
    for (invariant, breakage) in INVARIANTS.iter().zip(BREAKAGES) {
        let mut transaction = database.begin().await.unwrap();
        transaction.execute(breakage).await.unwrap();
        let broken = invariants::find_broken(&mut transaction).await;
        transaction.rollback().await.unwrap();
        let is_detected = broken.iter().any(|broken| broken.name == invariant.name);
        assert!(is_detected, "not detected: {}, after {breakage}", invariant.name);
    }
    assert_eq!(invariants::find_broken(database).await, []);
}

/// Forges a valid history in several ways and asserts that the checker rejects each.
pub(crate) fn assert_forged_history_is_rejected(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let events: Vec<Event> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let verdict = |forge: &dyn Fn(&mut Vec<Event>)| {
        let mut forged = events.clone();
        forge(&mut forged);
        check(&History::from_events(forged).unwrap()).unwrap_err()
    };
    let lost = verdict(&|events| {
        let read = last_event(events, Call::GetOrder, EventKind::Ok);
        (read.kind, read.status, read.order) = (EventKind::Fail, Some(404), None);
    });
    assert!(matches!(lost, Violation::OrderLost { .. }), "{lost}");
    let changed = verdict(&|events| {
        let order = last_event(events, Call::GetOrder, EventKind::Ok).order.as_mut();
        order.unwrap().total_amount = "1.00".to_owned();
    });
    assert!(matches!(changed, Violation::OrderChanged { .. }), "{changed}");
    let twice = verdict(&|events| {
        let sold = events
            .iter()
            .find_map(|event| event.order.as_ref()?.vouchers.first().cloned());
        let order = last_event(events, Call::Order, EventKind::Ok).order.as_mut();
        order.unwrap().vouchers = vec![sold.unwrap()];
    });
    assert!(matches!(twice, Violation::DuplicateVoucher { .. }), "{twice}");
    let open = verdict(&|events| {
        let (key, partner) = {
            let unknown = last_event(events, Call::Order, EventKind::Info);
            (unknown.key.clone(), unknown.partner.clone())
        };
        events.retain(|event| {
            (&event.key, &event.partner) != (&key, &partner) || event.kind == EventKind::Invoke
        });
    });
    assert!(
        matches!(open, Violation::Unsettled { .. } | Violation::NotReadBack { .. }),
        "{open}"
    );
}

fn last_event(events: &mut [Event], call: Call, kind: EventKind) -> &mut Event {
    events
        .iter_mut()
        .rfind(|event| event.f == call && event.kind == kind)
        .unwrap()
}
