//! How many orders a second can the database take at all? Five plain inserts an order, many orders at a time, with nothing
//! decided before and nothing verified: at the best size of batch this is the limit that no service passes on this server.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::audit::Check;
use crate::compare::statistics::{Spread, index_of_max};
use crate::compare::audit_method::{count_floor_rows, check_row_growth};
use crate::database::{DatabaseInspector, DatabaseFacts};
use crate::machine::Machine;
use crate::peer::clock;
use crate::peer::schema::create_tables;
use crate::peer::{BATCH_SQL, FloorBatch, FloorOrder, PeerMode};

/// Connections that write at once: as many as the service has lanes.
pub const CONNECTIONS: usize = 2;
/// What each order costs. Minor units.
const TOTAL: i64 = 2_500;
/// Its line, as the floor behind the HTTP stack writes it.
const LINES: &str = r#"[{"sku_id":1,"product_id":"load-0000","denomination":2500,"quantity":1}]"#;

/// What is searched.
#[derive(Clone, Debug)]
pub struct FloorPlan {
    /// Orders of a batch.
    pub batches: Vec<usize>,
    /// Seconds for each size, in each round.
    pub seconds: u64,
    pub rounds: usize,
}

/// What one size of batch came to.
#[derive(Clone, Debug, Serialize)]
pub struct FloorPoint {
    /// Orders of a batch.
    pub batch: usize,
    /// Committed orders a second, by round.
    pub orders_per_s: Vec<f64>,
}

impl FloorPoint {
    fn spread(&self) -> Option<Spread> {
        Spread::from_values(self.orders_per_s.iter().copied())
    }
}

/// The whole search.
#[derive(Clone, Debug, Serialize)]
pub struct FloorReport {
    /// Connections that wrote at once.
    pub connections: usize,
    /// What each size came to.
    pub points: Vec<FloorPoint>,
    /// The index of the best.
    pub best: Option<usize>,
    pub sql: &'static str,
    /// Whether the rows are there.
    pub rows: Check,
    /// The database, at the end.
    pub database: DatabaseFacts,
    pub machine: Machine,
}

impl FloorReport {
    /// Orders a second at the best size of batch, if the rows are there.
    #[must_use]
    pub fn limit(&self) -> Option<Spread> {
        let point = self.points.get(self.best?)?;
        point.spread().filter(|_| self.rows.passed)
    }
}

/// Searches in a database that is empty or another search's; `say` is told of each size in each round.
///
/// # Errors
/// When the database refuses.
pub async fn run_floor_benchmark(
    database: &PgConnectOptions,
    search: &FloorPlan,
    say: &mut impl FnMut(&str),
) -> sqlx::Result<FloorReport> {
    let machine = Machine::observe_before();
    create_tables(database, PeerMode::Floor).await?;
    let before = count_floor_rows(database).await?;
    let mut writers = Writers::connect(database).await?;
    let mut points: Vec<FloorPoint> = search
        .batches
        .iter()
        .map(|batch| FloorPoint {
            batch: *batch,
            orders_per_s: Vec::new(),
        })
        .collect();
    let (time, mut written) = (Duration::from_secs(search.seconds), 0);
    for round in 0..search.rounds {
        for point in &mut points {
            let (orders, took) = writers.write_for(time, point.batch).await?;
            written += orders;
            let per_second = orders as f64 / took.as_secs_f64();
            say(&format!(
                "round {}, batches of {}: {per_second:.0} orders/s",
                round + 1,
                point.batch
            ));
            point.orders_per_s.push(per_second);
        }
    }
    let medians: Vec<_> = points
        .iter()
        .map(|point| point.spread().map(|spread| spread.median))
        .collect();
    Ok(FloorReport {
        connections: CONNECTIONS,
        best: index_of_max(&medians),
        points,
        sql: BATCH_SQL,
        rows: Check::new("rows", check_row_growth(before, count_floor_rows(database).await?, written)),
        database: DatabaseInspector::connect_with(database).await?.read_facts().await?,
        machine: machine.observe_after(),
    })
}

