//! Follow-up of a scenario run: restarts of a killed service and replays of earlier orders, as the scenario
//! specifies.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use vouchsafe_api_client::DEFAULT_TIMEOUT;
use vouchsafe_api_client::signer::Credentials;

use super::GeneratorOptions;
use crate::audit::Check;
use crate::deployment::TestDeployment;
use crate::follow_up::pause_recovery::{Pause, PauseRecovery};
use crate::follow_up::replays::ReplayReport;
use crate::follow_up::restart::{OrderSource, RestartTimes, measure_restarts};
use crate::follow_up::{FollowUp, replays};
use crate::run::driver::{LoadPlan, run_load};
use crate::run::progress::Progress;
use crate::run::result::RunResult;
use crate::tally::run_history::{OrderHistory, RunHistory, SentOrders};
use crate::traffic::generator::Traffic;
use crate::traffic::pace::{Pace, RunLength};
use crate::traffic::scenario::{ReplayPhase, Scenario};

/// Runs the follow-up; adds its results to the tally of the run.
pub(super) fn run_follow_up(
    scenario: &Scenario,
    (runtime, deployment): (&Runtime, &mut TestDeployment),
    (partners, traffic): (&[Credentials], &Traffic),
    options: GeneratorOptions,
    result: &mut RunResult,
) -> anyhow::Result<(FollowUp, Vec<Check>)> {
    let (mut follow_up, mut checks) = (FollowUp::default(), Vec::new());
    // Replays from the database need a process that has no stored response in memory.
    let times = scenario.restarts.max(u64::from(scenario.replays.is_some()));
    let order_source = OrderSource {
        partners,
        traffic,
        seed: options.seed,
    };
    let acknowledgements = &mut result.tally.acknowledgements;
    let durations = runtime.block_on(measure_restarts(
        deployment,
        times,
        &order_source,
        acknowledgements,
    ))?;
    follow_up.restarts = RestartTimes::from_durations(&durations);
    if let Some(replays) = scenario.replays {
        let sent = Arc::new(std::mem::take(&mut result.sent));
        let orders_per_s = result.tally.latency_us.len() as f64 / result.measured_for.as_secs_f64();
        let replay_run = replay(
            scenario,
            replays,
            deployment.base_url(),
            &order_source,
            options,
            &sent,
        )?;
        follow_up.replays = ReplayReport::from_run(&replay_run, sent.count(), orders_per_s);
        checks.push(replays::check_replays(&replay_run.tally));
        result.tally.merge(replay_run.tally);
    }
    Ok((follow_up, checks))
}

/// Latency recovery after the pauses of a run.
pub(super) fn measure_recovery(pauses: Option<&Vec<Pause>>, result: &RunResult) -> Option<PauseRecovery> {
    PauseRecovery::measure(pauses?, result.tally.latency_samples.as_ref()?)
}

fn replay(
    scenario: &Scenario,
    replays: ReplayPhase,
    base_url: String,
    order_source: &OrderSource<'_>,
    options: GeneratorOptions,
    sent: &Arc<SentOrders>,
) -> anyhow::Result<RunResult> {
    let plan = LoadPlan {
        base_url,
        partners: order_source.partners.to_vec(),
        traffic: order_source.traffic.clone().into_replays(),
        pace: Pace::Closed {
            connections: scenario.pace.connections(),
        },
        seed: options.seed,
        threads: options.threads,
        warm_up: Duration::ZERO,
        length: RunLength::Time(Duration::from_secs(replays.seconds)),
        drain: Duration::ZERO,
        timeout: DEFAULT_TIMEOUT,
        samples: 0,
        history: RunHistory {
            orders: OrderHistory::FromRun(Arc::clone(sent)),
            latency_samples: false,
        },
        events: None,
    };
    run_load(plan, &Progress::default())
}
