//! Result of a load run.

use std::time::Duration;

use crate::tally::Tally;
use crate::tally::open_loop::OfferedLoad;
use crate::tally::run_history::SentOrders;

/// Result of a load run.
#[derive(Debug)]
pub struct RunResult {
    pub tally: Tally,
    /// From the end of the warm-up to the end of sending: the planned time, or the completion of the last
    /// order.
    pub loaded_for: Duration,
    /// From the end of the warm-up to the completion of the last order.
    pub measured_for: Duration,
    /// From the end of the warm-up to the completion of the last request of any kind.
    pub lasted: Duration,
    /// `None` for a closed loop.
    pub offered: Option<OfferedLoad>,
    pub sent: SentOrders,
}
