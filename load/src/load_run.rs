//! How is the service loaded? By so many connections, in a closed loop or at times fixed beforehand, with what the traffic
//! draws, for as many partners as there are.
//!
//! Each thread runs its connections on a runtime of its own, a task each for the whole run, and keeps its own tally, so
//! nothing is shared on the way of an order but the gate and the count of what has ended.
//!
//! Rule: in an open loop a latency begins when the request was due, not when it left. Otherwise a service that stalls
//! would hold back the very requests that would have shown it.

mod connection;
mod request_queue;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::task::LocalSet;

use crate::arrivals::schedule;
use crate::pacing::{ArrivalCursor, SendWindow, SendSchedule};
use crate::run_history::{RunHistory, OrderHistory, SentOrders};
use crate::partner::PartnerClient;
use crate::progress::Progress;
use crate::run::{RunLength, RunResult, RunError};
use crate::scenario::Pace;
use crate::sent_orders::SentLog;
use crate::signer::Credentials;
use crate::tally::Tally;
use crate::traffic::Traffic;

use self::request_queue::RequestQueue;

/// Longest run whose requests are signed beforehand: a signature is good for 5 minutes (contract §2), and the last request
/// must not come so late that it is refused for its age.
const PRESIGNED_FOR: Duration = Duration::from_secs(240);

/// When requests are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningTime {
    /// Each when it is due, as partners do.
    OnDemand,
    /// All new orders before the run, so that the generator takes less of the machine.
    Presigned,
}

impl SigningTime {
    /// As a report says it.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::OnDemand => "signed on the fly",
            Self::Presigned => "signed beforehand",
        }
    }
}

/// A run, decided beforehand.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// The service, such as `http://127.0.0.1:8080/api/v1`.
    pub base_url: String,
    /// Who orders, at least one.
    pub partners: Vec<Credentials>,
    /// What is asked for.
    pub traffic: Traffic,
    /// When requests leave, over how many connections; these are spread evenly over the threads.
    pub pace: Pace,
    /// When they are signed.
    pub signing: SigningTime,
    /// What chance begins with.
    pub seed: u64,
    /// Threads of the generator, at least one.
    pub threads: usize,
    /// Time before anything is measured.
    pub warm_up: Duration,
    /// When to end. Of an open loop, [`Length::Orders`] counts requests of all kinds.
    pub length: RunLength,
    /// Bound for connecting and for each exchange.
    pub timeout: Duration,
    /// Whole orders to keep for the audit, at most.
    pub samples: usize,
    pub history: RunHistory,
}

impl LoadPlan {
    /// Whether orders must be remembered.
    fn has_to_remember_orders(&self) -> bool {
        self.traffic.needs_past_orders() || matches!(self.history.orders, OrderHistory::Keep)
    }

    /// What of `whole` the thread of this index has.
    fn share(&self, whole: usize, index: usize) -> usize {
        whole / self.threads + usize::from(index < whole % self.threads)
    }

