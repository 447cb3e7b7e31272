//! Guard of the cost of an order: the real service under callgrind with its private Postgres, a fixed number
//! of orders over HTTP, and what they add to the work of an idle service. Counts depend on neither the speed
//! nor the load of the machine.
//!
//! Rule: an order that was not sold fails the measurement, so that a cheaper refusal is never a better count.

mod callgrind;
pub mod record;
mod statements;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use futures_util::future::try_join_all;
use hyper::StatusCode;
use vouchsafe_api_client::partner::PartnerClient;

use self::callgrind::{Callgrind, ServiceCounters, launcher};
use self::statements::{DatabaseCounters, DatabaseReader, prepare_server};
use crate::audit::check_invariants;
use crate::deployment::TestDeployment;
use crate::deployment::seed::{DENOMINATION, SeedData, product_id, seed};
use crate::resources::database::DatabaseSettings;
use crate::statistics::Spread;

/// Orders of a round that are placed together.
#[derive(Clone, Copy)]
struct Load {
    /// Ending of its figures.
    name: &'static str,
    connections: usize,
    /// Orders of each connection.
    orders: usize,
    sku: Sku,
}

#[derive(Clone, Copy)]
enum Sku {
    /// All connections order one voucher of the same SKU.
    Hot,
    /// Each connection has a SKU of its own and orders a whole chunk, so that a claim of a single chunk is
    /// counted with each order.
    Small,
}

const LOADS: [Load; 4] = [
    Load::new("1", 1, 96, Sku::Hot),
    Load::new("16", 16, 16, Sku::Hot),
    Load::new("256", 256, 2, Sku::Hot),
    Load::new("64_skus", SMALL_SKUS, 2, Sku::Small),
];

impl Load {
    const fn new(name: &'static str, connections: usize, orders: usize, sku: Sku) -> Self {
        Self {
            name,
            connections,
            orders,
            sku,
        }
    }

