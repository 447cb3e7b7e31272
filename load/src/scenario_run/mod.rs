//! Scenario runner: seeds a deployment, records balances, loads the service, pauses Postgres if the scenario
//! says so, and audits over the partner API, the admin API and the database.

mod follow_up;
pub mod prefill;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use vouchsafe_api_client::DEFAULT_TIMEOUT;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;

use self::follow_up::{measure_recovery, run_follow_up};
use crate::audit::{
    AuditedPartner, audit_all, check_invariants, check_refusals, check_stable_responses, check_stock_sold,
};
use crate::deployment::TestDeployment;
use crate::deployment::postgres::SERVICE_DATABASE;
use crate::deployment::seed::seed;
use crate::follow_up::consoles::{Consoles, check_consoles};
use crate::follow_up::idle_actors::start_idle_actors;
use crate::follow_up::pauses::PostgresPauser;
use crate::follow_up::webhook_receiver::{WebhookReceiver, expected_events};
use crate::report::{RunReport, ScenarioInfo};
use crate::resources::conditions::Conditions;
use crate::resources::database::DatabaseSettings;
use crate::run::driver::LoadPlan;
use crate::run::event_arrivals::EventArrivals;
use crate::run::measurement::{Measurement, measure};
use crate::run::stack_sampler::StackSampler;
use crate::tally::run_history::{OrderHistory, RunHistory};
use crate::traffic::generator::Traffic;
use crate::traffic::pace::RunLength;
use crate::traffic::scenario::Scenario;

/// Generator settings that do not depend on the scenario.
#[derive(Clone, Copy, Debug)]
pub struct GeneratorOptions {
    pub seed: u64,
    /// Generator threads, at least one.
    pub threads: usize,
    /// Maximum number of orders with request and response for the audit.
    pub samples: usize,
    /// Whether to sample the stacks of the service.
    pub has_stacks: bool,
}

/// Runs a scenario on a deployment without earlier runs. Blocks until the audit is complete.
///
/// # Errors
/// If the run could not complete. Errors of the service are in the report.
pub fn run_scenario(
    scenario: &Scenario,
    deployment: &mut TestDeployment,
    options: GeneratorOptions,
) -> anyhow::Result<RunReport> {
    scenario.validate()?;
    let traffic = Traffic::from_scenario(scenario)?;
    let runtime = crate::runtime::new_runtime()?;
    let conditions = Conditions::observe(Some(deployment.program()), Some(deployment.directory()))
        .with_build(runtime.block_on(deployment.build_info())?);
    let started = Instant::now();
    let partners = runtime.block_on(seed(deployment.operator(), &scenario.seed_data()))?;
    let seeding_time = started.elapsed();
    let credentials: Vec<_> = partners.into_iter().map(|partner| partner.credentials).collect();
    let url = deployment.base_url();
    let mut audited_partners = open_accounts(&runtime, &url, &credentials)?;
    let postgres = deployment.postgres()?;
    if let (Some(consoles), Some(partner)) = (scenario.consoles, credentials.first()) {
        runtime.block_on(start_idle_actors(deployment, partner, consoles.idle_actors))?;
    }
    let consoles = match scenario.consoles {
        Some(open) => Some((open, Consoles::open(deployment, open.count)?)),
        None => None,
    };

    let events = traffic.has_lives().then(Arc::<EventArrivals>::default);
    let receiver = match scenario.webhooks {
        true => Some(start_receiver(&runtime, &url, &credentials, events.clone())?),
        false => None,
    };
    let pauses = match scenario.pauses {
        Some(pauses) => Some(PostgresPauser::start(
            pauses,
            &postgres.superuser_options(),
            SERVICE_DATABASE,
        )?),
        None => None,
    };
    let stacks = match options.has_stacks {
        true => Some(StackSampler::start(
            deployment.pid(),
            scenario.warm_up(),
            deployment.directory(),
        )?),
        false => None,
    };
    let plan = load_plan(scenario, &traffic, url, (&credentials, events), options);
    let order = format!("{} partners, {} SKUs", scenario.partners, scenario.skus.count);
    let run = measure(plan, order, traffic.forms(), deployment.monitor_target()?)?;
    let Measurement {
        mut result,
        metrics,
        usage,
    } = run;
    let load_end = Instant::now();
    let stacks = stacks.map(|sampler| sampler.stop(&scenario.name)).transpose()?;
    let consoles = match consoles {
        Some((open, consoles)) => Some((open, consoles.close()?)),
        None => None,
    };
    let pauses = pauses.map(PostgresPauser::stop).transpose()?;

    let order_source = (credentials.as_slice(), &traffic);
    let (mut follow_up, checks) = run_follow_up(
        scenario,
        (&runtime, deployment),
        order_source,
        options,
        &mut result,
    )?;
    follow_up.recovery = measure_recovery(pauses.as_ref(), &result);
    let refusals = check_refusals(&result.tally, &scenario.refusals);
    let stable_responses = check_stable_responses(&result.tally.mismatches);
    let (mut audit, acknowledgements) =
        runtime.block_on(audit_all(&mut audited_partners, result.tally.acknowledgements));
    audit.checks.extend([refusals, stable_responses]);
    audit.checks.extend(checks);
    if let Some((open, received)) = consoles {
        let check = runtime.block_on(check_consoles(deployment.operator(), open, &received));
        audit.checks.push(check);
        follow_up.consoles = Some(received);
    }
    if let Some(receiver) = receiver {
        let (delivered, check) = receiver.wait_and_stop(expected_events(&acknowledgements), load_end)?;
        follow_up.webhooks = Some(delivered);
        audit.checks.push(check);
    }
    let vouchers = acknowledgements.vouchers.len();
    audit
        .checks
        .push(runtime.block_on(check_stock_sold(deployment.operator(), vouchers)));
    // The server changes when the service was killed.
    let postgres = deployment.postgres()?;
    let database = runtime.block_on(DatabaseSettings::read(&postgres.service_options()))?;
    audit
        .checks
        .push(check_invariants(deployment.program(), &deployment.data_dir()));
    let mut report = RunReport {
        scenario: Some(ScenarioInfo {
            name: scenario.name.clone(),
            description: scenario.description.clone(),
            hash: scenario.hash(),
            seeding_s: seeding_time.as_secs_f64(),
            pauses: pauses.map(|pauses| pauses.len() as u64),
        }),
        follow_up,
        stacks,
        ..RunReport::new(conditions.completed(Some(database)), metrics, usage, audit)
    };
    report.check_thresholds(&scenario.thresholds)?;
    Ok(report)
}

