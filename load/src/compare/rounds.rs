//! Who is measured when? Everybody in each round, one after the other, on the server of the service's stand; the service
//! idles meanwhile, and the others are not there.

use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use sqlx::postgres::PgConnectOptions;

use super::machine::Machine;
use super::numbers::{Spread, ratio};
use super::proof::Proof;
use super::search::Variant;
use super::turn::{Load, Target, Turn, turn};
use crate::database::{Database, DatabaseFacts};
use crate::floor::{FloorReport, FloorSearch, floor};
use crate::peer::Mode;
use crate::peer::process::{Process, Start};
use crate::peer::schema::make_database;
use crate::signer::Credentials;
use crate::stand::Stand;
use crate::stand::furnish::{Furnishing, furnish, product_id};

/// What the partner has to spend. USD.
const USD: u64 = 900_000_000;

/// What is compared.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    /// The service's program.
    pub service: &'a Path,
    /// The peer's program.
    pub peer: &'a Path,
    /// A directory for credentials.
    pub directory: &'a Path,
    /// Which peer.
    pub variant: Variant,
    /// How each is loaded, in each round.
    pub loads: Vec<Load>,
    /// How often.
    pub rounds: usize,
    /// Vouchers that service and peer have at the start, each.
    pub stock: u64,
    /// The floor without HTTP, once a round.
    pub floor: FloorSearch,
}

/// Who is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    /// Vouchsafe.
    Service,
    /// One transaction per order, with row locks.
    Peer,
    /// Plain batch inserts behind the HTTP stack.
    Floor,
    /// The HTTP stack with the check of the signature.
    Signature,
}

/// In the order of a round.
pub const CONTENDERS: [Contender; 4] = [
    Contender::Service,
    Contender::Peer,
    Contender::Floor,
    Contender::Signature,
];

impl Contender {
    /// As reports name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Peer => "peer",
            Self::Floor => "floor behind HTTP",
            Self::Signature => "signature alone",
        }
    }
}

/// What one contender came to at one load, by round.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Who.
    pub contender: Contender,
    /// How it was loaded.
    pub load: Load,
    /// Its turns.
    pub turns: Vec<Turn>,
}

impl Column {
    /// Orders/s by round; `None` where a turn does not count.
    #[must_use]
    pub fn counted(&self) -> Vec<Option<f64>> {
        self.turns.iter().map(Turn::counted).collect()
    }

    /// Orders/s of the turns that count.
    #[must_use]
    pub fn spread(&self) -> Option<Spread> {
        Spread::of(self.counted().into_iter().flatten())
    }

    /// Median latencies of the turns that count: the 50th percentile and the 99th.
    #[must_use]
    pub fn latencies(&self) -> Option<(Spread, Spread)> {
        let counting = || self.turns.iter().filter(|turn| turn.counted().is_some());
        let p50 = Spread::of(counting().map(|turn| turn.p50_us as f64))?;
        let p99 = Spread::of(counting().map(|turn| turn.p99_us as f64))?;
        Some((p50, p99))
    }
}

/// The whole comparison.
#[derive(Clone, Debug, Serialize)]
pub struct CompareReport {
    /// Which peer.
    pub variant: Variant,
    /// By load, then in the order of [`CONTENDERS`].
    pub columns: Vec<Column>,
    /// The floor without HTTP, by round.
    pub floors: Vec<FloorReport>,
    /// The service's database, at the end.
    pub service_database: DatabaseFacts,
    /// The peer's.
    pub peer_database: DatabaseFacts,
    /// The machine, before anything was started.
    pub machine: Machine,
}

impl CompareReport {
    /// How one contender stands to another at one load.
    #[must_use]
    pub fn ratio(&self, ours: Contender, theirs: Contender, connections: usize) -> Option<Spread> {
        let counted = |contender| {
            let column = self
                .columns
                .iter()
                .find(|column| column.contender == contender && column.load.connections == connections)?;
            Some(column.counted())
        };
        ratio(&counted(ours)?, &counted(theirs)?)
    }

