//! The commit, a claim of stock, a reading of codes and a look-up find what they look for by an index, however large the tables
//! are and whenever their plans were made.
//!
//! The server itself says how it ran each statement inside the function (`auto_explain`); every table that is read must
//! be read by a condition on an index. Plans are made for tables that were never analysed, or were so with as few rows as
//! ever make the server do it by itself, and are kept while the tables grow to 100,000 rows.

use futures_util::future::join_all;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor};
use tokio::runtime::Handle;
use uuid::Uuid;
use vouchsafe::store::{FeedPlace, PgNode, PgStore, Retrieved};
use vouchsafe_actors::domain::ids::OrderId;
use vouchsafe_actors::domain::product::Sku;
use vouchsafe_actors::domain::stock::{ClaimedStock, StockRequest};
use vouchsafe_actors::domain::voucher::Shelved;
use vouchsafe_actors::journal::{Record, Verdict};
use vouchsafe_actors::store::{LaneStore, Store};
use vouchsafe_actors::testing::build;
use vouchsafe_actors::testing::conformance::Subject;

use crate::explained::{EXPLAIN, log_to_itself, plans};
use crate::subject::PgSubject;

/// So many rows of everything that a commit looks into.
const FILL: &str = "
    INSERT INTO idempotency_keys
    SELECT gen_random_uuid(), sha256(i::text::bytea), 201, '', 'infinity' FROM generate_series(1, $1) AS i;
    INSERT INTO wallets (partner_id, currency, balance)
    SELECT gen_random_uuid(), 'USD', 1000 FROM generate_series(1, $2);
    INSERT INTO feeds SELECT gen_random_uuid(), 0 FROM generate_series(1, $2);
    INSERT INTO chunks (product_id, denomination, first_stock_id, last_stock_id)
    SELECT 'gift', 100 + i % 1000, 1000000 + i, 1000000 + i FROM generate_series(1, $1) AS i;
    INSERT INTO allocations (stock_id, taken_out)
    SELECT $1 * 10 + i, 'void' FROM generate_series(1, $1) AS i;
    INSERT INTO stock (stock_id, chunk_id, code_id)
    SELECT $1 * 10 + i, 0, 0 FROM generate_series(1, $1) AS i;
    INSERT INTO orders (partner_id, order_id, status, currency, total, closed, last_sequence, lines, created_at, updated_at)
    SELECT gen_random_uuid(), gen_random_uuid(), 'DELIVERED', 'USD', 1, true, 3, '[]', now(), now()
      FROM generate_series(1, $1) AS i;
    INSERT INTO codes (code_id, product_id, denomination, blind_index, key_id, nonce, ciphertext)
    SELECT $1 * 10 + i, 'gift', 100, sha256(gen_random_uuid()::text::bytea), 0, substr(sha256(''), 1, 12), ''
      FROM generate_series(1, $1) AS i;
    INSERT INTO lanes SELECT gen_random_uuid(), 0, 1, 0 FROM generate_series(1, $2) AS i;";

/// Below this a table is not analysed by the server itself, and is taken to have ten pages.
const FEW: u32 = 50;

/// Of tables whose rows are updated again and again, which are changes, too.
const FEWER: u32 = 3;

const MANY: u32 = 100_000;

const ANALYZE: &str =
    "ANALYZE idempotency_keys, wallets, feeds, chunks, stock, allocations, lanes, orders, codes";

async fn fill(subject: &PgSubject, rows: u32) {
    let updated = if rows == FEW { FEWER } else { rows };
    let fill = FILL
        .replace("$1", &rows.to_string())
        .replace("$2", &updated.to_string());
    subject.pool().execute(AssertSqlSafe(fill)).await.unwrap();
}

/// A node whose every statement is explained, and how far the log has been read.
struct Explained<'s> {
    subject: &'s PgSubject,
    store: PgNode,
    lane: Box<dyn LaneStore>,
    stock: Vec<Shelved>,
    batch: i64,
}