    /// Body of the orders of a connection.
    fn order(&self, connection: usize) -> Bytes {
        let (sku, quantity) = match self.sku {
            Sku::Hot => (0, 1),
            Sku::Small => (1 + connection, CHUNK_OF_SMALL_SKU),
        };
        let product = product_id(sku);
        let item =
            format!(r#"{{"product_id":"{product}","denomination":{DENOMINATION},"quantity":{quantity}}}"#);
        Bytes::from(format!(r#"{{"items":[{item}]}}"#))
    }
}

/// Orders of each connection before a measurement: its buffers have grown, and the service knows partner and
/// SKU.
const WARM_UP_ORDERS: usize = 1;

/// What the service answers when one of its deadlines has passed.
const REFUSALS: [StatusCode; 2] = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::REQUEST_TIMEOUT];

/// Refusals on one connection: the first orders outlast the service's deadlines, because callgrind translates
/// all of their code.
const MAX_REFUSALS: u32 = 100;

const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Each figure is the median of its rounds.
const ROUNDS: usize = 3;

/// Vouchers and balance: more than all rounds need.
const VOUCHERS: u64 = 20_000;
const VOUCHERS_OF_SMALL_SKU: u64 = 320;
const USD: u64 = 900_000_000;

const SMALL_SKUS: usize = 64;
/// Length of the chunks into which the service splits the import of a small SKU.
const CHUNK_OF_SMALL_SKU: u64 = 16;

/// Measurement of the idle service in each round, after the work that follows a load.
const SETTLING_TIME: Duration = Duration::from_secs(2);
const IDLE_TIME: Duration = Duration::from_secs(4);

/// The slowest response: a callgrind of a debug build on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Settings of the counted service: one of each thread, so that a batch is never divided.
const ENVIRONMENT: [(&str, &str); 2] = [("VOUCHSAFE_LANES", "1"), ("VOUCHSAFE_HTTP_WORKERS", "1")];

/// Counts by figure and load, such as `instructions.16`; all but those of the idle service are per order.
pub type Counts = BTreeMap<String, f64>;

/// What determines counts besides the source.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Toolchain {
    pub rustc: String,
    pub profile: String,
    pub valgrind: String,
    /// The major version.
    pub postgres: String,
}

/// Counters of service and database in an interval.
#[derive(Clone, Default)]
struct Reading {
    service: ServiceCounters,
    database: DatabaseCounters,
    seconds: f64,
    orders: u64,
}

impl Reading {
    /// All counters by name.
    fn figures(&self) -> [(&'static str, f64); 6] {
        let Self {
            service, database, ..
        } = self;
        [
            ("instructions", service.instructions as f64),
            ("allocations", service.allocations as f64),
            ("system_calls", service.system_calls as f64),
            ("statements", database.calls.values().sum::<i64>() as f64),
            ("commits", database.commits as f64),
            ("wal_bytes", database.wal_bytes as f64),
        ]
    }

    /// Number of calls of these statements.
    fn count_calls(&self, statements: &BTreeSet<i64>) -> f64 {
        let calls = self.database.calls.iter();
        calls
            .filter(|(statement, _)| statements.contains(statement))
            .map(|(_, calls)| *calls as f64)
            .sum()
    }
}

/// Counts the costs of a program's orders; `report_progress` receives one line per step.
///
/// # Errors
/// If the service cannot be started under callgrind, or did not sell every order.
pub async fn count_orders(
    program: &Path,
    report_progress: &mut impl FnMut(&str),
) -> anyhow::Result<(Toolchain, Counts)> {
    let valgrind = callgrind::valgrind_version().context("valgrind is not installed")?;
    let mut deployment = TestDeployment::start(program).await?;
    let build = deployment.build_info().await?;
    let mut seed_data = SeedData::even(1 + SMALL_SKUS, VOUCHERS_OF_SMALL_SKU, 1, USD);
    seed_data.skus[0].vouchers = VOUCHERS;
    let partners = seed(deployment.operator(), &seed_data).await?;
    let partner = partners.into_iter().next().context("no partner was created")?;
    prepare_server(&deployment.postgres()?.superuser_options()).await?;
    deployment.shut_down()?;
    report_progress("starting the service under callgrind");
    let launcher = launcher(deployment.directory());
    deployment.restart_under(launcher, &ENVIRONMENT)?;
    deployment.wait_until_ready().await?;

    let postgres = deployment.postgres()?;
    let database = DatabaseSettings::read(&postgres.service_options()).await?;
    let toolchain = Toolchain {
        rustc: build.get("rustc").cloned().unwrap_or_default(),
        profile: build.get("profile").cloned().unwrap_or_default(),
        valgrind,
        postgres: database.version.split('.').next().unwrap_or_default().to_owned(),
    };
    let mut session = Session {
        client: PartnerClient::new(&deployment.base_url(), partner.credentials)?.with_timeout(TIMEOUT),
        callgrind: Callgrind::start(deployment.pid(), deployment.directory())?,
        database: DatabaseReader::connect(&postgres.superuser_options()).await?,
        placed: 0,
        counted: 0,
    };
    let counts = session.count(report_progress).await?;
    drop(session);
    let check = check_invariants(deployment.program(), &deployment.data_dir());
    ensure!(check.passed, "{}: {}", check.name, check.detail);
    deployment.stop()?;
    Ok((toolchain, counts))
}

/// The counted service with its only client.
struct Session {
    client: PartnerClient,
    callgrind: Callgrind,
    database: DatabaseReader,
    /// Number of orders so far, which are their keys: two programs get the same requests.
    placed: u64,
    /// Number of orders at the previous reading.
    counted: u64,
}

impl Session {
    async fn count(&mut self, report_progress: &mut impl FnMut(&str)) -> anyhow::Result<Counts> {
        for load in LOADS {
            report_progress(&format!("warming up, load {}", load.name));
            self.measure(load).await?;
        }
        let mut loaded: BTreeMap<&str, Vec<Reading>> = BTreeMap::new();
        let (mut idle, mut overloaded) = (Vec::new(), Vec::new());
        for round in 1..=ROUNDS {
            report_progress(&format!("round {round}, idle"));
            idle.push(self.measure_idle().await?);
            for load in LOADS {
                let name = load.name;
                if overloaded.contains(&name) {
                    continue;
                }
                report_progress(&format!("round {round}, load {name}"));
                if let Some(reading) = self.measure(load).await? {
                    loaded.entry(name).or_default().push(reading);
                } else {
                    report_progress(&format!(
                        "not counted: load {name} is too much for the service on this machine"
                    ));
                    overloaded.push(name);
                }
            }
        }
        Ok(medians(&idle, &loaded))
    }

    /// Counters of the idle service, once the work after a load has ended.
    async fn measure_idle(&mut self) -> anyhow::Result<Reading> {
        tokio::time::sleep(SETTLING_TIME).await;
        self.read(Duration::ZERO).await?;
        let begun = Instant::now();
        tokio::time::sleep(IDLE_TIME).await;
        self.read(begun.elapsed()).await
    }

    /// Places the orders of a load on new connections, which are warm when the count begins. `None` if the
    /// service refused one at first: its deadlines are in seconds, and a busy machine needs many for a large
    /// batch under callgrind.
    async fn measure(&mut self, load: Load) -> anyhow::Result<Option<Reading>> {
        let mut clients: Vec<_> = (0..load.connections)
            .map(|_| self.client.new_connection().with_timeout(TIMEOUT))
            .collect();
        self.place(&mut clients, load, WARM_UP_ORDERS).await?;
        self.read(Duration::ZERO).await?;
        let begun = Instant::now();
        let refusals = self.place(&mut clients, load, load.orders).await?;
        let reading = self.read(begun.elapsed()).await?;
        Ok((refusals == 0).then_some(reading))
    }

