//! Load driver: closed or open loop over a number of connections, for any number of partners.
//!
//! Each thread runs its connections as tasks on a separate runtime and keeps its own tally. An order touches
//! no shared state but the send schedule and the progress counters.
//!
//! Rule: in an open loop, latency begins when the request was due, not when it left. Otherwise a stalled
//! service would hold back the requests that show the stall (coordinated omission).

mod connection;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::task::LocalSet;
use vouchsafe_api_client::DEFAULT_TIMEOUT;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;

use super::arrivals::arrivals;
use super::event_arrivals::EventArrivals;
use super::progress::Progress;
use super::result::RunResult;
use super::send_schedule::SendSchedule;
use crate::tally::Tally;
use crate::tally::open_loop::{LoadEnd, OfferedLoad};
use crate::tally::run_history::{OrderHistory, RunHistory, SentOrders};
use crate::tally::sent_orders::SentLog;
use crate::traffic::generator::Traffic;
use crate::traffic::pace::{DEFAULT_DRAIN_S, Pace, RunLength};

/// Seed of a run that sets none: equal runs send the same requests at the same times.
pub const DEFAULT_SEED: u64 = 1;

/// Orders that the audit of a run reads back and replays, unless the run sets another number.
pub const DEFAULT_SAMPLES: usize = 100;

/// Configuration of a load run.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Base URL, such as `http://127.0.0.1:8080/api/v1`.
    pub base_url: String,
    /// At least one.
    pub partners: Vec<Credentials>,
    pub traffic: Traffic,
    /// Loop type and connections; the threads share the connections evenly.
    pub pace: Pace,
    pub seed: u64,
    /// Generator threads, at least one.
    pub threads: usize,
    pub warm_up: Duration,
    /// In an open loop, [`RunLength::Orders`] counts requests of all kinds.
    pub length: RunLength,
    /// In an open loop, requests that are open this long after the load count as dropped.
    pub drain: Duration,
    /// Timeout for connecting and for each exchange.
    pub timeout: Duration,
    /// Maximum number of orders with request and response for the audit.
    pub samples: usize,
    pub history: RunHistory,
    /// Lives of orders learn of their events here; others need none.
    pub events: Option<Arc<EventArrivals>>,
}

impl LoadPlan {
    /// One partner, without warm-up, on one thread.
    #[must_use]
    pub fn single_partner(
        base_url: String,
        credentials: Credentials,
        traffic: Traffic,
        pace: Pace,
        length: RunLength,
    ) -> Self {
        Self {
            base_url,
            partners: vec![credentials],
            traffic,
            pace,
            seed: DEFAULT_SEED,
            threads: 1,
            warm_up: Duration::ZERO,
            length,
            drain: Duration::from_secs(DEFAULT_DRAIN_S),
            timeout: DEFAULT_TIMEOUT,
            samples: DEFAULT_SAMPLES,
            history: RunHistory::default(),
            events: None,
        }
    }

    fn has_to_remember_orders(&self) -> bool {
        self.traffic.needs_past_orders() || matches!(self.history.orders, OrderHistory::Keep)
    }

    /// The share of one thread in `whole`.
    fn thread_share(&self, total: usize, index: usize) -> usize {
        total / self.threads + usize::from(index < total % self.threads)
    }

    /// End of an open loop: the planned time, or the time at which the arrival after the last one would be
    /// due.
    fn load_end(&self, start: Instant, times: &[Duration]) -> LoadEnd {
        let at = match (self.length, self.pace) {
            (RunLength::Orders(_), Pace::Open { per_second, .. }) => {
                let last = times.last().copied().unwrap_or_default();
                start + last + Duration::from_secs_f64(1.0 / per_second)
            }
            (RunLength::Time(length), _) => start + self.warm_up + length,
            (RunLength::Orders(_), Pace::Closed { .. }) => start,
        };
        LoadEnd {
            at,
            drain_deadline: at + self.drain,
        }
    }

    /// `None` for a closed loop.
    fn arrivals(&self) -> anyhow::Result<Option<Vec<Duration>>> {
        match self.pace {
            Pace::Closed { .. } => Ok(None),
            Pace::Open {
                per_second, spacing, ..
            } => Ok(Some(arrivals(
                per_second,
                spacing,
                self.warm_up,
                self.length,
                self.seed,
            )?)),
        }
    }
}

