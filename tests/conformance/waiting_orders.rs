//! Cost of waiting orders: what orders lack is found per SKU, however many orders wait for others.
//!
//! Row counts come from `auto_explain`, as in `list_plans`.

use std::slice::from_ref;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor};
use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe_actors::ports::record::Verdict;
use vouchsafe_actors::ports::store::Store as _;
use vouchsafe_actors::ports::vendors::{OrderPurchases, ReservedStock, SkuLocks as _, WaitingOrder};
use vouchsafe_domain::order::Actor;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::transition::{Cause, OrderTransition};
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::{OtherTransaction as _, Subject as _};
use vouchsafe_store::{PgNode, PgStore};
use vouchsafe_test_harness::{WAIT_TIMEOUT, eventually};

use crate::explain::{EXPLAIN, lock_log, plans, rows_read};
use crate::subject::PgSubject;

/// Orders that wait for a SKU; no test may visit a tenth of them.
const WAITING: u32 = 20_000;

const FEW_ROWS: f64 = 1_000.0;

const HOUR: Duration = Duration::from_secs(3_600);

/// Inserts orders that wait for a SKU.
pub(crate) async fn insert_waiting_orders(subject: &PgSubject, sku: &Sku, count: u32) {
    let insert = format!(
        "INSERT INTO orders (partner_id, order_id, status, currency, total, pending_reason, closed, last_sequence, lines,
                             created_at, updated_at)
         SELECT '{partner}', gen_random_uuid(), 'PENDING', 'USD', 1, 'VENDOR', false, 1,
                '[{{\"p\":\"{product}\",\"d\":{denomination},\"q\":1,\"a\":0}}]', now(), now()
           FROM generate_series(1, {count})",
        partner = build::partner(2).as_uuid(),
        product = sku.product_id,
        denomination = sku.denomination.minor(),
    );
    subject.pool().execute(AssertSqlSafe(insert)).await.unwrap();
}