    /// Places this number of orders on each connection, each until it is sold; returns the number of
    /// refusals.
    async fn place(&mut self, clients: &mut [PartnerClient], load: Load, each: usize) -> anyhow::Result<u32> {
        let each = each as u64;
        let first_keys = (self.placed..).step_by(usize::try_from(each)?);
        let orders = clients
            .iter_mut()
            .enumerate()
            .zip(first_keys)
            .map(|((connection, client), first)| {
                place_in_turn(client, load.order(connection), first..first + each)
            });
        let refusals = try_join_all(orders).await?;
        self.placed += clients.len() as u64 * each;
        Ok(refusals.into_iter().sum())
    }

    /// Counters since the previous reading, `elapsed` ago.
    async fn read(&mut self, elapsed: Duration) -> anyhow::Result<Reading> {
        Ok(Reading {
            service: self.callgrind.read()?,
            database: self.database.read().await?,
            seconds: elapsed.as_secs_f64(),
            orders: self.placed - std::mem::replace(&mut self.counted, self.placed),
        })
    }
}

/// Medians of the rounds: counters of the idle service per second, and per order what is left without its
/// work.
///
/// How much of that work is in an interval is known from its statements: a starved service polls less often
/// than an idle one, so that time is no measure of it.
fn medians(idle: &[Reading], loaded: &BTreeMap<&str, Vec<Reading>>) -> Counts {
    let background: BTreeSet<i64> = idle
        .iter()
        .flat_map(|reading| reading.database.calls.keys().copied())
        .collect();
    let median =
        |values: &mut dyn Iterator<Item = f64>| Spread::from_values(values).map(|spread| spread.median);
    let mut counts = Counts::new();
    for (index, (name, _)) in Reading::default().figures().into_iter().enumerate() {
        let count = |reading: &Reading| reading.figures()[index].1;
        let per_call = |reading: &Reading| count(reading) / reading.count_calls(&background).max(1.0);
        let Some(idle_count) = median(&mut idle.iter().map(per_call)) else {
            continue;
        };
        let per_second = median(&mut idle.iter().map(|reading| count(reading) / reading.seconds));
        counts.extend(per_second.map(|rate| (format!("idle_{name}_per_s"), rate)));
        for (load, readings) in loaded {
            let per_order = |reading: &Reading| {
                (count(reading) - idle_count * reading.count_calls(&background)) / reading.orders as f64
            };
            let per_order = median(&mut readings.iter().map(per_order));
            counts.extend(per_order.map(|count| (format!("{name}.{load}"), count)));
        }
    }
    counts
}

/// Places one order after the other, each until it is sold; returns the number of refusals.
async fn place_in_turn(client: &mut PartnerClient, body: Bytes, keys: Range<u64>) -> anyhow::Result<u32> {
    let mut refusals = 0;
    for key in keys {
        let key = format!("guard-{key:08}");
        loop {
            let response = client.order(&key, body.clone()).await?;
            if response.status == StatusCode::CREATED {
                break;
            }
            refusals += 1;
            let (status, text) = (response.status, String::from_utf8_lossy(&response.body));
            ensure!(
                REFUSALS.contains(&status) && refusals < MAX_REFUSALS,
                "an order was refused: {status} {text}"
            );
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
    Ok(refusals)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The idle service sends statement 1 only, with 50 instructions each.
    fn reading(instructions: u64, calls: [i64; 2], orders: u64) -> Reading {
        Reading {
            service: ServiceCounters {
                instructions,
                ..ServiceCounters::default()
            },
            database: DatabaseCounters {
                calls: (1..).zip(calls).filter(|(_, calls)| *calls > 0).collect(),
                ..DatabaseCounters::default()
            },
            seconds: 2.0,
            orders,
        }
    }

    #[test]
    fn work_of_the_idle_service_is_subtracted_by_its_statements() {
        let idle = [200, 999, 200].map(|instructions| reading(instructions, [4, 0], 0));
        // The first round was starved; the last one was disturbed.
        let loaded = [(1_050, 1), (1_200, 4), (9_999, 4)];
        let loaded = loaded.map(|(instructions, polls)| reading(instructions, [polls, 10], 10));
        let counts = medians(&idle, &[("16", loaded.to_vec())].into());
        assert_eq!(counts["idle_instructions_per_s"], 100.0);
        assert_eq!(counts["idle_statements_per_s"], 2.0);
        assert_eq!((counts["instructions.16"], counts["statements.16"]), (100.0, 1.0));
        assert_eq!(medians(&[], &BTreeMap::new()), Counts::new());
    }
}