/// Loads the service; returns when the last request has completed.
///
/// # Errors
/// If the run could not start. Errors of the service are in the tally.
pub fn run_load(plan: LoadPlan, progress: &Progress) -> anyhow::Result<RunResult> {
    // Drawing millions of arrivals takes time, so the clock starts after it.
    let arrivals = plan.arrivals()?;
    let start = Instant::now();
    let measure_from = start + plan.warm_up;
    let schedule = Arc::new(match arrivals {
        Some(times) => {
            let load_end = plan.load_end(start, &times);
            SendSchedule::open(measure_from, start, times, load_end)
        }
        None => SendSchedule::closed(measure_from, plan.length),
    });
    progress.set_measurement_start(measure_from);
    let plan = Arc::new(plan);
    let threads: Vec<_> = (0..plan.threads)
        .map(|index| {
            let (plan, schedule, progress) = (Arc::clone(&plan), Arc::clone(&schedule), progress.clone());
            // Costs are reported by the names of threads.
            std::thread::Builder::new()
                .name(format!("generator-{index}"))
                .spawn(move || run_thread(&plan, index, measure_from, schedule, progress))
        })
        .collect::<Result<_, _>>()?;
    let (mut sum, mut sent) = (Tally::new(plan.samples, measure_from), Vec::new());
    for thread in threads {
        let (tally, log) = thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        sum.merge(tally);
        sent.push(log);
    }
    let lasted = Instant::now().saturating_duration_since(measure_from);
    let measured_for = sum.last_end.map_or(Duration::ZERO, |end| end - measure_from);
    let offered = schedule.load_end().map(|load_end| {
        let load = load_end.at.saturating_duration_since(measure_from);
        OfferedLoad::from_counts(schedule.offered(), sum.open_loop, load, plan.drain)
    });
    Ok(RunResult {
        tally: sum,
        loaded_for: match plan.length {
            RunLength::Time(length) => length,
            RunLength::Orders(_) => measured_for,
        },
        measured_for,
        lasted,
        offered,
        sent: SentOrders::from_logs(sent),
    })
}

/// State that the connections of one thread share.
struct ThreadState {
    plan: Arc<LoadPlan>,
    schedule: Arc<SendSchedule>,
    rng: RefCell<StdRng>,
    sent: RefCell<SentLog>,
    /// Last event id read, by partner.
    feed_positions: RefCell<Vec<Option<String>>>,
    tally: RefCell<Tally>,
    progress: Progress,
}

fn run_thread(
    plan: &Arc<LoadPlan>,
    index: usize,
    measure_from: Instant,
    schedule: Arc<SendSchedule>,
    progress: Progress,
) -> anyhow::Result<(Tally, SentLog)> {
    let samples = plan.samples.div_ceil(plan.threads);
    let mut tally = Tally::new(samples, measure_from);
    if plan.history.latency_samples {
        tally.latency_samples = Some(Vec::new());
    }
    let sent = match &plan.history.orders {
        OrderHistory::FromRun(earlier) => earlier.share_of_thread(index, plan.threads),
        OrderHistory::AsNeeded | OrderHistory::Keep => SentLog::default(),
    };
    let shared = Rc::new(ThreadState {
        plan: Arc::clone(plan),
        schedule,
        rng: RefCell::new(StdRng::seed_from_u64(plan.seed.wrapping_add(index as u64))),
        sent: RefCell::new(sent),
        feed_positions: RefCell::new(vec![None; plan.partners.len()]),
        tally: RefCell::new(tally),
        progress,
    });
    let clients = LocalSet::new();
    for _ in 0..plan.thread_share(plan.pace.connections(), index) {
        let client = PartnerClient::new(&plan.base_url, plan.partners[0].clone())?;
        clients.spawn_local(connection::run_connection(
            client.with_timeout(plan.timeout),
            Rc::clone(&shared),
        ));
    }
    let runtime = crate::runtime::new_runtime()?;
    runtime.block_on(clients);
    let Some(shared) = Rc::into_inner(shared) else {
        unreachable!("every connection task has completed and dropped its reference")
    };
    Ok((shared.tally.into_inner(), shared.sent.into_inner()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_even() {
        let credentials = Credentials::new("k", "s").unwrap();
        let traffic = Traffic::fixed(vec![bytes::Bytes::new()]);
        let pace = Pace::Closed { connections: 7 };
        let plan = LoadPlan {
            threads: 3,
            ..LoadPlan::single_partner(String::new(), credentials, traffic, pace, RunLength::Orders(1))
        };
        let shares: Vec<_> = (0..3).map(|index| plan.thread_share(7, index)).collect();
        assert_eq!(shares, [3, 2, 2]);
    }
}
