//! Who is measured when? Everybody in each round, one after the other, on the server of the service's stand; the service
//! idles meanwhile, and the others are not there.

use std::path::Path;

use anyhow::Context;
use sqlx::postgres::PgConnectOptions;

use super::contender::{Column, CompareReport, Contender, columns_of, half_of_the_peer};
use super::proof::Proof;
use super::search::{SearchReport, Variant};
use super::turn::{Load, Target, Turn, turn};
use super::upkeep;
use crate::database::Database;
use crate::floor::{FloorSearch, floor};
use crate::machine::Machine;
use crate::peer::Mode;
use crate::peer::process::{Process, Start};
use crate::peer::schema::make_database;
use crate::signer::Credentials;
use crate::stand::Stand;
use crate::stand::furnish::{Furnishing, furnish, product_id};
use crate::stand::postgres::SERVICE;
use crate::watch::Subject;

/// What the partner has to spend. USD.
const USD: u64 = 900_000_000;

/// What is compared.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    pub service: &'a Path,
    pub peer: &'a Path,
    /// A directory for credentials.
    pub directory: &'a Path,
    pub variant: Variant,
    /// Among which it was found to be the best; `None`: it was named.
    pub search: Option<SearchReport>,
    /// How each is loaded in a closed loop, in each round.
    pub loads: Vec<Load>,
    /// How the open loop is, but for its rate: half of what the peer took in the best closed one. `None`: there is none.
    pub open: Option<Load>,
    pub rounds: usize,
    /// Vouchers that service and peer have at the start, each.
    pub stock: u64,
    /// The floor without HTTP, once a round.
    pub floor: FloorSearch,
}

/// Compares; `say` is told of each turn.
///
/// # Errors
/// When a contender could not be started, loaded or audited at all.
pub async fn compare(
    comparison: &Comparison<'_>,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<CompareReport> {
    let machine = Machine::before();
    let ground = Ground::prepare(comparison).await?;
    let (mut columns, mut floors) = (columns_of(&comparison.loads), Vec::new());
    for round in 1..=comparison.rounds {
        ground.round(comparison, round, &mut columns, say).await?;
        floors.push(floor(&ground.plain_database, &comparison.floor, say).await?);
    }
    if let Some(load) = comparison.open.and_then(|load| half_of_the_peer(&columns, load)) {
        let mut open = columns_of(&[load]);
        for round in 1..=comparison.rounds {
            ground.round(comparison, round, &mut open, say).await?;
        }
        columns.append(&mut open);
    }
    let facts = async |options: &PgConnectOptions| Database::connect_with(options).await?.facts().await;
    let report = CompareReport {
        variant: comparison.variant,
        search: comparison.search.clone(),
        columns,
        floors,
        service_database: facts(&ground.stand.postgres()?.service()).await?,
        peer_database: facts(&ground.peer_database).await?,
        machine: machine.after(),
    };
    ground.stand.stop().context("ending the service")?;
    Ok(report)
}

/// What stands for the whole comparison: the service, and the databases of the others on its server.
struct Ground {
    stand: Stand,
    buyer: Credentials,
    product: String,
    service_database: PgConnectOptions,
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
        upkeep::by_hand(&server).await?;
        Ok(Self {
            stand,
            buyer: buyer.credentials,
            product: product_id(0),
            service_database: server.clone().database(SERVICE),
            peer_database: make_database(&server, "peer").await?,
            floor_database: make_database(&server, "floor").await?,
            plain_database: make_database(&server, "plain").await?,
        })
    }

    /// Everybody's turn.
    async fn round(
        &self,
        comparison: &Comparison<'_>,
        round: usize,
        columns: &mut [Column],
        say: &mut impl FnMut(&str),
    ) -> anyhow::Result<()> {
        for column in columns {
            let turn = self.turn(comparison, column.contender, column.load).await?;
            let (name, pace) = (column.contender.name(), column.load.pace);
            let figure = turn.orders_per_s;
            say(&format!("round {round}, {name}, {pace}: {figure:.0} orders/s"));
            column.turns.push(turn);
        }
        Ok(())
    }

    async fn turn(
        &self,
        comparison: &Comparison<'_>,
        contender: Contender,
        load: Load,
    ) -> anyhow::Result<Turn> {
        let (mode, database, proof) = match contender {
            Contender::Service => {
                upkeep::before_a_turn(&self.service_database).await?;
                let target = Target {
                    url: self.stand.base_url(),
                    credentials: self.buyer.clone(),
                    product: self.product.clone(),
                    proof: Proof::Wire,
                    subject: self.stand.subject()?,
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
        upkeep::before_a_turn(database).await?;
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
            subject: Subject {
                pids: vec![process.pid()],
                server: Some(
                    self.stand
                        .postgres()?
                        .watched(database.get_database().unwrap_or_default()),
                ),
                admin_url: None,
            },
        };
        turn(&target, load).await
    }
}
