//! Running totals of order rates: what a commit reads, and which orders are in the window.
//!
//! Row counts come from `auto_explain`, as in `list_plans`.

use sqlx::{AssertSqlSafe, Executor as _};
use tokio::runtime::Handle;
use vouchsafe_actors::ports::record::{Record, Verdict};
use vouchsafe_actors::ports::store::{LaneStore, Store as _};
use vouchsafe_domain::cap::{CapCheck, CapCounter};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::partner::caps::PartnerCaps;
use vouchsafe_security::vault::grant_key::{Grant, GrantKey, PartnerTerms};
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::Subject as _;
use vouchsafe_store::{AuditActor, PgNode, PgStore};

use crate::explain::{EXPLAIN, lock_log};
use crate::subject::PgSubject;
use crate::waiting_orders::rows_read_since;

const HOUR_S: u32 = 3_600;

/// Rows that a commit of one order and a read of its counters may visit, however many orders the partner has.
const FEW_ROWS: f64 = 200.0;

fn counters() -> [CapCounter; 2] {
    [
        CapCounter::RecentOrders(HOUR_S),
        CapCounter::RecentAmount(HOUR_S, build::usd()),
    ]
}

fn checks() -> Vec<CapCheck> {
    let checks = counters().map(|counter| CapCheck {
        counter,
        added: 1,
        cap: Some(i64::MAX / 2),
    });
    checks.to_vec()
}

fn rated_order(name: &str) -> Record {
    Record {
        caps: checks(),
        ..build::pending_order(build::partner(1), name, 1)
    }
}

async fn must_commit(lane: &mut Box<dyn LaneStore>, batch: i64, record: Record) {
    let verdicts = lane.commit(batch, &[record]).await.unwrap();
    assert!(
        matches!(verdicts[..], [Verdict::Committed(Some(_))]),
        "{verdicts:?}"
    );
}

/// Books debits of this number of orders, ten a second.
async fn insert_debits(subject: &PgSubject, count: u32) {
    let insert = format!(
        "WITH w AS (
            UPDATE wallets SET sequence = sequence + {count}, balance = balance - {count}
             RETURNING partner_id, currency, sequence - {count} AS sequence, balance + {count} AS balance
         )
         INSERT INTO ledger (partner_id, transaction_id, currency, sequence, kind, amount, balance_after, order_id, created_at)
         SELECT w.partner_id, o.order_id, w.currency, w.sequence + o.n, 'DEBIT', -1, w.balance - o.n, o.order_id,
                now() + o.n * interval '100 ms'
           FROM w
          CROSS JOIN (SELECT n, gen_random_uuid() AS order_id FROM generate_series(1, {count}) AS n OFFSET 0) AS o"
    );
    subject.pool().execute(AssertSqlSafe(insert)).await.unwrap();
}

/// Sets an order rate as an operator does.
async fn set_order_rate(subject: &PgSubject, store: &PgStore) {
    let caps: PartnerCaps =
        serde_json::from_str(r#"{"approval_over":{"within_s":3600,"orders":1000000}}"#).unwrap();
    let key = GrantKey::from_bytes([1; 32]);
    let partner = store.partners.find(build::partner(1)).await.unwrap().unwrap();
    let terms = PartnerTerms {
        limits: "{}",
        ceilings: "{}",
        approval_rule: None,
        caps: None,
        catalogue: None,
    };
    sqlx::query("UPDATE partners SET mac = $1")
        .bind(key.mac(&Grant::of_partner(&partner, &terms)))
        .execute(subject.pool())
        .await
        .unwrap();
    store.grants.unlock(key);
    let changed = store
        .partners
        .change(
            build::partner(1),
            Box::new(|partner| partner.caps = Some(caps)),
            AuditActor::service(),
        )
        .await;
    changed.unwrap().expect("the partner exists");
}

#[tokio::test(flavor = "multi_thread")]
async fn rated_commit_reads_as_few_rows_for_many_orders_as_for_few() {
    let _log = lock_log().await;
    let subject = PgSubject::new().await;
    let partner = build::partner(1);
    subject.add_partner(partner).await;
    subject
        .top_up(build::usd_wallet(partner), Amount::from_minor(1_000_000))
        .await;
    let options = subject.superuser_options().options(EXPLAIN);
    let store = PgStore::open(options, Handle::current());
    let node = PgNode::start(&store.database, "one".to_owned()).await.unwrap();
    let mut lane = node.open_lane(0).await.unwrap();
    insert_debits(&subject, 20_000).await;
    set_order_rate(&subject, &store).await;
    let of_another = "INSERT INTO order_totals (partner_id, currency, at, sequence, orders, total)
                      SELECT 'ffffffff-ffff-7fff-bfff-ffffffffffff', 'USD', now() - n * interval '1 s', n, n, n
                        FROM generate_series(1, 5000) AS n";
    subject.pool().execute(of_another).await.unwrap();
    must_commit(&mut lane, 1, rated_order("first")).await;
    let begin = subject.log().len();
    let used = node.cap_usage(partner, checks()).await.unwrap();
    must_commit(&mut lane, 2, rated_order("second")).await;
    let rows = rows_read_since(&subject, begin);
    assert_eq!(used, [20_001, 20_001]);
    assert!(rows < FEW_ROWS, "the read and the commit visited {rows} rows");
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_leave_the_window_by_the_clock_of_the_database() {
    let subject = PgSubject::new().await;
    let partner = build::partner(1);
    subject.add_partner(partner).await;
    subject
        .top_up(build::usd_wallet(partner), Amount::from_minor(1_000_000))
        .await;
    let store = PgStore::open(subject.superuser_options(), Handle::current());
    let node = PgNode::start(&store.database, "one".to_owned()).await.unwrap();
    let mut lane = node.open_lane(0).await.unwrap();
    insert_debits(&subject, 10).await;
    set_order_rate(&subject, &store).await;
    // The ten count from the time of the top-up before them.
    let age = "UPDATE order_totals SET at = at - interval '30 minutes'";
    subject.pool().execute(age).await.unwrap();
    must_commit(&mut lane, 1, rated_order("new")).await;
    for (older, expected) in [("29 minutes", 11), ("31 minutes", 1), ("31 minutes", 0)] {
        let age = format!("UPDATE order_totals SET at = at - interval '{older}'");
        subject.pool().execute(AssertSqlSafe(age)).await.unwrap();
        let used = node.cap_usage(partner, checks()).await.unwrap();
        assert_eq!(used, [expected, expected]);
        let back = format!("UPDATE order_totals SET at = at + interval '{older}' WHERE {expected} = 11");
        subject.pool().execute(AssertSqlSafe(back)).await.unwrap();
    }
    store.partners.purge_usage().await.unwrap();
    must_commit(&mut lane, 2, rated_order("newest")).await;
    assert_eq!(node.cap_usage(partner, checks()).await.unwrap(), [1, 1]);
    // After more than a day without orders the totals begin anew.
    let age = "UPDATE order_totals SET at = at - interval '2 days'";
    subject.pool().execute(age).await.unwrap();
    store.partners.purge_usage().await.unwrap();
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM order_totals")
        .fetch_one(subject.pool())
        .await
        .unwrap();
    assert_eq!(kept, 1);
    assert_eq!(node.cap_usage(partner, checks()).await.unwrap(), [0, 0]);
    must_commit(&mut lane, 3, rated_order("after a break")).await;
    assert_eq!(node.cap_usage(partner, checks()).await.unwrap(), [12 + 1; 2]);
    subject.remove().await;
}
