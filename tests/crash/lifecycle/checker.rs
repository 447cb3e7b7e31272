//! Comparison of acknowledged lifecycle requests with the database.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};
use vouchsafe_test_harness::WAIT_TIMEOUT;

use super::request_log::{OrderFacts, PayoutFacts, RequestLog};

#[derive(sqlx::FromRow)]
struct OrderRow {
    order_id: String,
    status: String,
    refunded: i64,
    total: i64,
    held: i64,
    debits: i64,
    back: i64,
    traces: i64,
    /// Decisions in the audit log.
    decisions: i64,
    /// `actor status` per timeline entry.
    stages: Vec<String>,
}

#[derive(sqlx::FromRow)]
struct PayoutRow {
    payout_id: String,
    status: String,
    debits: i64,
    refunds: i64,
    decisions: i64,
}

/// Panics on the first order or payout that contradicts an acknowledgement.
pub(super) async fn check_acknowledged(book: &RequestLog, database: &mut PgConnection) {
    let mut snapshot = database.begin().await.unwrap();
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        .execute(&mut *snapshot)
        .await
        .unwrap();
    for (number, buyer) in book.buyers.iter().enumerate() {
        let orders = book
            .orders()
            .into_iter()
            .filter(|(_, facts)| facts.buyer == number);
        check_orders(&orders.collect(), rows(&mut snapshot, &buyer.partner_id).await);
        let payouts = book
            .payouts()
            .into_iter()
            .filter(|(_, facts)| facts.buyer == number);
        check_payouts(
            &payouts.collect(),
            payout_rows(&mut snapshot, &buyer.partner_id).await,
        );
    }
    snapshot.rollback().await.unwrap();
}

fn check_orders(acknowledged: &BTreeMap<String, OrderFacts>, rows: Vec<OrderRow>) {
    let stored: BTreeSet<_> = rows.iter().map(|row| &row.order_id).collect();
    assert_eq!(
        stored,
        acknowledged.keys().collect(),
        "stored and acknowledged entries differ"
    );
    for row in &rows {
        let facts = &acknowledged[&row.order_id];
        let broken = broken_rules(facts, row);
        assert!(
            broken.is_empty(),
            "{} is {}, {:?}: {broken:?}; acknowledged: {facts:?}",
            row.order_id,
            row.status,
            row.stages
        );
    }
}

/// Returns the rules that the order's row breaks.
fn broken_rules(facts: &OrderFacts, row: &OrderRow) -> Vec<&'static str> {
    let stage = |stage: &str| row.stages.iter().any(|entered| entered == stage);
    let rejected = stage("operator CANCELLED");
    let rules = [
        ("it is debited once", row.debits == 1),
        ("the refunds equal its refunded amount", row.back == row.refunded),
        (
            "a refunded order has no vouchers and its full total back",
            row.status != "REFUNDED" || (row.held == 0 && row.back == row.total),
        ),
        (
            "an acknowledged cancellation is retained",
            facts.cancel_response.is_none() || (row.status == "REFUNDED" && stage("partner CANCELLED")),
        ),
        (
            "an order with read codes is not cancelled",
            facts.code_reads == 0 || (row.status != "REFUNDED" && row.held > 0),
        ),
        ("every code read is audited", row.traces >= facts.code_reads),
        (
            "an approved order was processed",
            facts.decision != Some("approve") || stage("operator PROCESSING"),
        ),
        (
            "a rejected order is refunded",
            facts.decision != Some("reject") || (row.status == "REFUNDED" && rejected),
        ),
        (
            "it is decided at most once",
            row.decisions <= 1 && (facts.decision.is_none() || row.decisions == 1),
        ),
        (
            "a revoked order has an operator's entry",
            !facts.revoked || row.stages.iter().any(|entered| entered.starts_with("operator")),
        ),
    ];
    rules
        .into_iter()
        .filter(|(_, holds)| !holds)
        .map(|(rule, _)| rule)
        .collect()
}

fn check_payouts(acknowledged: &BTreeMap<String, PayoutFacts>, rows: Vec<PayoutRow>) {
    let stored: BTreeSet<_> = rows.iter().map(|row| &row.payout_id).collect();
    assert_eq!(
        stored,
        acknowledged.keys().collect(),
        "stored and acknowledged entries differ"
    );
    for row in &rows {
        let PayoutRow {
            payout_id,
            status,
            debits,
            refunds,
            decisions,
        } = row;
        let expected_refunds = i64::from(status == "REJECTED" || status == "FAILED");
        assert_eq!(
            (*debits, *refunds),
            (1, expected_refunds),
            "{payout_id} is {status}"
        );
        assert_eq!(
            *decisions,
            i64::from(status != "PENDING"),
            "{payout_id} is {status}"
        );
        if let Some(ended) = &acknowledged[payout_id].final_status {
            assert_eq!(status, ended, "{payout_id}: the acknowledged decision is lost");
        }
    }
}