/// Rows that the server has read since this position of its log.
pub(crate) fn rows_read_since(subject: &PgSubject, begin: usize) -> f64 {
    let plans = plans(&subject.log()[begin..]);
    assert!(!plans.is_empty(), "the server logged no plan");
    plans.iter().map(|plan| rows_read(&plan["Plan"])).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn returned_voucher_visits_no_order_that_waits_for_another_sku() {
    let _log = lock_log().await;
    let subject = PgSubject::new().await;
    let partner = build::partner(1);
    subject.add_partner(partner).await;
    let gifts = subject
        .add_chunk(&build::sku("gift", 1_000), &[build::day(0)])
        .await;
    insert_waiting_orders(&subject, &build::sku("other", 1_000), WAITING).await;
    let options = subject.superuser_options().options(EXPLAIN);
    let store = PgStore::open(options, Handle::current());
    let node = PgNode::start(&store.database, "one".to_owned()).await.unwrap();
    let mut lane = node.open_lane(0).await.unwrap();
    let request = vouchsafe_domain::stock::StockRequest {
        sku: build::sku("gift", 1_000),
        loaded_chunks: Vec::new(),
        target_quantity: 1,
        not_before: build::day(0),
        demanded: 0,
    };
    node.claim_stock(request).await.unwrap();
    let funded = build::top_up(build::usd_wallet(partner), "funded", 10_000);
    let sold = build::delivered_order(partner, "sold", &[(&build::sku("gift", 1_000), &gifts)]);
    let order_id = sold.order.as_ref().unwrap().order_id;
    lane.commit(1, &[funded, sold]).await.unwrap();
    let stored = node.load_order(partner, order_id).await.unwrap().unwrap();
    let mut transition = OrderTransition::new(stored.order, build::transaction_id("back"), build::NOW);
    transition.cancel(&Cause {
        by: Actor::Partner,
        reason: None,
    });
    let numbers = node.allocate_stock_ids(1).await.unwrap();
    let cancelled = build::order_change("back", stored.last_sequence, transition, &numbers);
    let begin = subject.log().len();
    let verdicts = lane.commit(2, &[cancelled]).await.unwrap();
    assert!(
        matches!(verdicts[..], [Verdict::Committed(Some(_))]),
        "{verdicts:?}"
    );
    let rows = rows_read_since(&subject, begin);
    assert!(rows < FEW_ROWS, "the commit read {rows} rows");
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn released_remainder_visits_no_order_that_waits_for_another_sku() {
    let _log = lock_log().await;
    let subject = PgSubject::new().await;
    let gift = build::sku("gift", 1_000);
    let gifts = subject.add_chunk(&gift, &[build::day(0)]).await;
    let purchase_id = Uuid::new_v4();
    subject.reserve_for(&gifts, Some(purchase_id)).await;
    insert_waiting_orders(&subject, &build::sku("other", 1_000), WAITING).await;
    let options = subject.superuser_options().options(EXPLAIN);
    let store = PgStore::open(options, Handle::current());
    let begin = subject.log().len();
    let released = store.reservations.release_remainder(purchase_id).await.unwrap();
    assert_eq!(released, Some(gift));
    let rows = rows_read_since(&subject, begin);
    assert!(rows < FEW_ROWS, "the release read {rows} rows");
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn backlog_of_one_sku_delays_no_order_of_another() {
    const ROUND: usize = 256;
    let _log = lock_log().await;
    let subject = PgSubject::new().await;
    let (gift, other) = (build::sku("gift", 1_000), build::sku("other", 1_000));
    insert_waiting_orders(&subject, &other, WAITING).await;
    insert_waiting_orders(&subject, &gift, 1).await;
    subject.pool().execute("ANALYZE order_demands").await.unwrap();
    let options = subject.superuser_options().options(EXPLAIN);
    let waiting = PgStore::open(options, Handle::current()).waiting_orders;
    let unrelated = waiting.list_for_sku(gift, None, 2).await.unwrap();
    let begin = subject.log().len();
    let first = waiting.claim_due(ROUND).await.unwrap();
    let rows = rows_read_since(&subject, begin);
    assert!(rows < 4.0 * FEW_ROWS, "the claim read {rows} rows");
    assert_eq!(
        first.len(),
        ROUND / 2 + 1,
        "half a round, and the only order of the other half"
    );
    let is_unrelated = |order: &WaitingOrder| unrelated == [(order.partner_id, order.order_id)];
    assert!(first.iter().any(is_unrelated));
    let second = waiting.claim_due(ROUND).await.unwrap();
    assert!(
        !second.iter().any(|order| first.contains(order)),
        "an order is claimed once until it is due again"
    );
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sku_of_which_no_order_is_due_costs_a_round_nothing() {
    let _log = lock_log().await;
    let subject = PgSubject::new().await;
    let later =
        "INSERT INTO order_demands (product_id, denomination, order_id, partner_id, accepted_at, next_at)
                 SELECT 'other', n, gen_random_uuid(), gen_random_uuid(), now(), now() + interval '1 hour'
                   FROM generate_series(1, 20000) AS n";
    subject.pool().execute(later).await.unwrap();
    insert_waiting_orders(&subject, &build::sku("gift", 1_000), 1).await;
    subject.pool().execute("ANALYZE order_demands").await.unwrap();
    let options = subject.superuser_options().options(EXPLAIN);
    let waiting = PgStore::open(options, Handle::current()).waiting_orders;
    let begin = subject.log().len();
    assert_eq!(waiting.claim_due(256).await.unwrap().len(), 1);
    let rows = rows_read_since(&subject, begin);
    assert!(rows < FEW_ROWS, "the claim read {rows} rows");
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_order_is_due_when_its_purchase_ends() {
    let subject = PgSubject::new().await;
    let sku = build::sku("gift", 1_000);
    insert_waiting_orders(&subject, &sku, 1).await;
    let store = subject.store();
    let claimed = store.waiting_orders.claim_due(1).await.unwrap();
    assert!(
        matches!(&claimed[..], [order] if order.purchases == OrderPurchases::None),
        "{claimed:?}"
    );
    open_purchases(&subject).await;
    let postpone = "UPDATE order_demands SET next_at = now() + interval '1 hour'";
    subject.pool().execute(postpone).await.unwrap();
    assert_eq!(store.waiting_orders.claim_due(1).await.unwrap(), []);
    subject
        .pool()
        .execute("UPDATE purchases SET ended = true")
        .await
        .unwrap();
    let claimed = store.waiting_orders.claim_due(1).await.unwrap();
    assert!(
        matches!(&claimed[..], [order] if order.purchases == OrderPurchases::Ended),
        "{claimed:?}"
    );
    subject
        .pool()
        .execute("UPDATE orders SET closed = true")
        .await
        .unwrap();
    assert_eq!(store.waiting_orders.list_for_sku(sku, None, 1).await.unwrap(), []);
    subject.remove().await;
}

/// Each returned voucher is a reservation of its own while an order waits for its SKU.
#[tokio::test(flavor = "multi_thread")]
async fn many_reservations_of_one_sku_hide_none_of_another() {
    let subject = PgSubject::new().await;
    let (gift, other) = (build::sku("gift", 1_000), build::sku("other", 1_000));
    for _ in 0..9 {
        subject.add_chunk(&gift, &[build::day(0)]).await;
    }
    subject.add_chunk(&other, &[build::day(0)]).await;
    let reserve = "UPDATE chunks SET reservation_id = gen_random_uuid()";
    subject.pool().execute(reserve).await.unwrap();
    let reservations = &subject.store().reservations;
    let share = |listed: &[ReservedStock]| {
        let of_sku = listed.iter();
        of_sku
            .map(|stock| (stock.sku.clone(), stock.reservation_ids.len()))
            .collect::<Vec<_>>()
    };
    let listed = reservations.list(8).await.unwrap();
    assert_eq!(share(&listed), [(gift.clone(), 4), (other.clone(), 1)]);
    reservations
        .release(listed[0].reservation_ids.clone())
        .await
        .unwrap();
    let listed = reservations.list(8).await.unwrap();
    assert_eq!(share(&listed), [(gift, 4), (other, 1)], "the next ones");
    for stock in reservations.list(1_000).await.unwrap() {
        reservations.release(stock.reservation_ids).await.unwrap();
    }
    assert_eq!(reservations.list(8).await.unwrap(), []);
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn released_stock_makes_only_later_orders_of_its_sku_due() {
    let subject = PgSubject::new().await;
    let (gift, other) = (build::sku("gift", 1_000), build::sku("other", 1_000));
    insert_waiting_orders(&subject, &gift, 3).await;
    insert_waiting_orders(&subject, &other, 1).await;
    let waiting = &subject.store().waiting_orders;
    assert_eq!(waiting.claim_due(10).await.unwrap().len(), 4);
    let postpone = "UPDATE order_demands SET next_at = now() + interval '1 minute'";
    subject.pool().execute(postpone).await.unwrap();
    let of_gift = waiting.list_for_sku(gift.clone(), None, 10).await.unwrap();
    waiting.expedite(gift, of_gift[0].1).await.unwrap();
    let due = waiting.claim_due(10).await.unwrap();
    let due: Vec<_> = due
        .iter()
        .map(|order| (order.partner_id, order.order_id))
        .collect();
    assert_eq!(due, of_gift[1..]);
    subject.remove().await;
}

/// Opens a purchase for each waiting order. Returns the id of one.
async fn open_purchases(subject: &PgSubject) -> Uuid {
    let open = "INSERT INTO purchases (purchase_id, partner_id, order_id, line, vendor, product_id, denomination, currency,
                                       quantity, expiry_policy, requested_at)
                SELECT order_id, partner_id, order_id, 0, 'v', product_id, denomination, 'USD', 1, '{}', now() FROM order_demands
                RETURNING purchase_id";
    sqlx::query_scalar(open).fetch_one(subject.pool()).await.unwrap()
}

/// A round that has read the purchase as open postpones the order after the purchase has ended.
#[tokio::test(flavor = "multi_thread")]
async fn purchase_that_ends_during_a_round_makes_its_order_due() {
    let subject = PgSubject::new().await;
    insert_waiting_orders(&subject, &build::sku("gift", 1_000), 1).await;
    let purchase_id = open_purchases(&subject).await;
    let store = subject.store();
    let postpone = sqlx::query("UPDATE order_demands SET next_at = now() + interval '5 minutes'");
    let round = subject.begin_with(postpone).await;
    let writes = store.purchases.start_writes("one".to_owned());
    let end = writes.release(purchase_id, None);
    let mut end = std::pin::pin!(end);
    let is_blocked = "SELECT EXISTS (
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')";
    let ended = loop {
        let blocked = sqlx::query_scalar(is_blocked).fetch_one(subject.pool());
        tokio::select! {
            ended = &mut end => break Some(ended),
            blocked = blocked => if blocked.unwrap() { break None },
        }
    };
    round.commit().await;
    match ended {
        Some(ended) => ended.unwrap(),
        None => end.await.unwrap(),
    }
    let due = store.waiting_orders.claim_due(1).await.unwrap();
    assert!(
        matches!(&due[..], [order] if order.purchases == OrderPurchases::Ended),
        "{due:?}"
    );
    subject.remove().await;
}

/// Orders and purchases were postponed, and a purchase claimed, while the database's clock was an hour fast.
#[tokio::test(flavor = "multi_thread")]
async fn clock_that_was_set_back_postpones_nothing() {
    let subject = PgSubject::new().await;
    insert_waiting_orders(&subject, &build::sku("gift", 1_000), 1).await;
    let purchase_id = open_purchases(&subject).await;
    let (orders, purchases) = (&subject.store().waiting_orders, &subject.store().purchases);
    let writes = purchases.start_writes("one".to_owned());
    let list_due = || purchases.list_due("v".to_owned(), 1);
    // The usual delay of an old order is five minutes, which no machine spends here.
    let age = "UPDATE order_demands SET accepted_at = accepted_at - interval '1 day'";
    subject.pool().execute(age).await.unwrap();
    orders.claim_due(1).await.unwrap();
    writes.release(purchase_id, Some(HOUR)).await.unwrap();
    orders.expedite_after_clock_change().await.unwrap();
    purchases.expedite_after_clock_change().await.unwrap();
    assert_eq!(orders.claim_due(1).await.unwrap(), [], "the usual delay");
    assert_eq!(list_due().await.unwrap(), [], "the longest delay of a vendor");
    let set_back = "UPDATE order_demands SET next_at = next_at + interval '1 hour';
                    UPDATE purchases SET next_at = next_at + interval '1 hour'";
    subject.pool().execute(set_back).await.unwrap();
    orders.expedite_after_clock_change().await.unwrap();
    purchases.expedite_after_clock_change().await.unwrap();
    assert_eq!(orders.claim_due(1).await.unwrap().len(), 1);
    assert_eq!(list_due().await.unwrap().len(), 1);
    let claimed = writes.claim(purchase_id).await.unwrap();
    assert!(claimed.is_some());
    purchases.expedite_after_clock_change().await.unwrap();
    assert_eq!(list_due().await.unwrap(), [], "the claim of this moment");
    let set_back = "UPDATE purchases SET claimed_until = claimed_until + interval '1 hour'";
    subject.pool().execute(set_back).await.unwrap();
    purchases.expedite_after_clock_change().await.unwrap();
    assert_eq!(
        list_due().await.unwrap(),
        [],
        "its node may be calling the vendor"
    );
    let ends = "SELECT claimed_until <= clock_timestamp() + interval '2 minutes' FROM purchases";
    let ends_in_time: bool = sqlx::query_scalar(ends).fetch_one(subject.pool()).await.unwrap();
    assert!(ends_in_time, "the claim has its usual time from now");
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sku_is_served_by_one_node_until_it_unlocks_it_or_its_connection_ends() {
    let subject = PgSubject::new().await;
    let node = || PgStore::open(subject.options(), Handle::current()).waiting_orders;
    let [mut one, mut two] = [
        node().open_sku_locks().await.unwrap(),
        node().open_sku_locks().await.unwrap(),
    ];
    let (gift, other) = (build::sku("gift", 1_000), build::sku("other", 1_000));
    assert_eq!(one.lock(vec![gift.clone()]).await.unwrap(), from_ref(&gift));
    let both = || vec![gift.clone(), other.clone()];
    assert_eq!(two.lock(both()).await.unwrap(), from_ref(&other));
    assert_eq!(one.lock(both()).await.unwrap(), from_ref(&gift));
    assert_eq!(one.lock(Vec::new()).await.unwrap(), []);
    assert_eq!(two.lock(both()).await.unwrap(), both());
    let end = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = (
                   SELECT oid FROM pg_database WHERE datname = current_database())";
    subject.pool().execute(end).await.unwrap();
    let taken = eventually("the locks to end", WAIT_TIMEOUT, async || {
        Some(one.lock(both()).await.unwrap()).filter(|taken| taken.len() == 2)
    });
    assert_eq!(taken.await, both());
    two.lock(Vec::new()).await.unwrap_err();
    subject.remove().await;
}
