//! Query plans of commit, stock claim, code retrieval and lookups: every table is read by an index condition.
//!
//! Plans come from `auto_explain`, including those of statements inside functions. They are made for tables
//! that were never analysed, or were analysed at the smallest size that triggers autovacuum, and are kept
//! while the tables grow to 100,000 rows.

use futures_util::future::join_all;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor};
use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe_actors::ports::record::{Record, Verdict};
use vouchsafe_actors::ports::store::{LaneStore, Store};
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::product::Sku;
use vouchsafe_domain::stock::{ClaimedStock, StockRequest};
use vouchsafe_domain::voucher::StockVoucher;
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::Subject;
use vouchsafe_store::{FeedPosition, PgNode, PgStore, RetrievalOutcome};

use crate::explain::{EXPLAIN, lock_log, plans};
use crate::subject::PgSubject;

/// Fills every table that a commit reads.
const INSERT_ROWS: &str = "
    INSERT INTO idempotency_keys
    SELECT gen_random_uuid(), sha256(i::text::bytea), 201, '', 'infinity' FROM generate_series(1, $1) AS i;
    INSERT INTO wallets (partner_id, currency, balance)
    SELECT gen_random_uuid(), 'USD', 1000 FROM generate_series(1, $2);
    INSERT INTO feeds SELECT gen_random_uuid(), 0 FROM generate_series(1, $2);
    INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id)
    SELECT 'gift', 100 + i % 1000, 1000000 + i, 1000000 + i FROM generate_series(1, $1) AS i;
    INSERT INTO allocations (stock_id, withdrawal_reason)
    SELECT $1 * 10 + i, 'void' FROM generate_series(1, $1) AS i;
    INSERT INTO stock (stock_id, chunk_id, code_id)
    SELECT $1 * 10 + i, 0, 0 FROM generate_series(1, $1) AS i;
    INSERT INTO orders (partner_id, order_id, status, currency, total, closed, last_sequence, lines, created_at, updated_at)
    SELECT gen_random_uuid(), gen_random_uuid(), 'DELIVERED', 'USD', 1, true, 3, '[]', now(), now()
      FROM generate_series(1, $1) AS i;
    INSERT INTO codes (code_id, product_id, denomination, blind_index, code_index, key_id, nonce, ciphertext)
    SELECT $1 * 10 + i, 'gift', 100, sha256(gen_random_uuid()::text::bytea), sha256(gen_random_uuid()::text::bytea), 0,
           substr(sha256(''), 1, 12), ''
      FROM generate_series(1, $1) AS i;
    INSERT INTO lanes SELECT gen_random_uuid(), 0, 1, 0 FROM generate_series(1, $2) AS i;";

/// Below this size autovacuum does not analyse a table, and the planner assumes ten pages.
const SMALL_TABLE: u32 = 50;

/// The same for tables with frequent updates, which count as changes, too.
const SMALL_UPDATED_TABLE: u32 = 3;

const LARGE_TABLE: u32 = 100_000;

const ANALYZE: &str =
    "ANALYZE idempotency_keys, wallets, feeds, chunks, stock, allocations, lanes, orders, codes";

async fn fill(subject: &PgSubject, rows: u32) {
    let updated = if rows == SMALL_TABLE {
        SMALL_UPDATED_TABLE
    } else {
        rows
    };
    let fill = INSERT_ROWS
        .replace("$1", &rows.to_string())
        .replace("$2", &updated.to_string());
    subject.pool().execute(AssertSqlSafe(fill)).await.unwrap();
}

/// A node whose statements are explained.
struct ExplainedNode<'s> {
    subject: &'s PgSubject,
    store: PgNode,
    lane: Box<dyn LaneStore>,
    stock: Vec<StockVoucher>,
    batch: i64,
}

impl<'s> ExplainedNode<'s> {
    async fn open(subject: &'s PgSubject, name: &str) -> Self {
        let options = subject.superuser_options().options(EXPLAIN);
        let store = PgNode::start(
            &PgStore::open(options, Handle::current()).database,
            name.to_owned(),
        )
        .await
        .unwrap();
        let lane = store.open_lane(0).await.unwrap();
        let expiries: Vec<_> = (0..100).map(build::day).collect();
        let stock = subject.add_chunk(&gift(), &expiries).await;
        // Remains as the next claimable chunk.
        subject.add_chunk(&gift(), &[build::day(200)]).await;
        claim(&store).await;
        Self {
            subject,
            store,
            lane,
            stock,
            batch: 0,
        }
    }