/// Registers one receiver as the webhook endpoint of every partner.
fn start_receiver(
    runtime: &Runtime,
    url: &str,
    credentials: &[Credentials],
    events: Option<Arc<EventArrivals>>,
) -> anyhow::Result<WebhookReceiver> {
    let receiver = WebhookReceiver::start(events)?;
    runtime.block_on(receiver.register_endpoints(url, credentials))?;
    Ok(receiver)
}

fn open_accounts(
    runtime: &Runtime,
    url: &str,
    credentials: &[Credentials],
) -> anyhow::Result<Vec<AuditedPartner>> {
    let open_account = |credentials: &Credentials| {
        let client = PartnerClient::new(url, credentials.clone())?;
        let partner = runtime.block_on(AuditedPartner::with_baseline(client));
        partner.map_err(anyhow::Error::msg)
    };
    credentials.iter().map(open_account).collect()
}

fn load_plan(
    scenario: &Scenario,
    traffic: &Traffic,
    base_url: String,
    (partners, events): (&[Credentials], Option<Arc<EventArrivals>>),
    options: GeneratorOptions,
) -> LoadPlan {
    LoadPlan {
        base_url,
        partners: partners.to_vec(),
        traffic: traffic.clone(),
        pace: scenario.pace,
        seed: options.seed,
        threads: options.threads,
        warm_up: scenario.warm_up(),
        length: run_length(scenario),
        drain: Duration::from_secs(scenario.drain_s),
        timeout: DEFAULT_TIMEOUT,
        samples: options.samples,
        history: RunHistory {
            orders: match scenario.replays {
                Some(_) => OrderHistory::Keep,
                None => OrderHistory::AsNeeded,
            },
            latency_samples: scenario.pauses.is_some(),
        },
        events,
    }
}

fn run_length(scenario: &Scenario) -> RunLength {
    match scenario.replays {
        Some(replays) => RunLength::Orders(replays.orders),
        None => RunLength::Time(scenario.length()),
    }
}