impl<'s> Explained<'s> {
    async fn open(subject: &'s PgSubject, name: &str) -> Self {
        let options = subject.superuser_options().options(EXPLAIN);
        let store = PgNode::start(PgStore::open(options, Handle::current()), name.to_owned())
            .await
            .unwrap();
        let lane = store.open_lane(0).await.unwrap();
        let expiries: Vec<_> = (0..100).map(build::day).collect();
        let stock = subject.add_chunk(&gift(), &expiries).await;
        // Is left to be claimed next.
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

    /// Claims a chunk that this node has already and one that is not there, and checks how the tables were read.
    async fn claim(&self, when: &str) {
        let begin = self.subject.log().len();
        claim(&self.store).await;
        let log = self.subject.log();
        let mut read = Vec::new();
        for plan in plans(&log[begin..]) {
            let text = plan["Query Text"].as_str().unwrap_or_default();
            let when = format!("{when}: {text}");
            check_claim(&when, &plan["Plan"], &mut read);
            if text.contains("p_first") {
                // Any other way of joining compares each voucher of a chunk with each that was sold of it.
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

    /// Checks how the tables were read by what was logged since, and that these were.
    fn assert_probed(&self, when: &str, begin: usize, tables: &[&str]) {
        let log = self.subject.log();
        let mut read = Vec::new();
        for plan in &plans(&log[begin..]) {
            check(&format!("{when}: {}", plan["Query Text"]), plan, &mut read);
        }
        for table in tables {
            assert!(
                read.iter().any(|name| name == table),
                "{when}: {table} was not read: {read:?}"
            );
        }
    }

    /// Reads an order and one that is not there, wallets and the feed, and checks how the tables were read.
    async fn look_up(&self, when: &str, order_id: OrderId) {
        let begin = self.subject.log().len();
        let partner = build::partner(1);
        let orders = [order_id, OrderId::from_uuid(Uuid::nil())].map(|id| self.store.find_order(partner, id));
        let found = join_all(orders).await;
        assert!(matches!(found[..], [Ok(Some(_)), Ok(None)]), "{found:?}");
        assert!(!self.store.list_wallets(partner).await.unwrap().is_empty());
        let oldest = self
            .store
            .read_feed(partner, FeedPlace::Oldest, 1)
            .await
            .unwrap()
            .unwrap();
        let first = oldest
            .letters
            .first()
            .expect("the partner was told of its orders");
        let after = FeedPlace::After(first.told.event_id(first.number));
        assert!(self.store.read_feed(partner, after, 1).await.unwrap().is_some());
        self.assert_probed(
            when,
            begin,
            &["orders", "allocations", "stock", "wallets", "feeds", "events"],
        );
    }

    /// Reads the codes of an order and of one that is not there, and checks how the tables were read.
    async fn read_codes(&self, when: &str, order_id: OrderId) {
        let begin = self.subject.log().len();
        let partner = build::partner(1);
        let mut asked = Vec::new();
        for order_id in [order_id, OrderId::from_uuid(Uuid::nil())] {
            asked.push(self.subject.retrieval(partner, order_id).await);
        }
        let read = join_all(asked.into_iter().map(|asked| self.store.retrieve_codes(asked))).await;
        assert!(
            matches!(read[..], [Ok(Retrieved::Vouchers(_)), Ok(Retrieved::NotFound)]),
            "{read:?}"
        );
        self.assert_probed(when, begin, &["orders", "allocations", "stock", "codes"]);
    }

    /// Commits a batch that goes every way through the function, and checks how its tables were read.
    async fn commit(&mut self, when: &str) {
        self.batch += 1;
        let name = format!("{}/{}", self.store.identity().name, self.batch);
        let begin = self.subject.log().len();
        let records = records(&name, &mut self.stock);
        let verdicts = self.lane.commit(self.batch, &records).await.unwrap();
        // Filling tables may take longer than a lease; whoever opens next must not find these chunks lapsed.
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
        // Debits alone are taken another way.
        self.batch += 1;
        let debits = [build::pending(build::partner(1), &format!("{name}/debit"), 1)];
        let paid = self.lane.commit(self.batch, &debits).await.unwrap();
        assert!(matches!(paid[..], [Verdict::Committed(Some(_))]), "{paid:?}");
        self.assert_probed(
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

/// Goes every way through a claim: takes a chunk and announces the next one; finds a SKU's chunks sold out, marks them,
/// and asks who else has some.
async fn claim(store: &PgNode) {
    let request = |sku| StockRequest {
        sku,
        loaded: Vec::new(),
        enough: 1,
        not_before: build::day(0),
    };
    let claimed = store.claim_stock(request(gift())).await.unwrap();
    assert_eq!(
        (claimed.chunks.len(), claimed.next.is_some()),
        (1, true),
        "{claimed:?}"
    );
    let nothing = store.claim_stock(request(build::sku("gift", 101))).await.unwrap();
    assert_eq!(nothing, ClaimedStock::default());
}

/// Checks a node of a claim's plan and those below it: what grows with the stock is read by a condition on an index, and
/// in the order in which it is wanted, so that the first row costs no more than itself.
fn check_claim(when: &str, node: &Value, read: &mut Vec<String>) {
    let below = node["Plans"].as_array().into_iter().flatten();
    below.for_each(|node| check_claim(when, node, read));
    let kind = node["Node Type"].as_str().unwrap_or_default();
    assert!(kind != "Sort", "{when}: {node:#}");
    let grows = ["chunks", "stock", "allocations", "purchases"];
    if node["Relation Name"]
        .as_str()
        .is_some_and(|table| grows.contains(&table))
    {
        check(when, node, read);
    }
}

fn gift() -> Sku {
    build::sku("gift", 100)
}

/// A top-up and an order, a known key, an order that nobody can pay, one whose voucher is gone.
fn records(name: &str, stock: &mut Vec<Shelved>) -> Vec<Record> {
    let partner = build::partner(1);
    let (sold, other) = (stock.pop().unwrap(), stock.pop().unwrap());
    let order = |what: &str, held: &[Shelved]| {
        build::delivered(partner, &format!("{name}/{what}"), &[(&gift(), held)])
    };
    vec![
        build::top_up(build::usd_of(partner), &format!("{name}/money"), 1_000),
        order("sold", &[sold]),
        build::under_key("known", order("again", &[other])),
        build::pending(partner, &format!("{name}/dear"), 1_000_000),
        order("gone", &[sold, other]),
    ]
}

/// Checks a node of a plan and those below it; collects the tables that they read.
fn check(when: &str, node: &Value, read: &mut Vec<String>) {
    let below = [&node["Plan"]].into_iter().filter(|plan| !plan.is_null());
    let below = below.chain(node["Plans"].as_array().into_iter().flatten());
    below.for_each(|node| check(when, node, read));
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
    let condition = if kind.starts_with("Bitmap") {
        "Recheck Cond"
    } else {
        "Index Cond"
    };
    assert!(!node[condition].is_null(), "{when}: {table} is read by {node:#}");
    read.push(table.to_owned());
}

/// A database in which somebody knows a partner and an answer.
async fn open() -> PgSubject {
    let subject = PgSubject::new().await;
    let partner = build::partner(1);
    subject.add_partner(partner).await;
    let mut lane = subject.start("nobody").await.open_lane(0).await.unwrap();
    lane.commit(1, &[build::refusal(partner, "known")]).await.unwrap();
    subject
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_for_empty_tables_are_good_for_large_ones() {
    let _log = log_to_itself().await;
    let subject = open().await;
    let mut early = Explained::open(&subject, "early").await;
    early.commit("empty").await;
    fill(&subject, MANY).await;
    early.commit("planned when empty").await;
    let mut late = Explained::open(&subject, "late").await;
    late.commit("never analysed").await;
    early.claim("planned when empty").await;
    late.claim("never analysed").await;
    subject.remove().await;
}

/// What is over lies together, and is found by an index that says in which pages.
#[tokio::test(flavor = "multi_thread")]
async fn answers_whose_time_is_over_are_found_by_their_age() {
    let _log = log_to_itself().await;
    let subject = open().await;
    subject.add_chunk(&gift(), &[build::day(0)]).await;
    fill(&subject, MANY).await;
    let over = "INSERT INTO idempotency_keys
                SELECT gen_random_uuid(), sha256(i::text::bytea), 201, '', now() - interval '1 s' FROM generate_series(1, 7000) AS i";
    subject.pool().execute(over).await.unwrap();
    subject
        .pool()
        .execute("SELECT brin_summarize_new_values('idempotency_keys_by_age')")
        .await
        .unwrap();
    let store = PgStore::open(subject.superuser_options().options(EXPLAIN), Handle::current());
    let begin = subject.log().len();
    assert_eq!(store.purge_expired_keys().await.unwrap(), 7_000);
    let log = subject.log();
    let mut read = Vec::new();
    for plan in &plans(&log[begin..]) {
        check("purge", plan, &mut read);
    }
    assert!(read.len() >= 4, "{read:?}");
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_for_small_tables_are_good_for_large_ones() {
    let _log = log_to_itself().await;
    let subject = open().await;
    let mut early = Explained::open(&subject, "early").await;
    fill(&subject, FEW).await;
    subject.pool().execute(ANALYZE).await.unwrap();
    early.commit("analysed when small").await;
    fill(&subject, MANY).await;
    early.commit("planned when small").await;
    early.claim("planned when small").await;
    subject.pool().execute(ANALYZE).await.unwrap();
    early.commit("planned anew").await;
    early.claim("planned anew").await;
    let mut late = Explained::open(&subject, "late").await;
    late.commit("planned when large").await;
    late.claim("planned when large").await;
    subject.remove().await;
}
