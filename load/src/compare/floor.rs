//! Postgres floor benchmark: five plain inserts per order in large batches, with no decisions and no verification. At
//! the best batch size this is an upper bound for any service on the server.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;
use vouchsafe_peer::schema::create_tables;
use vouchsafe_peer::{BATCH_SQL, FloorBatch, FloorOrder, PeerMode, clock};

use super::audit_method::{check_row_growth, count_floor_rows};
use super::statistics::{Spread, index_of_max};
use crate::audit::Check;
use crate::resources::database::{DatabaseFacts, DatabaseInspector};
use crate::resources::machine::Machine;

/// Concurrent writers: the number of lanes of the service.
pub const CONNECTIONS: usize = 2;
/// Order total in minor units.
const TOTAL: i64 = 2_500;
/// Order lines in the format of the floor behind HTTP.
const LINES_JSON: &str = r#"[{"sku_id":1,"product_id":"load-0000","denomination":2500,"quantity":1}]"#;

/// Batch sizes and durations of the benchmark.
#[derive(Clone, Debug)]
pub struct FloorPlan {
    pub batches: Vec<usize>,
    /// Seconds per size and round.
    pub seconds: u64,
    pub rounds: usize,
}

/// Results of one batch size.
#[derive(Clone, Debug, Serialize)]
pub struct FloorPoint {
    pub batch: usize,
    /// Committed orders per second, by round.
    pub orders_per_s: Vec<f64>,
}

impl FloorPoint {
    fn spread(&self) -> Option<Spread> {
        Spread::from_values(self.orders_per_s.iter().copied())
    }
}

/// Results of all batch sizes.
#[derive(Clone, Debug, Serialize)]
pub struct FloorReport {
    pub connections: usize,
    pub points: Vec<FloorPoint>,
    /// Index of the best batch size.
    pub best: Option<usize>,
    pub sql: &'static str,
    /// Check of the row counts.
    pub rows: Check,
    /// State after the benchmark.
    pub database: DatabaseFacts,
    pub machine: Machine,
}

impl FloorReport {
    /// Orders per second at the best batch size; `None` if the row counts are wrong.
    #[must_use]
    pub fn limit(&self) -> Option<Spread> {
        let point = self.points.get(self.best?)?;
        point.spread().filter(|_| self.rows.passed)
    }
}

/// Runs the benchmark in a database that is empty or holds the tables of an earlier run. `say` receives one line per
/// size and round.
///
/// # Errors
/// If a statement fails.
pub async fn run_floor_benchmark(
    database: &PgConnectOptions,
    search: &FloorPlan,
    say: &mut impl FnMut(&str),
) -> sqlx::Result<FloorReport> {
    let machine = Machine::observe_before();
    create_tables(database, PeerMode::Floor).await?;
    let before = count_floor_rows(database).await?;
    let mut writers = FloorWriters::connect(database).await?;
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
            let (orders, elapsed) = writers.write_for(time, point.batch).await?;
            written += orders;
            let per_second = orders as f64 / elapsed.as_secs_f64();
            say(&format!(
                "round {}, batch size {}: {per_second:.0} orders/s",
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
        rows: Check::new(
            "rows",
            check_row_growth(before, count_floor_rows(database).await?, written),
        ),
        database: DatabaseInspector::connect_with(database)
            .await?
            .read_facts()
            .await?,
        machine: machine.observe_after(),
    })
}

/// Writer connections, each with a separate partner.
struct FloorWriters(Vec<(PgConnection, Uuid, i64)>);

impl FloorWriters {
    async fn connect(database: &PgConnectOptions) -> sqlx::Result<Self> {
        let mut connection = PgConnection::connect_with(database).await?;
        let last: i64 = sqlx::query_scalar("SELECT COALESCE(max(stock_id), 0) FROM allocations")
            .fetch_one(&mut connection)
            .await?;
        let mut writers = Vec::new();
        for index in 0..CONNECTIONS {
            let connection = PgConnection::connect_with(database).await?;
            // Stock ids are shared by all partners: each writer takes every second one.
            let first = last + i64::try_from(index).unwrap_or_default() + 1;
            writers.push((connection, Uuid::now_v7(), first));
        }
        Ok(Self(writers))
    }

    /// Returns the number of committed orders and the time until the last commit.
    async fn write_for(&mut self, time: Duration, batch: usize) -> sqlx::Result<(u64, Duration)> {
        let started = Instant::now();
        let [(one, one_id, one_next), (two, two_id, two_next)] = &mut self.0[..] else {
            unreachable!("there are two writers")
        };
        let deadline = started + time;
        let (one, two) = tokio::join!(
            write_until(deadline, batch, one, *one_id, one_next),
            write_until(deadline, batch, two, *two_id, two_next),
        );
        Ok((one? + two?, started.elapsed()))
    }
}

async fn write_until(
    deadline: Instant,
    batch: usize,
    connection: &mut PgConnection,
    partner_id: Uuid,
    next: &mut i64,
) -> sqlx::Result<u64> {
    let mut written = 0;
    while Instant::now() < deadline {
        let mut rows = FloorBatch::default();
        for _ in 0..batch {
            rows.push(sample_order(*next));
            *next += i64::try_from(CONNECTIONS).unwrap_or(1);
        }
        rows.write(connection, partner_id, clock::now()).await?;
        written += batch as u64;
    }
    Ok(written)
}

/// An order with rows as wide as those of the floor behind HTTP.
fn sample_order(number: i64) -> FloorOrder {
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
        lines: LINES_JSON.to_owned(),
        event,
    }
}

impl fmt::Display for FloorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "plain batch inserts over {} connections, orders/s: median (min to max)",
            self.connections
        )?;
        for (index, point) in self.points.iter().enumerate() {
            let mark = if self.best == Some(index) { "  best" } else { "" };
            let figure = point
                .spread()
                .map_or_else(|| "none".to_owned(), |spread| spread.to_string());
            writeln!(f, "  batch size {:>5}  {figure}{mark}", point.batch)?;
        }
        let status = if self.rows.passed { "ok" } else { "FAILED" };
        writeln!(f, "{status} {}: {}", self.rows.name, self.rows.detail)?;
        writeln!(f, "\nmachine: {}\ndatabase\n{}", self.machine, self.database)?;
        writeln!(f, "statement\n{}", self.sql)
    }
}