    /// Whether every figure counts.
    #[must_use]
    pub fn passed(&self) -> bool {
        let turns = self.columns.iter().flat_map(|column| &column.turns);
        turns.into_iter().all(|turn| turn.counted().is_some())
            && self.floors.iter().all(|floor| floor.rows.passed)
    }
}

/// Compares; `say` is told of each turn.
///
/// # Errors
/// When a contender could not be started, loaded or audited at all.
pub async fn compare(
    comparison: &Comparison<'_>,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<CompareReport> {
    let machine = Machine::now();
    let ground = Ground::prepare(comparison).await?;
    let mut columns = Vec::new();
    for load in &comparison.loads {
        columns.extend(CONTENDERS.map(|contender| Column {
            contender,
            load: *load,
            turns: Vec::new(),
        }));
    }
    let mut floors = Vec::new();
    for round in 1..=comparison.rounds {
        for column in &mut columns {
            let turn = ground.turn(comparison, column.contender, column.load).await?;
            let (name, connections) = (column.contender.name(), column.load.connections);
            say(&format!(
                "round {round}, {name}, {connections} connections: {:.0} orders/s",
                turn.orders_per_s
            ));
            column.turns.push(turn);
        }
        floors.push(floor(&ground.plain_database, &comparison.floor, say).await?);
    }
    let facts = async |options: &PgConnectOptions| Database::connect_with(options).await?.facts().await;
    let report = CompareReport {
        variant: comparison.variant,
        columns,
        floors,
        service_database: facts(&ground.stand.postgres()?.service()).await?,
        peer_database: facts(&ground.peer_database).await?,
        machine,
    };
    ground.stand.stop().context("ending the service")?;
    Ok(report)
}

/// What stands for the whole comparison: the service, and the databases of the others on its server.
struct Ground {
    stand: Stand,
    buyer: Credentials,
    product: String,
    peer_database: PgConnectOptions,
    floor_database: PgConnectOptions,
    plain_database: PgConnectOptions,
}

impl Ground {
    async fn prepare(comparison: &Comparison<'_>) -> anyhow::Result<Self> {
        let mut stand = Stand::start(comparison.service).await?;
        let furnishing = Furnishing::even(1, comparison.stock, 1, USD);
        let buyers = furnish(stand.operator(), &furnishing).await?;
        let buyer = buyers.into_iter().next().context("the stand has no buyer")?;
        let server = stand.postgres()?.superuser();
        Ok(Self {
            stand,
            buyer: buyer.credentials,
            product: product_id(0),
            peer_database: make_database(&server, "peer").await?,
            floor_database: make_database(&server, "floor").await?,
            plain_database: make_database(&server, "plain").await?,
        })
    }

    async fn turn(
        &self,
        comparison: &Comparison<'_>,
        contender: Contender,
        load: Load,
    ) -> anyhow::Result<Turn> {
        let (mode, database, proof) = match contender {
            Contender::Service => {
                let target = Target {
                    url: self.stand.base_url(),
                    credentials: self.buyer.clone(),
                    product: self.product.clone(),
                    proof: Proof::Wire,
                };
                return turn(&target, load).await;
            }
            Contender::Peer => (Mode::RowLocks, &self.peer_database, Proof::Wire),
            Contender::Floor => {
                let rows = Proof::Rows(Box::new(self.floor_database.clone()));
                (Mode::Floor, &self.floor_database, rows)
            }
            Contender::Signature => (Mode::SignatureOnly, &self.floor_database, Proof::Answers),
        };
        let process = Process::start(&Start {
            program: comparison.peer,
            mode,
            shape: comparison.variant.shape,
            pool: comparison.variant.pool,
            database,
            credentials: &comparison.directory.join("peer-partner.json"),
            product: &self.product,
            stock: comparison.stock,
        })?;
        let target = Target {
            url: process.url().to_owned(),
            credentials: process.credentials().clone(),
            product: self.product.clone(),
            proof,
        };
        turn(&target, load).await
    }
}