/// Connections that write batch after batch, each with rows of a partner of its own.
struct Writers(Vec<(PgConnection, Uuid, i64)>);

impl Writers {
    async fn connect(database: &PgConnectOptions) -> sqlx::Result<Self> {
        let mut connection = PgConnection::connect_with(database).await?;
        let last: i64 = sqlx::query_scalar("SELECT COALESCE(max(stock_id), 0) FROM allocations")
            .fetch_one(&mut connection)
            .await?;
        let mut writers = Vec::new();
        for index in 0..CONNECTIONS {
            let connection = PgConnection::connect_with(database).await?;
            // Numbers of stock are of all partners: each writer has every second one.
            let first = last + i64::try_from(index).unwrap_or_default() + 1;
            writers.push((connection, Uuid::now_v7(), first));
        }
        Ok(Self(writers))
    }

    /// How many orders were committed, and how long the last commit took to come.
    async fn write_for(&mut self, time: Duration, batch: usize) -> sqlx::Result<(u64, Duration)> {
        let began = Instant::now();
        let [(one, one_id, one_next), (two, two_id, two_next)] = &mut self.0[..] else {
            unreachable!("there are as many writers as connections, which are two")
        };
        let ends = began + time;
        let (one, two) = tokio::join!(
            write_until(ends, batch, one, *one_id, one_next),
            write_until(ends, batch, two, *two_id, two_next),
        );
        Ok((one? + two?, began.elapsed()))
    }
}

async fn write_until(
    ends: Instant,
    batch: usize,
    connection: &mut PgConnection,
    partner_id: Uuid,
    next: &mut i64,
) -> sqlx::Result<u64> {
    let mut written = 0;
    while Instant::now() < ends {
        let mut rows = FloorBatch::default();
        for _ in 0..batch {
            rows.push(order(*next));
            *next += i64::try_from(CONNECTIONS).unwrap_or(1);
        }
        rows.write(connection, partner_id, clock::now()).await?;
        written += batch as u64;
    }
    Ok(written)
}

/// An order as wide as one behind the HTTP stack.
fn order(number: i64) -> FloorOrder {
    let (order_id, voucher_id) = (Uuid::now_v7(), Uuid::now_v7());
    let event = format!(
        r#"{{"order_id":"ord_{}","status":"DELIVERED","total_amount":25.00,"currency":"USD","fulfilled_from":"cache","reference":null,"metadata":{{}},"items":[{{"product_id":"load-0000","denomination":25.00,"quantity":1,"delivered":1,"pending":0,"failed":0}}],"vouchers":[{{"voucher_id":"vch_{}","product_id":"load-0000","denomination":25.00,"expiry":"9999-12-31"}}]}}"#,
        order_id.simple(),
        voucher_id.simple(),
    );
    FloorOrder {
        order_id,
        transaction_id: Uuid::now_v7(),
        voucher_id,
        number,
        total: TOTAL,
        lines: LINES.to_owned(),
        event,
    }
}

impl fmt::Display for FloorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "plain batch inserts over {} connections, orders/s, median (least to greatest)",
            self.connections
        )?;
        for (index, point) in self.points.iter().enumerate() {
            let mark = if self.best == Some(index) { "  best" } else { "" };
            let figure = point
                .spread()
                .map_or_else(|| "none".to_owned(), |spread| spread.to_string());
            writeln!(f, "  batches of {:>5}  {figure}{mark}", point.batch)?;
        }
        let verdict = if self.rows.passed { "ok" } else { "FAILED" };
        writeln!(f, "{verdict} {}: {}", self.rows.name, self.rows.detail)?;
        writeln!(f, "\nmachine: {}\ndatabase\n{}", self.machine, self.database)?;
        writeln!(f, "the statement\n{}", self.sql)
    }
}