async fn rows(snapshot: &mut PgConnection, partner_id: &str) -> Vec<OrderRow> {
    sqlx::query_as(
        "SELECT 'ord_' || replace(o.order_id::text, '-', '') AS order_id,
                o.status,
                o.refunded,
                o.total,
                (SELECT count(*)
                   FROM allocations AS a
                  WHERE a.partner_id = o.partner_id AND a.order_id = o.order_id AND a.returned_at IS NULL) AS held,
                l.debits,
                l.back,
                (SELECT count(*)
                   FROM audit_log AS r
                  WHERE r.subject = 'ord_' || replace(o.order_id::text, '-', '')
                    AND r.action = 'codes.retrieve') AS traces,
                (SELECT count(*)
                   FROM audit_log AS t
                  WHERE t.subject = 'ord_' || replace(o.order_id::text, '-', '')
                    AND t.action IN ('order.approve', 'order.reject')) AS decisions,
                ARRAY(SELECT (e.item ->> 'by') || ' ' || (e.item ->> 'status')
                        FROM jsonb_array_elements(order_timeline_v1(o)) WITH ORDINALITY AS e (item, entry)
                       ORDER BY e.entry) AS stages
           FROM orders AS o
          CROSS JOIN LATERAL (
                SELECT count(*) FILTER (WHERE l.kind = 'DEBIT') AS debits,
                       COALESCE(sum(l.amount) FILTER (WHERE l.kind = 'REFUND'), 0)::bigint AS back
                  FROM ledger AS l
                 WHERE l.partner_id = o.partner_id AND l.order_id = o.order_id
                ) AS l
          WHERE 'ptn_' || replace(o.partner_id::text, '-', '') = $1",
    )
    .bind(partner_id)
    .fetch_all(snapshot)
    .await
    .unwrap()
}

async fn payout_rows(snapshot: &mut PgConnection, partner_id: &str) -> Vec<PayoutRow> {
    sqlx::query_as(
        "SELECT 'po_' || replace(p.payout_id::text, '-', '') AS payout_id,
                p.status,
                (SELECT count(*)
                   FROM ledger AS l
                  WHERE l.partner_id = p.partner_id AND l.payout_id = p.payout_id
                    AND l.kind = 'PAYOUT' AND l.amount = -p.amount) AS debits,
                (SELECT count(*)
                   FROM ledger AS l
                  WHERE l.partner_id = p.partner_id AND l.payout_id = p.payout_id
                    AND l.kind = 'PAYOUT_REVERSAL' AND l.amount = p.amount) AS refunds,
                (SELECT count(*)
                   FROM audit_log AS t
                  WHERE t.subject = 'po_' || replace(p.payout_id::text, '-', '')
                    AND t.action LIKE 'payout.%') AS decisions
           FROM payouts AS p
          WHERE 'ptn_' || replace(p.partner_id::text, '-', '') = $1",
    )
    .bind(partner_id)
    .fetch_all(snapshot)
    .await
    .unwrap()
}

/// Waits until no order waits for a vendor. Orders of the manual vendor wait forever and are ignored.
pub(super) async fn wait_until_vendor_orders_end(database: &mut PgConnection) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        let waiting: Vec<String> = sqlx::query_scalar(
            "SELECT o.order_id || ' ' || o.status || ' ' || o.lines || COALESCE((
                    SELECT string_agg(' ' || to_jsonb(p)::text, '')
                      FROM purchases AS p
                     WHERE p.order_id = o.order_id
                    ), '') || ' at ' || now()
               FROM orders AS o
              WHERE NOT o.closed
                AND o.pending_reason IS DISTINCT FROM 'APPROVAL'
                AND NOT EXISTS (
                    SELECT
                      FROM jsonb_array_elements(o.lines::jsonb) AS l
                      JOIN products AS p ON p.product_id = l ->> 'p'
                     WHERE p.vendor = 'by-hand'
                    )",
        )
        .fetch_all(&mut *database)
        .await
        .unwrap();
        if waiting.is_empty() {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "orders still open after {WAIT_TIMEOUT:?}: {waiting:#?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
