//! Closed loop of a single partner.

use std::time::Duration;

use vouchsafe_api_client::signer::Credentials;

use super::driver::{LoadPlan, SigningTime, run_load};
use super::progress::Progress;
use super::result::{RunError, RunResult};
use crate::tally::run_history::RunHistory;
use crate::traffic::generator::Traffic;
use crate::traffic::pace::{Pace, RunLength};
use crate::traffic::workload::Workload;

/// Configuration of a closed loop of one partner.
#[derive(Clone, Debug)]
pub struct SinglePartnerRun {
    /// Base URL, such as `http://127.0.0.1:8080/api/v1`.
    pub base_url: String,
    pub credentials: Credentials,
    pub workload: Workload,
    /// The threads share the connections evenly.
    pub connections: usize,
    /// Generator threads, at least one.
    pub threads: usize,
    pub warm_up: Duration,
    pub length: RunLength,
    /// Timeout for connecting and for each exchange.
    pub timeout: Duration,
    /// Maximum number of orders with request and response for the audit.
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
            // One partner with one fixed order needs no randomness.
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

/// Loads the service; returns when the last request has completed.
///
/// # Errors
/// [`RunError`] if the run could not start. Errors of the service are in the tally.
pub fn run_single_partner(plan: SinglePartnerRun) -> Result<RunResult, RunError> {
    run_load(plan.into(), &Progress::default())
}
