//! What does the service compete with? A peer that speaks the same wire, with one transaction per order and row locks, as
//! a careful team would write it; and two programs that do less, between which its figures lie.
//!
//! | Mode | What it does | What it shows |
//! |---|---|---|
//! | `row-locks` | sells, in one transaction per order | what the service is compared with |
//! | `floor` | writes five plain rows an order in batches, and verifies nothing | what the database and the wire allow |
//! | `signature-only` | checks the signature and answers | what the wire alone allows |
//!
//! Rule: wherever the peer leaves out what the service does, it gains by it, and the README of this package says so.

pub mod response;
mod batcher;
pub(crate) mod clock;
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
mod row_locks;
pub mod schema;
pub mod serve;
pub mod signature;

use clap::ValueEnum;
use serde::Serialize;

pub use floor::{BATCH_SQL, FloorBatch, FloorOrder};

/// What a peer does with an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PeerMode {
    /// Sells it, in one transaction of its own.
    RowLocks,
    /// Writes it in a batch of plain inserts.
    Floor,
    /// Answers it.
    SignatureOnly,
}

/// How a transaction is put to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum TransactionShape {
    /// A statement a table, between BEGIN and COMMIT.
    Statements,
    /// One call of a stored function.
    Function,
}

impl TransactionShape {
    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Statements => "statements",
            Self::Function => "function",
        }
    }
}

impl PeerMode {
    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RowLocks => "row-locks",
            Self::Floor => "floor",
            Self::SignatureOnly => "signature-only",
        }
    }
}
