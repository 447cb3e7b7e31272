//! What does a scenario do when its load is over? The service is killed and started again, and asked for what it answered
//! before, as far as the scenario says so.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::{GeneratorOptions, ScenarioRunError};
use crate::pause_recovery::{PauseRecovery, Pause};
use crate::audit::Check;
use crate::client::DEFAULT_TIMEOUT;
use crate::load_run::{LoadPlan, SigningTime, run_load};
use crate::run_history::{RunHistory, OrderHistory, SentOrders};
use crate::progress::{RunProgressBar, Progress};
use crate::replays::{self, ReplayReport};
use crate::report::FollowUp;
use crate::restart::{OrderSource, RestartTimes, measure_restarts};
use crate::run::{RunLength, RunResult};
use crate::scenario::{Pace, ReplayPhase, Scenario};
use crate::signer::Credentials;
use crate::deployment::TestDeployment;
use crate::traffic::Traffic;

/// Does it; what was acknowledged and answered meanwhile is in the tally of the run afterwards.
pub(super) fn run_follow_up(
    scenario: &Scenario,
    (runtime, stand): (&Runtime, &mut TestDeployment),
    (partners, traffic): (&[Credentials], &Traffic),
    options: GeneratorOptions,
    ran: &mut RunResult,
) -> Result<(FollowUp, Vec<Check>), ScenarioRunError> {
    let (mut after, mut checks) = (FollowUp::default(), Vec::new());
    // What is replayed from the database alone needs a start that remembers nothing.
    let times = scenario.restarts.max(u64::from(scenario.replays.is_some()));
    let callers = OrderSource {
        partners,
        traffic,
        seed: options.seed,
    };
    let books = &mut ran.tally.acknowledgements;
    let took = runtime.block_on(measure_restarts(stand, times, &callers, books))?;
    after.restarts = RestartTimes::from_durations(&took);
    if let Some(replays) = scenario.replays {
        let sent = Arc::new(std::mem::take(&mut ran.sent));
        let orders_per_s = ran.tally.latency_us.len() as f64 / ran.measured_for.as_secs_f64();
        let again = replay(scenario, replays, stand.base_url(), &callers, options, &sent)?;
        after.replayed = ReplayReport::from_run(&again, sent.count(), orders_per_s);
        checks.push(replays::check_replays(&again.tally));
        ran.tally.merge(again.tally);
    }
    Ok((after, checks))
}

/// How soon everything was as before.
pub(super) fn measure_recovery(pauses: Option<&Vec<Pause>>, ran: &RunResult) -> Option<PauseRecovery> {
    PauseRecovery::measure(pauses?, ran.tally.latency_samples.as_ref()?)
}

fn replay(
    scenario: &Scenario,
    replays: ReplayPhase,
    base_url: String,
    callers: &OrderSource<'_>,
    options: GeneratorOptions,
    sent: &Arc<SentOrders>,
) -> Result<RunResult, ScenarioRunError> {
    let (progress, length) = (Progress::default(), Duration::from_secs(replays.seconds));
    let plan = LoadPlan {
        base_url,
        partners: callers.partners.to_vec(),
        traffic: callers.traffic.clone().into_replays(),
        pace: Pace::Closed {
            connections: scenario.pace.connections(),
        },
        signing: SigningTime::OnDemand,
        seed: options.seed,
        threads: options.threads,
        warm_up: Duration::ZERO,
        length: RunLength::Time(length),
        timeout: DEFAULT_TIMEOUT,
        samples: 0,
        history: RunHistory {
            orders: OrderHistory::FromRun(Arc::clone(sent)),
            latency_samples: false,
        },
    };
    let bar = RunProgressBar::show(&progress, length);
    let ran = run_load(plan, &progress);
    drop(bar);
    Ok(ran?)
}
