//! Rounds of a comparison: in each round every contender is measured in turn on the server of the deployment.
//! The service idles while others run; the processes of the other contenders exist only during their turns.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use sqlx::postgres::PgConnectOptions;
use tokio::runtime::Runtime;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;

use super::audit_method::{TurnAudit, check_all_sold};
use super::{Column, CompareReport, Contender, LoadSettings, empty_columns, half_peer_rate, maintenance};
use crate::audit::{check_refusals, check_stable_responses};
use crate::deployment::TestDeployment;
use crate::deployment::postgres::SERVICE_DATABASE;
use crate::deployment::seed::{SeedData, product_id, seed};
use crate::follow_up::FollowUp;
use crate::follow_up::webhook_receiver::{WebhookReceiver, expected_events, remove_endpoints};
use crate::peer::PeerMode;
use crate::peer::process::{PeerCredentials, PeerOptions, PeerProcess};
use crate::peer::schema::create_database;
use crate::report::RunReport;
use crate::resources::MonitorTarget;
use crate::resources::conditions::Conditions;
use crate::resources::database::DatabaseSettings;
use crate::run::driver::LoadPlan;
use crate::run::event_arrivals::EventArrivals;
use crate::run::measurement::measure;
use crate::runtime::new_runtime;
use crate::traffic::generator::Traffic;
use crate::traffic::pace::RunLength;
use crate::traffic::workload::one_sku;

/// Wallet balance of the partner, in USD.
const USD: u64 = 900_000_000;

/// Parameters of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonPlan<'a> {
    pub service: &'a Path,
    /// The program with the command `peer`, which runs the other contenders.
    pub load: &'a Path,
    pub pool: u32,
    /// Closed loops of each round. The first one also runs as an open loop at half of the peer's best rate.
    pub loads: &'a [LoadSettings],
    pub rounds: usize,
    /// Initial vouchers of service and peer each.
    pub stock: u64,
}

/// Runs the comparison; `report_progress` receives one line per turn. Blocks.
///
/// # Errors
/// If a contender cannot be started, loaded or audited.
pub fn compare(
    comparison: &ComparisonPlan<'_>,
    report_progress: &mut impl FnMut(&str),
) -> anyhow::Result<CompareReport> {
    let runtime = new_runtime()?;
    let setup = runtime.block_on(ComparisonSetup::prepare(comparison))?;
    let mut columns = empty_columns(comparison.loads);
    setup.run_rounds(&runtime, comparison, &mut columns, report_progress)?;
    let first = comparison.loads.first().filter(|load| !load.lives);
    if let Some(load) = first.and_then(|load| half_peer_rate(&columns, *load)) {
        let mut open = empty_columns(&[load]);
        setup.run_rounds(&runtime, comparison, &mut open, report_progress)?;
        columns.append(&mut open);
    }
    let database = runtime.block_on(DatabaseSettings::read(&setup.peer_database))?;
    let report = CompareReport {
        pool: comparison.pool,
        columns,
        conditions: setup.conditions.completed(Some(database)),
    };
    setup.deployment.stop().context("stopping the service")?;
    Ok(report)
}

/// Deployment and databases for the whole comparison.
struct ComparisonSetup {
    deployment: TestDeployment,
    conditions: Conditions,
    partner: Credentials,
    service_database: PgConnectOptions,
    peer_database: PgConnectOptions,
    floor_database: PgConnectOptions,
    peer_credentials: PeerCredentials,
}

impl ComparisonSetup {
    async fn prepare(comparison: &ComparisonPlan<'_>) -> anyhow::Result<Self> {
        let mut deployment = TestDeployment::start(comparison.service).await?;
        let conditions = Conditions::observe(Some(comparison.service), Some(deployment.directory()))
            .with_build(deployment.build_info().await?);
        let seed_data = SeedData::even(1, comparison.stock, 1, USD);
        let mut partners = seed(deployment.operator(), &seed_data).await?.into_iter();
        let partner = partners.next().context("the deployment has no partner")?;
        let server = deployment.postgres()?.superuser_options();
        maintenance::disable_autovacuum(&server).await?;
        Ok(Self {
            deployment,
            conditions,
            partner: partner.credentials,
            service_database: server.clone().database(SERVICE_DATABASE),
            peer_database: create_database(&server, "peer").await?,
            floor_database: create_database(&server, "floor").await?,
            peer_credentials: PeerCredentials::generate(),
        })
    }

