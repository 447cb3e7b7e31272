//! The peer: a reference implementation of the order API with one transaction per order and row locks, for comparison
//! with the service, and two reduced variants as bounds.
//!
//! | Mode | Processing | Purpose |
//! |---|---|---|
//! | `row-locks` | sells in one transaction per order | reference for the service |
//! | `floor` | writes five plain rows per order in batches, without verification | bound by database and HTTP |
//! | `signature-only` | checks the signature and responds | bound by HTTP |
//!
//! Rule: every feature of the service that the peer omits favours the peer. `load/README.md` lists the omissions.

mod batcher;
pub mod clock;
pub mod credentials;
mod draft;
mod floor;
mod headers;
mod http;
pub mod postgres;
pub mod process;
mod reads;
pub mod refusal;
pub mod request;
pub mod response;
mod row_locks;
pub mod schema;
pub mod serve;
pub mod signature;

use clap::ValueEnum;
use serde::Serialize;

pub use floor::{BATCH_SQL, FloorBatch, FloorOrder};

/// Processing of orders by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PeerMode {
    /// Sell in one transaction per order
    RowLocks,
    /// Write plain inserts in batches
    Floor,
    /// Respond without writing
    SignatureOnly,
}

/// Form of the database transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum TransactionShape {
    /// One statement per table, between BEGIN and COMMIT
    Statements,
    /// One call of a stored function
    Function,
}

impl TransactionShape {
    /// Command-line value.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Statements => "statements",
            Self::Function => "function",
        }
    }
}

impl PeerMode {
    /// Command-line value.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RowLocks => "row-locks",
            Self::Floor => "floor",
            Self::SignatureOnly => "signature-only",
        }
    }
}