    /// Claims stock of a SKU with chunks and of one without, and checks the plans.
    async fn claim(&self, when: &str) {
        let begin = self.subject.log().len();
        claim(&self.store).await;
        let log = self.subject.log();
        let mut read = Vec::new();
        for plan in plans(&log[begin..]) {
            let text = plan["Query Text"].as_str().unwrap_or_default();
            let when = format!("{when}: {text}");
            check_claim_plan(&when, &plan["Plan"], &mut read);
            if text.contains("p_first") {
                // Other joins compare each voucher of a chunk with each sold one.
                assert!(
                    plan.to_string().contains("\"Node Type\":\"Merge Join\""),
                    "{when}: {plan:#}"
                );
            }
        }
        for table in ["chunks", "stock", "allocations"] {
            assert!(
                read.iter().any(|name| name == table),
                "{when}: {table} was not read: {read:?}"
            );
        }
    }

    /// Checks the plans logged since `begin`, and that they read these tables.
    fn assert_index_reads(&self, when: &str, begin: usize, tables: &[&str]) {
        let log = self.subject.log();
        let mut read = Vec::new();
        for plan in &plans(&log[begin..]) {
            check_plan(&format!("{when}: {}", plan["Query Text"]), plan, &mut read);
        }
        for table in tables {
            assert!(
                read.iter().any(|name| name == table),
                "{when}: {table} was not read: {read:?}"
            );
        }
    }

    /// Looks up an existing and a missing order, wallets and the feed, and checks the plans.
    async fn look_up(&self, when: &str, order_id: OrderId) {
        let begin = self.subject.log().len();
        let partner = build::partner(1);
        let orders = [order_id, OrderId::from_uuid(Uuid::nil())].map(|id| self.store.find_order(partner, id));
        let found = join_all(orders).await;
        assert!(matches!(found[..], [Ok(Some(_)), Ok(None)]), "{found:?}");
        assert!(!self.store.list_wallets(partner).await.unwrap().is_empty());
        let oldest = self
            .store
            .read_feed(partner, FeedPosition::Oldest, 1)
            .await
            .unwrap()
            .unwrap();
        let first = oldest.events.first().expect("the partner has events");
        let after = FeedPosition::After(first.events.event_id(first.number));
        assert!(self.store.read_feed(partner, after, 1).await.unwrap().is_some());
        self.assert_index_reads(
            when,
            begin,
            &["orders", "allocations", "stock", "wallets", "feeds", "events"],
        );
    }

    /// Retrieves the codes of an existing and a missing order, and checks the plans.
    async fn read_codes(&self, when: &str, order_id: OrderId) {
        let begin = self.subject.log().len();
        let partner = build::partner(1);
        let mut requests = Vec::new();
        for order_id in [order_id, OrderId::from_uuid(Uuid::nil())] {
            requests.push(self.subject.retrieval(partner, order_id).await);
        }
        let read = join_all(
            requests
                .into_iter()
                .map(|requests| self.store.retrieve_codes(requests)),
        )
        .await;
        assert!(
            matches!(
                read[..],
                [Ok(RetrievalOutcome::Vouchers(_)), Ok(RetrievalOutcome::NotFound)]
            ),
            "{read:?}"
        );
        self.assert_index_reads(when, begin, &["orders", "allocations", "stock", "codes"]);
    }

    /// Commits a batch that covers every branch of the function, and checks the plans.
    async fn commit(&mut self, when: &str) {
        self.batch += 1;
        let name = format!("{}/{}", self.store.identity().name, self.batch);
        let begin = self.subject.log().len();
        let records = batch_of_each_kind(&name, &mut self.stock);
        let verdicts = self.lane.commit(self.batch, &records).await.unwrap();
        // Filling tables may take longer than a lease; the next node must not find these chunks claimable.
        assert!(self.store.renew_lease().await.unwrap());
        assert!(
            matches!(
                verdicts[..],
                [
                    Verdict::Committed(_),
                    Verdict::Committed(_),
                    Verdict::KeyKnown(_),
                    Verdict::Stale(_),
                    Verdict::Stale(_)
                ]
            ),
            "{verdicts:?}"
        );
        // A batch of only debits takes another branch.
        self.batch += 1;
        let debits = [build::pending_order(
            build::partner(1),
            &format!("{name}/debit"),
            1,
        )];
        let paid = self.lane.commit(self.batch, &debits).await.unwrap();
        assert!(matches!(paid[..], [Verdict::Committed(Some(_))]), "{paid:?}");
        self.assert_index_reads(
            when,
            begin,
            &[
                "lanes",
                "idempotency_keys",
                "wallets",
                "chunks",
                "allocations",
                "feeds",
            ],
        );
        let sold = records[1].order.as_ref().unwrap();
        self.read_codes(when, sold.order_id).await;
        self.look_up(when, sold.order_id).await;
    }
}

/// Covers every branch of a claim: takes a chunk and reports the next one; marks a SKU's chunks as sold out
/// and searches the stock of other nodes.
async fn claim(store: &PgNode) {
    let request = |sku| StockRequest {
        sku,
        loaded_chunks: Vec::new(),
        target_quantity: 1,
        not_before: build::day(0),
        demanded: 0,
    };
    let claimed = store.claim_stock(request(gift())).await.unwrap();
    assert_eq!(
        (claimed.chunks.len(), claimed.next_expiry.is_some()),
        (1, true),
        "{claimed:?}"
    );
    let nothing = store.claim_stock(request(build::sku("gift", 101))).await.unwrap();
    assert_eq!(nothing, ClaimedStock::default());
}

