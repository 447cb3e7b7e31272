//! Who is measured when? Everybody in each round, one after the other, on the server of the service's stand; the service
//! idles meanwhile, and the others are not there.

use std::path::Path;

use anyhow::Context;
use sqlx::postgres::PgConnectOptions;

use super::contender::{Column, CompareReport, Contender, empty_columns, half_peer_rate};
use super::audit_method::AuditMethod;
use super::search::{PeerSearchReport, PeerVariant};
use super::turn::{LoadSettings, Target, Turn, run_turn};
use super::maintenance;
use crate::database::DatabaseInspector;
use crate::floor::{FloorPlan, run_floor_benchmark};
use crate::machine::Machine;
use crate::peer::PeerMode;
use crate::peer::process::{PeerProcess, PeerOptions};
use crate::peer::schema::create_database;
use crate::signer::Credentials;
use crate::deployment::TestDeployment;
use crate::deployment::seed::{SeedData, seed, product_id};
use crate::deployment::postgres::SERVICE_DATABASE;
use crate::resource_monitor::MonitorTarget;

/// What the partner has to spend. USD.
const USD: u64 = 900_000_000;

/// What is compared.
#[derive(Clone, Debug)]
pub struct ComparisonPlan<'a> {
    pub service: &'a Path,
    pub peer: &'a Path,
    /// A directory for credentials.
    pub directory: &'a Path,
    pub variant: PeerVariant,
    /// Among which it was found to be the best; `None`: it was named.
    pub search: Option<PeerSearchReport>,
    /// How each is loaded in a closed loop, in each round.
    pub loads: Vec<LoadSettings>,
    /// How the open loop is, but for its rate: half of what the peer took in the best closed one. `None`: there is none.
    pub open: Option<LoadSettings>,
    pub rounds: usize,
    /// Vouchers that service and peer have at the start, each.
    pub stock: u64,
    /// The floor without HTTP, once a round.
    pub floor: FloorPlan,
}

/// Compares; `say` is told of each turn.
///
/// # Errors
/// When a contender could not be started, loaded or audited at all.
pub async fn compare(
    comparison: &ComparisonPlan<'_>,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<CompareReport> {
    let machine = Machine::observe_before();
    let ground = Ground::prepare(comparison).await?;
    let (mut columns, mut floors) = (empty_columns(&comparison.loads), Vec::new());
    for round in 1..=comparison.rounds {
        ground.round(comparison, round, &mut columns, say).await?;
        floors.push(run_floor_benchmark(&ground.plain_database, &comparison.floor, say).await?);
    }
    if let Some(load) = comparison.open.and_then(|load| half_peer_rate(&columns, load)) {
        let mut open = empty_columns(&[load]);
        for round in 1..=comparison.rounds {
            ground.round(comparison, round, &mut open, say).await?;
        }
        columns.append(&mut open);
    }
    let facts = async |options: &PgConnectOptions| DatabaseInspector::connect_with(options).await?.read_facts().await;
    let report = CompareReport {
        variant: comparison.variant,
        search: comparison.search.clone(),
        columns,
        floors,
        service_database: facts(&ground.stand.postgres()?.service_options()).await?,
        peer_database: facts(&ground.peer_database).await?,
        machine: machine.observe_after(),
    };
    ground.stand.stop().context("ending the service")?;
    Ok(report)
}

/// What stands for the whole comparison: the service, and the databases of the others on its server.
struct Ground {
    stand: TestDeployment,
    buyer: Credentials,
    product: String,
    service_database: PgConnectOptions,
    peer_database: PgConnectOptions,
    floor_database: PgConnectOptions,
    plain_database: PgConnectOptions,
}

impl Ground {
    async fn prepare(comparison: &ComparisonPlan<'_>) -> anyhow::Result<Self> {
        let mut stand = TestDeployment::start(comparison.service).await?;
        let furnishing = SeedData::even(1, comparison.stock, 1, USD);
        let buyers = seed(stand.operator(), &furnishing).await?;
        let buyer = buyers.into_iter().next().context("the stand has no buyer")?;
        let server = stand.postgres()?.superuser_options();
        maintenance::disable_autovacuum(&server).await?;
        Ok(Self {
            stand,
            buyer: buyer.credentials,
            product: product_id(0),
            service_database: server.clone().database(SERVICE_DATABASE),
            peer_database: create_database(&server, "peer").await?,
            floor_database: create_database(&server, "floor").await?,
            plain_database: create_database(&server, "plain").await?,
        })
    }

    /// Everybody's turn.
    async fn round(
        &self,
        comparison: &ComparisonPlan<'_>,
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
        comparison: &ComparisonPlan<'_>,
        contender: Contender,
        load: LoadSettings,
    ) -> anyhow::Result<Turn> {
        let (mode, database, proof) = match contender {
            Contender::Service => {
                maintenance::vacuum_and_checkpoint(&self.service_database).await?;
                let target = Target {
                    url: self.stand.base_url(),
                    credentials: self.buyer.clone(),
                    product: self.product.clone(),
                    audit_method: AuditMethod::Api,
                    monitored: self.stand.monitor_target()?,
                };
                return run_turn(&target, load).await;
            }
            Contender::Peer => (PeerMode::RowLocks, &self.peer_database, AuditMethod::Api),
            Contender::Floor => {
                let rows = AuditMethod::Rows(Box::new(self.floor_database.clone()));
                (PeerMode::Floor, &self.floor_database, rows)
            }
            Contender::Signature => (PeerMode::SignatureOnly, &self.floor_database, AuditMethod::Responses),
        };
        maintenance::vacuum_and_checkpoint(database).await?;
        let process = PeerProcess::start(&PeerOptions {
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
            audit_method: proof,
            monitored: MonitorTarget {
                pids: vec![process.pid()],
                server: Some(
                    self.stand
                        .postgres()?
                        .monitored(database.get_database().unwrap_or_default()),
                ),
                admin_url: None,
            },
        };
        run_turn(&target, load).await
    }
}
