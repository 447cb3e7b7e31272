//! Result of a load run, and reasons for a run that could not start.

use std::time::Duration;

use vouchsafe_api_client::origin::UrlError;

use super::arrivals::ArrivalsError;
use crate::tally::Tally;
use crate::tally::run_history::SentOrders;

/// Result of a load run.
#[derive(Debug)]
pub struct RunResult {
    pub tally: Tally,
    /// From the end of the warm-up to the completion of the last order.
    pub measured_for: Duration,
    /// From the end of the warm-up to the completion of the last request of any kind.
    pub lasted: Duration,
    pub sent: SentOrders,
}

/// Reason for a run that could not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("cannot start a generator thread")]
    Thread(#[from] std::io::Error),
    #[error(transparent)]
    Arrivals(#[from] ArrivalsError),
}
