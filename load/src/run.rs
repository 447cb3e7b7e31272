//! How is the service loaded by one partner? A closed loop: every connection sends its next order when the last one was
//! answered.

use std::time::Duration;

use crate::arrivals::ArrivalsError;
use crate::load_run::{LoadPlan, SigningTime, run_load};
use crate::run_history::{RunHistory, SentOrders};
use crate::origin::UrlError;
use crate::progress::Progress;
use crate::scenario::Pace;
use crate::signer::Credentials;
use crate::tally::Tally;
use crate::traffic::Traffic;
use crate::workload::Workload;

/// When a run ends; the warm-up counts for neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLength {
    /// After this many orders were sent.
    Orders(u64),
    /// After this time; what is open then is still awaited.
    Time(Duration),
}

/// A run of one partner, decided beforehand.
#[derive(Clone, Debug)]
pub struct SinglePartnerRun {
    /// The service, such as `http://127.0.0.1:8080/api/v1`.
    pub base_url: String,
    /// The partner that orders.
    pub credentials: Credentials,
    pub workload: Workload,
    /// Connections, spread evenly over the threads.
    pub connections: usize,
    /// Threads of the generator, at least one.
    pub threads: usize,
    /// Time before anything is measured.
    pub warm_up: Duration,
    pub length: RunLength,
    /// Bound for connecting and for each exchange.
    pub timeout: Duration,
    /// Whole orders to keep for the audit, at most.
    pub samples: usize,
}

impl From<SinglePartnerRun> for LoadPlan {
    fn from(plan: SinglePartnerRun) -> Self {
        Self {
            base_url: plan.base_url,
            partners: vec![plan.credentials],
            traffic: Traffic::single(plan.workload),
            pace: Pace::Closed {
                connections: plan.connections,
            },
            signing: SigningTime::OnDemand,
            // Nothing is drawn: one partner orders one thing.
            seed: 0,
            threads: plan.threads,
            warm_up: plan.warm_up,
            length: plan.length,
            timeout: plan.timeout,
            samples: plan.samples,
            history: RunHistory::default(),
        }
    }
}

/// What a run saw, and when its measured part began.
#[derive(Debug)]
pub struct RunResult {
    /// What all clients saw.
    pub tally: Tally,
    /// From the end of the warm-up to the end of the last order.
    pub measured_for: Duration,
    /// From the end of the warm-up until the last request of any kind had ended.
    pub lasted: Duration,
    /// The orders that were sent, if they were kept.
    pub sent: SentOrders,
}

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The base URL is of another form.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A thread got no runtime.
    #[error("a generator thread could not start")]
    Thread(#[from] std::io::Error),
    /// The open loop has no arrivals.
    #[error(transparent)]
    Arrivals(#[from] ArrivalsError),
    /// Requests cannot be signed beforehand.
    #[error("requests cannot be signed beforehand: {0}")]
    Presigned(String),
}

/// Loads the service as planned; returns when the last order has ended.
///
/// # Errors
/// [`RunError`] if it could not start; what the service does wrong is in the tally.
pub fn run_single_partner(plan: SinglePartnerRun) -> Result<RunResult, RunError> {
    run_load(plan.into(), &Progress::default())
}