/// Checks a claim's plan recursively: tables that grow with the stock are read by an index condition and
/// without a sort, so that the first row is cheap.
fn check_claim_plan(when: &str, node: &Value, read: &mut Vec<String>) {
    let below = node["Plans"].as_array().into_iter().flatten();
    below.for_each(|node| check_claim_plan(when, node, read));
    let kind = node["Node Type"].as_str().unwrap_or_default();
    assert!(kind != "Sort", "{when}: {node:#}");
    let grows = ["chunks", "stock", "allocations", "purchases"];
    if node["Relation Name"]
        .as_str()
        .is_some_and(|table| grows.contains(&table))
    {
        check_plan(when, node, read);
    }
}

fn gift() -> Sku {
    build::sku("gift", 100)
}

/// A top-up, an order, a known key, an uncovered debit, and an order whose voucher is allocated.
fn batch_of_each_kind(name: &str, stock: &mut Vec<StockVoucher>) -> Vec<Record> {
    let partner = build::partner(1);
    let (sold, other) = (stock.pop().unwrap(), stock.pop().unwrap());
    let order = |description: &str, held: &[StockVoucher]| {
        build::delivered_order(partner, &format!("{name}/{description}"), &[(&gift(), held)])
    };
    vec![
        build::top_up(build::usd_wallet(partner), &format!("{name}/money"), 1_000),
        order("sold", &[sold]),
        build::with_key("known", order("again", &[other])),
        build::pending_order(partner, &format!("{name}/dear"), 1_000_000),
        order("gone", &[sold, other]),
    ]
}

/// Checks a plan recursively and collects the tables that it reads. Catalogs of Postgres, which a new
/// connection reads, do not grow.
fn check_plan(when: &str, node: &Value, read: &mut Vec<String>) {
    let below = [&node["Plan"]].into_iter().filter(|plan| !plan.is_null());
    let below = below.chain(node["Plans"].as_array().into_iter().flatten());
    below.for_each(|node| check_plan(when, node, read));
    let kind = node["Node Type"].as_str().unwrap_or_default();
    let Some(table) = node["Relation Name"].as_str().filter(|_| kind.ends_with("Scan")) else {
        if let Some(table) = node["Conflict Arbiter Indexes"]
            .as_array()
            .and(node["Relation Name"].as_str())
        {
            read.push(table.to_owned());
        }
        return;
    };
    if table.starts_with("pg_") {
        return;
    }
    let condition = match kind {
        "Bitmap Heap Scan" | "Bitmap Index Scan" => "Recheck Cond",
        // A row that an index found.
        "Tid Scan" => "TID Cond",
        _ => "Index Cond",
    };
    assert!(!node[condition].is_null(), "{when}: {table} is read by {node:#}");
    read.push(table.to_owned());
}

/// A database with a partner and a stored response.
async fn open() -> PgSubject {
    let subject = PgSubject::new().await;
    let partner = build::partner(1);
    subject.add_partner(partner).await;
    let mut lane = subject.start("nobody").await.open_lane(0).await.unwrap();
    lane.commit(1, &[build::refusal(partner, "known")]).await.unwrap();
    // While another node lives, a claim takes no more chunks than it needs. Its lease outlasts the test.
    let lease = "UPDATE nodes SET lease_until = lease_until + interval '1 day' WHERE node = 'nobody'";
    assert_eq!(subject.pool().execute(lease).await.unwrap().rows_affected(), 1);
    subject
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_made_for_empty_tables_suit_large_ones() {
    let _log = lock_log().await;
    let subject = open().await;
    let mut early = ExplainedNode::open(&subject, "early").await;
    early.commit("empty").await;
    fill(&subject, LARGE_TABLE).await;
    early.commit("planned when empty").await;
    let mut late = ExplainedNode::open(&subject, "late").await;
    late.commit("never analysed").await;
    early.claim("planned when empty").await;
    late.claim("never analysed").await;
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_made_for_small_tables_suit_large_ones() {
    let _log = lock_log().await;
    let subject = open().await;
    let mut early = ExplainedNode::open(&subject, "early").await;
    fill(&subject, SMALL_TABLE).await;
    subject.pool().execute(ANALYZE).await.unwrap();
    early.commit("analysed when small").await;
    fill(&subject, LARGE_TABLE).await;
    early.commit("planned when small").await;
    early.claim("planned when small").await;
    subject.pool().execute(ANALYZE).await.unwrap();
    early.commit("planned anew").await;
    early.claim("planned anew").await;
    let mut late = ExplainedNode::open(&subject, "late").await;
    late.commit("planned when large").await;
    late.claim("planned when large").await;
    subject.remove().await;
}
