//! Load driver: closed or open loop over a number of connections, for any number of partners.
//!
//! Each thread runs its connections as tasks on a separate runtime and keeps its own tally. An order touches no
//! shared state but the send window and the progress counters.
//!
//! Rule: in an open loop, latency begins when the request was due, not when it left. Otherwise a stalled service
//! would hold back the requests that show the stall (coordinated omission).

mod connection;
mod request_queue;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::task::LocalSet;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;

use self::request_queue::RequestQueue;
use super::arrivals::schedule;
use super::progress::Progress;
use super::result::{RunError, RunResult};
use super::send_schedule::{ArrivalCursor, SendSchedule, SendWindow};
use crate::tally::Tally;
use crate::tally::run_history::{OrderHistory, RunHistory, SentOrders};
use crate::tally::sent_orders::SentLog;
use crate::traffic::generator::Traffic;
use crate::traffic::pace::{Pace, RunLength};

/// A signature is valid for 5 minutes (contract §2). The limit leaves a margin for the last request.
const MAX_PRESIGNED_RUN: Duration = Duration::from_secs(240);

/// When the generator signs requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningTime {
    /// Each request when it is due, as partners do.
    OnDemand,
    /// All new orders before the run; the generator then needs less CPU.
    Presigned,
}

impl SigningTime {
    /// Text for reports.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::OnDemand => "signed on the fly",
            Self::Presigned => "signed beforehand",
        }
    }
}

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
    pub signing: SigningTime,
    /// Seed of the random number generators.
    pub seed: u64,
    /// Generator threads, at least one.
    pub threads: usize,
    pub warm_up: Duration,
    /// In an open loop, [`RunLength::Orders`] counts requests of all kinds.
    pub length: RunLength,
    /// Timeout for connecting and for each exchange.
    pub timeout: Duration,
    /// Maximum number of orders with request and response for the audit.
    pub samples: usize,
    pub history: RunHistory,
}

impl LoadPlan {
    fn has_to_remember_orders(&self) -> bool {
        self.traffic.needs_past_orders() || matches!(self.history.orders, OrderHistory::Keep)
    }

    /// The share of one thread in `whole`.
    fn thread_share(&self, total: usize, index: usize) -> usize {
        total / self.threads + usize::from(index < total % self.threads)
    }

    fn arrival_schedule(&self) -> Result<Option<Arc<Vec<Duration>>>, RunError> {
        match self.pace {
            Pace::Closed { .. } => Ok(None),
            Pace::Open {
                per_second, spacing, ..
            } => {
                let times = schedule(per_second, spacing, self.warm_up, self.length, self.seed)?;
                Ok(Some(Arc::new(times)))
            }
        }
    }

    /// Number of requests that each thread signs before the run.
    fn presigned_counts(&self, schedule: Option<&Vec<Duration>>) -> Result<Vec<usize>, RunError> {
        let invalid = |reason: String| Err(RunError::Presigned(reason));
        let total = match (self.signing, schedule, self.length) {
            (SigningTime::OnDemand, _, _) => 0,
            (_, Some(schedule), _) if schedule.last().is_some_and(|last| *last > MAX_PRESIGNED_RUN) => {
                return invalid(format!(
                    "signatures expire; the run must end within {MAX_PRESIGNED_RUN:?}"
                ));
            }
            (_, Some(schedule), _) => schedule.len(),
            (_, None, RunLength::Orders(orders)) if self.warm_up.is_zero() => {
                usize::try_from(orders).unwrap_or(usize::MAX)
            }
            _ => {
                return invalid("a closed loop needs a fixed number of orders and no warm-up".to_owned());
            }
        };
        Ok((0..self.threads)
            .map(|index| self.thread_share(total, index))
            .collect())
    }
}

