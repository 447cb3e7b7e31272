//! Rounds of a comparison: in each round every contender is measured in turn on the server of the deployment. The
//! service idles while others run; the processes of the other contenders exist only during their turns.

use std::path::Path;

use anyhow::Context;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_peer::PeerMode;
use vouchsafe_peer::process::{PeerOptions, PeerProcess};
use vouchsafe_peer::schema::create_database;

use super::audit_method::AuditMethod;
use super::contender::{Column, CompareReport, Contender, empty_columns, half_peer_rate};
use super::floor::{FloorPlan, run_floor_benchmark};
use super::maintenance;
use super::search::{PeerSearchReport, PeerVariant};
use super::turn::{LoadSettings, Target, Turn, run_turn};
use crate::deployment::TestDeployment;
use crate::deployment::postgres::SERVICE_DATABASE;
use crate::deployment::seed::{SeedData, product_id, seed};
use crate::resources::MonitorTarget;
use crate::resources::database::DatabaseInspector;
use crate::resources::machine::Machine;

/// Wallet balance of the partner, in USD.
const USD: u64 = 900_000_000;

/// Parameters of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonPlan<'a> {
    pub service: &'a Path,
    pub peer: &'a Path,
    /// Directory for credential files.
    pub directory: &'a Path,
    pub variant: PeerVariant,
    /// The search that selected the peer; `None` if it was given.
    pub search: Option<PeerSearchReport>,
    /// Closed loops of each round.
    pub loads: Vec<LoadSettings>,
    /// Open loop; its rate is half of the peer's best. `None` skips it.
    pub open: Option<LoadSettings>,
    pub rounds: usize,
    /// Initial vouchers of service and peer each.
    pub stock: u64,
    /// Floor without HTTP, once per round.
    pub floor: FloorPlan,
}

/// Runs the comparison; `say` receives one line per turn.
///
/// # Errors
/// If a contender cannot be started, loaded or audited.
pub async fn compare(
    comparison: &ComparisonPlan<'_>,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<CompareReport> {
    let machine = Machine::observe_before();
    let setup = ComparisonSetup::prepare(comparison).await?;
    let (mut columns, mut floors) = (empty_columns(&comparison.loads), Vec::new());
    for round in 1..=comparison.rounds {
        setup.run_round(comparison, round, &mut columns, say).await?;
        floors.push(run_floor_benchmark(&setup.plain_database, &comparison.floor, say).await?);
    }
    if let Some(load) = comparison.open.and_then(|load| half_peer_rate(&columns, load)) {
        let mut open = empty_columns(&[load]);
        for round in 1..=comparison.rounds {
            setup.run_round(comparison, round, &mut open, say).await?;
        }
        columns.append(&mut open);
    }
    let read_facts =
        async |options: &PgConnectOptions| DatabaseInspector::connect_with(options).await?.read_facts().await;
    let report = CompareReport {
        variant: comparison.variant,
        search: comparison.search.clone(),
        columns,
        floors,
        service_database: read_facts(&setup.deployment.postgres()?.service_options()).await?,
        peer_database: read_facts(&setup.peer_database).await?,
        machine: machine.observe_after(),
    };
    setup.deployment.stop().context("stopping the service")?;
    Ok(report)
}

/// Deployment and databases for the whole comparison.
struct ComparisonSetup {
    deployment: TestDeployment,
    partner: Credentials,
    product: String,
    service_database: PgConnectOptions,
    peer_database: PgConnectOptions,
    floor_database: PgConnectOptions,
    plain_database: PgConnectOptions,
}

impl ComparisonSetup {
    async fn prepare(comparison: &ComparisonPlan<'_>) -> anyhow::Result<Self> {
        let mut deployment = TestDeployment::start(comparison.service).await?;
        let seed_data = SeedData::even(1, comparison.stock, 1, USD);
        let partners = seed(deployment.operator(), &seed_data).await?;
        let partner = partners
            .into_iter()
            .next()
            .context("the deployment has no partner")?;
        let server = deployment.postgres()?.superuser_options();
        maintenance::disable_autovacuum(&server).await?;
        Ok(Self {
            deployment,
            partner: partner.credentials,
            product: product_id(0),
            service_database: server.clone().database(SERVICE_DATABASE),
            peer_database: create_database(&server, "peer").await?,
            floor_database: create_database(&server, "floor").await?,
            plain_database: create_database(&server, "plain").await?,
        })
    }

    async fn run_round(
        &self,
        comparison: &ComparisonPlan<'_>,
        round: usize,
        columns: &mut [Column],
        say: &mut impl FnMut(&str),
    ) -> anyhow::Result<()> {
        for column in columns {
            let turn = self
                .run_contender(comparison, column.contender, column.load)
                .await?;
            let (name, pace) = (column.contender.name(), column.load.pace);
            let rate = turn.orders_per_s;
            say(&format!("round {round}, {name}, {pace}: {rate:.0} orders/s"));
            column.turns.push(turn);
        }
        Ok(())
    }

    async fn run_contender(
        &self,
        comparison: &ComparisonPlan<'_>,
        contender: Contender,
        load: LoadSettings,
    ) -> anyhow::Result<Turn> {
        let (mode, database, proof) = match contender {
            Contender::Service => {
                maintenance::vacuum_and_checkpoint(&self.service_database).await?;
                let target = Target {
                    url: self.deployment.base_url(),
                    credentials: self.partner.clone(),
                    product: self.product.clone(),
                    audit_method: AuditMethod::Api,
                    monitored: self.deployment.monitor_target()?,
                };
                return run_turn(&target, load).await;
            }
            Contender::Peer => (PeerMode::RowLocks, &self.peer_database, AuditMethod::Api),
            Contender::Floor => {
                let rows = AuditMethod::Rows(Box::new(self.floor_database.clone()));
                (PeerMode::Floor, &self.floor_database, rows)
            }
            Contender::Signature => (
                PeerMode::SignatureOnly,
                &self.floor_database,
                AuditMethod::Responses,
            ),
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
                    self.deployment
                        .postgres()?
                        .monitored(database.get_database().unwrap_or_default()),
                ),
                admin_url: None,
            },
        };
        run_turn(&target, load).await
    }
}