    fn schedule(&self) -> Result<Option<Arc<Vec<Duration>>>, RunError> {
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

    /// How many requests each thread signs beforehand.
    fn presigned(&self, schedule: Option<&Vec<Duration>>) -> Result<Vec<usize>, RunError> {
        let refused = |why: String| Err(RunError::Presigned(why));
        let whole = match (self.signing, schedule, self.length) {
            (SigningTime::OnDemand, _, _) => 0,
            (_, Some(schedule), _) if schedule.last().is_some_and(|last| *last > PRESIGNED_FOR) => {
                return refused(format!("a signature is too old after {PRESIGNED_FOR:?}"));
            }
            (_, Some(schedule), _) => schedule.len(),
            (_, None, RunLength::Orders(orders)) if self.warm_up.is_zero() => {
                usize::try_from(orders).unwrap_or(usize::MAX)
            }
            _ => {
                return refused(
                    "a closed loop by time, or with a warm-up, sends nobody knows how many".to_owned(),
                );
            }
        };
        Ok((0..self.threads).map(|index| self.share(whole, index)).collect())
    }
}

/// Loads the service as planned; returns when the last request has ended.
///
/// # Errors
/// [`RunError`] if it could not start; what the service does wrong is in the tally.
pub fn run_load(drive: LoadPlan, progress: &Progress) -> Result<RunResult, RunError> {
    let schedule = drive.schedule()?;
    let presigned = drive.presigned(schedule.as_deref())?;
    let mut decks = Vec::with_capacity(drive.threads);
    for (index, count) in presigned.iter().enumerate() {
        decks.push(RequestQueue::new(&drive, chance(&drive, index), *count)?);
    }
    let start = Instant::now();
    let measure_from = start + drive.warm_up;
    progress.set_measurement_start(measure_from);
    let gate = Arc::new(SendWindow::new(measure_from, drive.length));
    let drive = Arc::new(drive);
    let threads: Vec<_> = decks
        .into_iter()
        .zip(presigned)
        .enumerate()
        .map(|(index, (deck, presigned))| {
            let turns = match &schedule {
                Some(schedule) => SendSchedule::Open(ArrivalCursor::new(
                    Arc::clone(schedule),
                    start,
                    measure_from,
                    index,
                    drive.threads,
                )),
                // A thread sends what it has signed, no more and no less.
                None if presigned > 0 => SendSchedule::Closed(Arc::new(SendWindow::new(
                    measure_from,
                    RunLength::Orders(presigned as u64),
                ))),
                None => SendSchedule::Closed(Arc::clone(&gate)),
            };
            let (drive, progress) = (Arc::clone(&drive), progress.clone());
            std::thread::spawn(move || thread(&drive, index, turns, deck, measure_from, progress))
        })
        .collect();
    let (mut sum, mut sent) = (Tally::new(drive.samples), Vec::new());
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

/// The chance of one thread.
fn chance(drive: &LoadPlan, index: usize) -> StdRng {
    StdRng::seed_from_u64(drive.seed.wrapping_add(index as u64))
}

/// What the connections of one thread share.
struct ThreadState {
    drive: Arc<LoadPlan>,
    turns: SendSchedule,
    deck: RefCell<RequestQueue>,
    sent: RefCell<SentLog>,
    /// How far each partner's events were read.
    feeds: RefCell<Vec<Option<String>>>,
    tally: RefCell<Tally>,
    progress: Progress,
}

fn thread(
    drive: &Arc<LoadPlan>,
    index: usize,
    turns: SendSchedule,
    deck: RequestQueue,
    measure_from: Instant,
    progress: Progress,
) -> Result<(Tally, SentLog), RunError> {
    let samples = drive.samples.div_ceil(drive.threads);
    let mut tally = Tally::new(samples).with_measurement_start(measure_from);
    if drive.history.latency_samples {
        tally.latency_samples = Some(Vec::new());
    }
    let sent = match &drive.history.orders {
        OrderHistory::FromRun(earlier) => earlier.part(index, drive.threads),
        OrderHistory::AsNeeded | OrderHistory::Keep => SentLog::default(),
    };
    let shared = Rc::new(ThreadState {
        drive: Arc::clone(drive),
        turns,
        deck: RefCell::new(deck),
        sent: RefCell::new(sent),
        feeds: RefCell::new(vec![None; drive.partners.len()]),
        tally: RefCell::new(tally),
        progress,
    });
    let clients = LocalSet::new();
    for _ in 0..drive.share(drive.pace.connections(), index) {
        let client = PartnerClient::new(&drive.base_url, drive.partners[0].clone())?;
        clients.spawn_local(connection::run_connection(
            client.with_timeout(drive.timeout),
            Rc::clone(&shared),
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(clients);
    let Some(shared) = Rc::into_inner(shared) else {
        unreachable!("every connection has ended and dropped its share")
    };
    Ok((shared.tally.into_inner(), shared.sent.into_inner()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Spacing;
    use crate::workload::Workload;

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
    fn a_share_is_even() {
        let plan = plan(Pace::Closed { connections: 7 }, RunLength::Orders(1), 0);
        let shares: Vec<_> = (0..3).map(|index| plan.share(7, index)).collect();
        assert_eq!(shares, [3, 2, 2]);
    }

    #[test]
    fn what_is_signed_beforehand_is_known_beforehand() {
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
            let schedule = plan.schedule().unwrap();
            let presigned = plan.presigned(schedule.as_deref());
            assert_eq!(presigned.ok(), expected, "{pace:?} {length:?} {warm_up_s}");
        }
    }
}