/// Loads the service; returns when the last request has completed.
///
/// # Errors
/// [`RunError`] if the run could not start. Errors of the service are in the tally.
pub fn run_load(plan: LoadPlan, progress: &Progress) -> Result<RunResult, RunError> {
    let schedule = plan.arrival_schedule()?;
    let presigned = plan.presigned_counts(schedule.as_deref())?;
    let mut queues = Vec::with_capacity(plan.threads);
    for (index, count) in presigned.iter().enumerate() {
        queues.push(RequestQueue::new(&plan, thread_rng(&plan, index), *count)?);
    }
    let start = Instant::now();
    let measure_from = start + plan.warm_up;
    progress.set_measurement_start(measure_from);
    let window = Arc::new(SendWindow::new(measure_from, plan.length));
    let plan = Arc::new(plan);
    let threads: Vec<_> = queues
        .into_iter()
        .zip(presigned)
        .enumerate()
        .map(|(index, (queue, presigned))| {
            let slots = match &schedule {
                Some(schedule) => SendSchedule::Open(ArrivalCursor::new(
                    Arc::clone(schedule),
                    start,
                    measure_from,
                    index,
                    plan.threads,
                )),
                // A thread sends exactly the requests that it signed.
                None if presigned > 0 => SendSchedule::Closed(Arc::new(SendWindow::new(
                    measure_from,
                    RunLength::Orders(presigned as u64),
                ))),
                None => SendSchedule::Closed(Arc::clone(&window)),
            };
            let (plan, progress) = (Arc::clone(&plan), progress.clone());
            std::thread::spawn(move || run_thread(&plan, index, slots, queue, measure_from, progress))
        })
        .collect();
    let (mut sum, mut sent) = (Tally::new(plan.samples), Vec::new());
    for thread in threads {
        let (tally, log) = thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        sum.merge(tally);
        sent.push(log);
    }
    let lasted = Instant::now().saturating_duration_since(measure_from);
    let measured_for = sum.last_end.map_or(Duration::ZERO, |end| end - measure_from);
    Ok(RunResult {
        tally: sum,
        measured_for,
        lasted,
        sent: SentOrders::from_logs(sent),
    })
}

fn thread_rng(plan: &LoadPlan, index: usize) -> StdRng {
    StdRng::seed_from_u64(plan.seed.wrapping_add(index as u64))
}

/// State that the connections of one thread share.
struct ThreadState {
    plan: Arc<LoadPlan>,
    slots: SendSchedule,
    queue: RefCell<RequestQueue>,
    sent: RefCell<SentLog>,
    /// Last event id read, by partner.
    feed_positions: RefCell<Vec<Option<String>>>,
    tally: RefCell<Tally>,
    progress: Progress,
}

fn run_thread(
    plan: &Arc<LoadPlan>,
    index: usize,
    slots: SendSchedule,
    queue: RequestQueue,
    measure_from: Instant,
    progress: Progress,
) -> Result<(Tally, SentLog), RunError> {
    let samples = plan.samples.div_ceil(plan.threads);
    let mut tally = Tally::new(samples).with_measurement_start(measure_from);
    if plan.history.latency_samples {
        tally.latency_samples = Some(Vec::new());
    }
    let sent = match &plan.history.orders {
        OrderHistory::FromRun(earlier) => earlier.share_of_thread(index, plan.threads),
        OrderHistory::AsNeeded | OrderHistory::Keep => SentLog::default(),
    };
    let shared = Rc::new(ThreadState {
        plan: Arc::clone(plan),
        slots,
        queue: RefCell::new(queue),
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(clients);
    let Some(shared) = Rc::into_inner(shared) else {
        unreachable!("every connection task has completed and dropped its reference")
    };
    Ok((shared.tally.into_inner(), shared.sent.into_inner()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::pace::Spacing;
    use crate::traffic::workload::Workload;

    fn plan(pace: Pace, length: RunLength, warm_up_s: u64) -> LoadPlan {
        LoadPlan {
            base_url: "http://127.0.0.1:1/api/v1".into(),
            partners: vec![Credentials::new("k", "s").unwrap()],
            traffic: Traffic::single(Workload::one_sku("p", "25", 1).unwrap()),
            pace,
            signing: SigningTime::Presigned,
            seed: 0,
            threads: 3,
            warm_up: Duration::from_secs(warm_up_s),
            length,
            timeout: Duration::from_secs(1),
            samples: 0,
            history: RunHistory::default(),
        }
    }

    #[test]
    fn shares_are_even() {
        let plan = plan(Pace::Closed { connections: 7 }, RunLength::Orders(1), 0);
        let shares: Vec<_> = (0..3).map(|index| plan.thread_share(7, index)).collect();
        assert_eq!(shares, [3, 2, 2]);
    }

    #[test]
    fn presigned_counts_need_a_known_number_of_requests() {
        let closed = Pace::Closed { connections: 1 };
        let open = Pace::Open {
            connections: 1,
            per_second: 10.0,
            spacing: Spacing::Constant,
        };
        let time = |seconds| RunLength::Time(Duration::from_secs(seconds));
        for (pace, length, warm_up_s, expected) in [
            (closed, RunLength::Orders(7), 0, Some(vec![3, 2, 2])),
            (closed, RunLength::Orders(7), 1, None),
            (closed, time(1), 0, None),
            (open, time(1), 1, Some(vec![7, 7, 6])),
            (open, time(241), 0, None),
        ] {
            let plan = plan(pace, length, warm_up_s);
            let schedule = plan.arrival_schedule().unwrap();
            let presigned = plan.presigned_counts(schedule.as_deref());
            assert_eq!(presigned.ok(), expected, "{pace:?} {length:?} {warm_up_s}");
        }
    }
}
