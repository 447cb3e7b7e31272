//! Rounds of a comparison: in each round every contender is measured in turn on the server of the deployment. The
//! service idles while others run; the processes of the other contenders exist only during their turns.

use std::path::Path;

use anyhow::Context;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_load::deployment::TestDeployment;
use vouchsafe_load::deployment::postgres::SERVICE_DATABASE;
use vouchsafe_load::deployment::seed::{SeedData, product_id, seed};
use vouchsafe_load::resources::MonitorTarget;
use vouchsafe_load::resources::conditions::Conditions;
use vouchsafe_load::resources::database::DatabaseSettings;

use super::audit_method::AuditMethod;
use super::contender::{Column, CompareReport, Contender, empty_columns, half_peer_rate};
use super::maintenance;
use super::turn::{LoadSettings, Target, Turn, run_turn};
use crate::peer::PeerMode;
use crate::peer::process::{PeerCredentials, PeerOptions, PeerProcess};
use crate::peer::schema::create_database;

/// Wallet balance of the partner, in USD.
const USD: u64 = 900_000_000;

/// Parameters of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonPlan<'a> {
    pub service: &'a Path,
    /// The `lab` program, which runs the other contenders.
    pub lab: &'a Path,
    pub pool: u32,
    /// Closed loops of each round. The first one also runs as an open loop at half of the peer's best rate.
    pub loads: &'a [LoadSettings],
    pub rounds: usize,
    /// Initial vouchers of service and peer each.
    pub stock: u64,
}

/// Runs the comparison; `report_progress` receives one line per turn.
///
/// # Errors
/// If a contender cannot be started, loaded or audited.
pub async fn compare(
    comparison: &ComparisonPlan<'_>,
    report_progress: &mut impl FnMut(&str),
) -> anyhow::Result<CompareReport> {
    let setup = ComparisonSetup::prepare(comparison).await?;
    let build = setup.deployment.build_info().await?;
    let conditions =
        Conditions::observe(Some(comparison.service), Some(setup.deployment.directory())).with_build(build);
    let mut columns = empty_columns(comparison.loads);
    setup
        .run_rounds(comparison, &mut columns, report_progress)
        .await?;
    let first = comparison.loads.first();
    if let Some(load) = first.and_then(|load| half_peer_rate(&columns, *load)) {
        let mut open = empty_columns(&[load]);
        setup.run_rounds(comparison, &mut open, report_progress).await?;
        columns.append(&mut open);
    }
    let report = CompareReport {
        pool: comparison.pool,
        columns,
        conditions: conditions.completed(Some(DatabaseSettings::read(&setup.peer_database).await?)),
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
    peer_credentials: PeerCredentials,
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
            peer_credentials: PeerCredentials::generate(),
        })
    }

    async fn run_rounds(
        &self,
        comparison: &ComparisonPlan<'_>,
        columns: &mut [Column],
        report_progress: &mut impl FnMut(&str),
    ) -> anyhow::Result<()> {
        for round in 1..=comparison.rounds {
            for Column {
                contender,
                load,
                turns,
            } in &mut *columns
            {
                let turn = self.run_contender(comparison, *contender, *load).await?;
                let (name, pace, rate) = (contender.name(), load.pace, turn.orders_per_s);
                report_progress(&format!("round {round}, {name}, {pace}: {rate:.0} orders/s"));
                turns.push(turn);
            }
        }
        Ok(())
    }

    async fn run_contender(
        &self,
        comparison: &ComparisonPlan<'_>,
        contender: Contender,
        load: LoadSettings,
    ) -> anyhow::Result<Turn> {
        let (mode, database, audit_method) = match contender {
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
        };
        maintenance::vacuum_and_checkpoint(database).await?;
        let process = PeerProcess::start(&PeerOptions {
            program: comparison.lab,
            mode,
            pool: comparison.pool,
            database,
            partner: &self.peer_credentials,
            product: &self.product,
            stock: comparison.stock,
        })?;
        let target = Target {
            url: process.url().to_owned(),
            credentials: process.credentials().clone(),
            product: self.product.clone(),
            audit_method,
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
