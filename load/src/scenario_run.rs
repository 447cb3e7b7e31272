//! How is a scenario played? Furnish a stand, note what its partners have, load it, hold up its Postgres where the
//! scenario says so, and audit: over the partners' API, the operators', and on the database.

mod follow_up;

use std::time::Instant;

use tokio::runtime::Runtime;

use self::follow_up::{run_follow_up, measure_recovery};
use crate::audit::{AuditedPartner, audit_all, check_refusals, check_stable_responses, check_stock_sold, check_invariants};
use crate::acknowledgements::Acknowledgements;
use crate::client::DEFAULT_TIMEOUT;
use crate::database::DatabaseInspector;
use crate::load_run::{LoadPlan, SigningTime, run_load};
use crate::run_history::{RunHistory, OrderHistory};
use crate::machine::Machine;
use crate::partner::PartnerClient;
use crate::pauses::{PauseError, PostgresPauser};
use crate::progress::{RunProgressBar, Progress};
use crate::webhook_receiver::WebhookReceiver;
use crate::report::{RunMetrics, ScenarioInfo, Report, Setup};
use crate::run::{RunLength, RunResult, RunError};
use crate::scenario::{Scenario, ScenarioError};
use crate::signer::Credentials;
use crate::deployment::seed::seed;
use crate::deployment::operator::OperatorError;
use crate::deployment::postgres::SERVICE_DATABASE;
use crate::deployment::{TestDeployment, DeploymentError};
use crate::traffic::Traffic;
use crate::resource_monitor::ResourceMonitor;

/// How the generator itself works, whatever the scenario.
#[derive(Clone, Copy, Debug)]
pub struct GeneratorOptions {
    /// When requests are signed.
    pub signing: SigningTime,
    /// What chance begins with.
    pub seed: u64,
    /// Threads of the generator, at least one.
    pub threads: usize,
    /// Whole orders to keep for the audit, at most.
    pub samples: usize,
}