    fn run_rounds(
        &self,
        runtime: &Runtime,
        comparison: &ComparisonPlan<'_>,
        columns: &mut [Column],
        report_progress: &mut impl FnMut(&str),
    ) -> anyhow::Result<()> {
        for round in 1..=comparison.rounds {
            for column in &mut *columns {
                let (contender, load) = (column.contender, column.load);
                let turn = self.run_contender(runtime, comparison, contender, load)?;
                let (name, rate) = (contender.name(), turn.metrics.orders_per_s);
                report_progress(&format!(
                    "round {round}, {name}, {}: {rate:.0} orders/s",
                    load.pace
                ));
                column.turns.push(turn);
            }
        }
        Ok(())
    }

    fn run_contender(
        &self,
        runtime: &Runtime,
        comparison: &ComparisonPlan<'_>,
        contender: Contender,
        load: LoadSettings,
    ) -> anyhow::Result<RunReport> {
        let (mode, database) = match contender {
            Contender::Service => {
                runtime.block_on(maintenance::vacuum_and_checkpoint(&self.service_database))?;
                let (url, monitored) = (self.deployment.base_url(), self.deployment.monitor_target()?);
                let client = PartnerClient::new(&url, self.partner.clone())?;
                let audit = runtime.block_on(TurnAudit::of_api(client))?;
                let partner = &self.partner;
                let turn = self.run_turn(runtime, (url.clone(), partner.clone()), monitored, load, audit)?;
                if load.lives {
                    runtime.block_on(remove_endpoints(&url, partner))?;
                }
                return Ok(turn);
            }
            Contender::Peer => (PeerMode::RowLocks, &self.peer_database),
            Contender::Floor => (PeerMode::Floor, &self.floor_database),
        };
        runtime.block_on(maintenance::vacuum_and_checkpoint(database))?;
        let process = PeerProcess::start(&PeerOptions {
            program: comparison.load,
            mode,
            pool: comparison.pool,
            database,
            partner: &self.peer_credentials,
            product: &product_id(0),
            stock: comparison.stock,
        })?;
        let (url, partner) = (process.url().to_owned(), process.credentials().clone());
        let audit = match mode {
            PeerMode::RowLocks => {
                runtime.block_on(TurnAudit::of_api(PartnerClient::new(&url, partner.clone())?))?
            }
            PeerMode::Floor => runtime.block_on(TurnAudit::of_rows(database))?,
        };
        let database = database.get_database().unwrap_or_default();
        let monitored = MonitorTarget {
            pids: vec![process.pid()],
            server: Some(self.deployment.postgres()?.monitored(database)),
            admin_url: None,
        };
        self.run_turn(runtime, (url, partner), monitored, load, audit)
    }

    /// Loads and audits one contender. All contenders get the same arrivals.
    fn run_turn(
        &self,
        runtime: &Runtime,
        (url, partner): (String, Credentials),
        monitored: MonitorTarget,
        load: LoadSettings,
        audit: TurnAudit,
    ) -> anyhow::Result<RunReport> {
        let product = product_id(0);
        let mut traffic = Traffic::fixed(vec![one_sku(&product, "25", 1)?]);
        let mut receiver = None;
        if load.lives {
            traffic = traffic.into_lives();
            let events = Arc::<EventArrivals>::default();
            let started = WebhookReceiver::start(Some(Arc::clone(&events)))?;
            runtime.block_on(started.register_endpoints(&url, std::slice::from_ref(&partner)))?;
            receiver = Some((started, events));
        }
        let length = RunLength::Time(Duration::from_secs(load.seconds));
        let plan = LoadPlan {
            warm_up: Duration::from_secs(load.warm_up_s),
            events: receiver.as_ref().map(|(_, events)| Arc::clone(events)),
            ..LoadPlan::single_partner(url, partner, traffic, load.pace, length)
        };
        let run = measure(plan, format!("1 × {product} at 25"), Vec::new(), monitored)?;
        let load_end = Instant::now();
        let mut checks = vec![check_all_sold(run.metrics.outcomes.iter())];
        let mut follow_up = FollowUp::default();
        if let Some((receiver, _)) = receiver {
            let expected = expected_events(&run.result.tally.acknowledgements);
            let (delivered, check) = receiver.wait_and_stop(expected, load_end)?;
            follow_up.webhooks = Some(delivered);
            checks.extend([check, check_refusals(&run.result.tally, &[])]);
            checks.push(check_stable_responses(&run.result.tally.mismatches));
        }
        let mut audit = runtime.block_on(audit.audit(run.result.tally.acknowledgements))?;
        audit.checks.extend(checks);
        let conditions = self.conditions.clone().completed(None);
        Ok(RunReport {
            follow_up,
            ..RunReport::new(conditions, run.metrics, run.usage, audit)
        })
    }
}
