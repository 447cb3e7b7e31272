//! The peer: a reference implementation of the order API with one transaction per order and row locks, for
//! comparison with the service, and a reduced variant as a bound.
//!
//! | Mode | Processing | Purpose |
//! |---|---|---|
//! | `row-locks` | sells in one transaction per order | reference for the service |
//! | `floor` | writes five plain rows per order in batches, without verification | bound by database and HTTP |
//!
//! Rule: every feature of the service that the peer omits favours the peer. `load/README.md` lists the
//! omissions.

mod authentication;
mod batcher;
mod http;
mod order;
mod outbox;
pub mod process;
mod reads;
mod refusal;
mod row_locks;
pub mod schema;
pub mod serve;
mod stored_responses;

use clap::ValueEnum;

/// Processing of orders by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PeerMode {
    /// Sell in one transaction per order
    RowLocks,
    /// Write plain inserts in batches
    Floor,
}

impl PeerMode {
    /// Command-line value.
    #[must_use]
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}