/// Why a scenario could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioRunError {
    /// The scenario is none.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The stand is none.
    #[error(transparent)]
    Stand(#[from] DeploymentError),
    /// It could not be furnished.
    #[error("cannot furnish the stand")]
    Seed(#[from] OperatorError),
    /// What the partners have could not be read.
    #[error("cannot read what the partners have: {0}")]
    Account(String),
    /// The generator could not start.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A partner could not have an endpoint.
    #[error("cannot make the receiver a partner's endpoint: {0}")]
    Endpoint(String),
    /// Postgres could not be held up.
    #[error(transparent)]
    Pause(#[from] PauseError),
    /// The database could not be read.
    #[error("cannot read the database")]
    Database(#[from] sqlx::Error),
    /// Nobody can watch what it uses.
    #[error("cannot watch what is used")]
    Watch(#[source] anyhow::Error),
    /// There is no runtime, or no thread.
    #[error("cannot start a runtime or a thread")]
    Runtime(#[from] std::io::Error),
}

/// Plays a scenario on a stand that has played nothing before. Blocks until it is audited.
///
/// # Errors
/// [`PlayError`] if it could not be played; what the service does wrong is in the report.
pub fn run_scenario(scenario: &Scenario, stand: &mut TestDeployment, options: GeneratorOptions) -> Result<Report, ScenarioRunError> {
    scenario.validate()?;
    let traffic = Traffic::from_scenario(scenario)?;
    let forms = traffic.forms();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let machine = Machine::observe_before();
    let began = Instant::now();
    let buyers = runtime.block_on(seed(stand.operator(), &scenario.seed_data()))?;
    let furnished = began.elapsed();
    let credentials: Vec<_> = buyers.into_iter().map(|buyer| buyer.credentials).collect();
    let url = stand.base_url();
    let mut accounts = open_accounts(&runtime, &url, &credentials)?;
    let postgres = stand.postgres()?;

    let receiver = match scenario.webhooks {
        true => Some(endpoints(&runtime, &url, &credentials)?),
        false => None,
    };
    let pauses = match scenario.pauses {
        Some(pauses) => Some(PostgresPauser::start(pauses, &postgres.superuser_options(), SERVICE_DATABASE)?),
        None => None,
    };
    let progress = Progress::default();
    let watch = ResourceMonitor::start(stand.monitor_target()?, &progress, scenario.length())?;
    let mut ran = load(scenario, &traffic, url.clone(), &credentials, options, &progress)?;
    let loaded = Instant::now();
    let pauses = pauses.map(PostgresPauser::stop).transpose()?;
    let watched = watch.stop().map_err(ScenarioRunError::Watch)?;

    let figures = RunMetrics::from_run(setup(scenario, url, forms, options), &ran);
    let callers = (credentials.as_slice(), &traffic);
    let (mut after, checks) = run_follow_up(scenario, (&runtime, stand), callers, options, &mut ran)?;
    after.aftermath = measure_recovery(pauses.as_ref(), &ran);
    let refusals = check_refusals(&ran.tally, &scenario.refusals);
    let answers = check_stable_responses(&ran.tally.mismatches);
    let (mut audit, books) = runtime.block_on(audit_all(&mut accounts, ran.tally.acknowledgements));
    audit.checks.extend([refusals, answers]);
    audit.checks.extend(checks);
    if let Some(receiver) = receiver {
        let (delivered, check) = receiver.wait_and_stop(events(&books), loaded)?;
        after.delivered = Some(delivered);
        audit.checks.push(check);
    }
    let vouchers = books.vouchers.len();
    audit
        .checks
        .push(runtime.block_on(check_stock_sold(stand.operator(), vouchers)));
    // Another server than before, where the service was killed.
    let postgres = stand.postgres()?;
    let facts = runtime.block_on(async {
        let mut database = DatabaseInspector::connect_with(&postgres.service_options()).await?;
        database.read_facts().await
    })?;
    audit.checks.push(check_invariants(stand.program(), &stand.data_dir()));
    Ok(Report {
        scenario: Some(ScenarioInfo {
            name: scenario.name.clone(),
            question: scenario.question.clone(),
            furnished_s: furnished.as_secs_f64(),
            pauses: pauses.map(|pauses| pauses.len() as u64),
        }),
        metrics: figures,
        follow_up: after,
        usage: watched,
        audit,
        machine: machine.observe_after(),
        database: Some(facts),
    })
}

/// A receiver, which is every partner's endpoint.
fn endpoints(runtime: &Runtime, url: &str, credentials: &[Credentials]) -> Result<WebhookReceiver, ScenarioRunError> {
    let receiver = WebhookReceiver::start()?;
    let taken = runtime.block_on(receiver.register_endpoints(url, credentials));
    taken.map_err(ScenarioRunError::Endpoint)?;
    Ok(receiver)
}

/// How many events tell of these orders, all of them delivered at once: created, each voucher issued, delivered.
fn events(books: &Acknowledgements) -> u64 {
    2 * books.orders + books.vouchers.len() as u64
}

fn open_accounts(
    runtime: &Runtime,
    url: &str,
    credentials: &[Credentials],
) -> Result<Vec<AuditedPartner>, ScenarioRunError> {
    let open = |credentials: &Credentials| {
        let client = PartnerClient::new(url, credentials.clone()).map_err(RunError::Url)?;
        runtime
            .block_on(AuditedPartner::with_baseline(client))
            .map_err(ScenarioRunError::Account)
    };
    credentials.iter().map(open).collect()
}

fn load(
    scenario: &Scenario,
    traffic: &Traffic,
    base_url: String,
    partners: &[Credentials],
    options: GeneratorOptions,
    progress: &Progress,
) -> Result<RunResult, RunError> {
    let bar = RunProgressBar::show(progress, scenario.warm_up() + scenario.length());
    let plan = LoadPlan {
        base_url,
        partners: partners.to_vec(),
        traffic: traffic.clone(),
        pace: scenario.pace,
        signing: options.signing,
        seed: options.seed,
        threads: options.threads,
        warm_up: scenario.warm_up(),
        length: match scenario.replays {
            Some(replays) => RunLength::Orders(replays.orders),
            None => RunLength::Time(scenario.length()),
        },
        timeout: DEFAULT_TIMEOUT,
        samples: options.samples,
        history: RunHistory {
            orders: match scenario.replays {
                Some(_) => OrderHistory::Keep,
                None => OrderHistory::AsNeeded,
            },
            latency_samples: scenario.pauses.is_some(),
        },
    };
    let ran = run_load(plan, progress);
    drop(bar);
    ran
}

fn setup(scenario: &Scenario, url: String, forms: Vec<String>, options: GeneratorOptions) -> Setup {
    Setup {
        url,
        order: format!("{} partners, {} SKUs", scenario.partners, scenario.skus.count),
        pace: scenario.pace.to_string(),
        signing: options.signing.description(),
        seed: options.seed,
        forms,
        threads: options.threads,
        warm_up_s: scenario.warm_up_s,
    }
}
