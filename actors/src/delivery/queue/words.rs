//! What a queue is handed and what it hands back.

use crate::domain::delivery::{Health, Mark, Waiting};

/// A delivery as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    pub waiting: Waiting,
    /// Whether an earlier one of its order has a row, and waits.
    pub behind: bool,
}

/// What is to be read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Rows that are due, and up to so many events past this number; rows that lie among them in their places.
    Due {
        after: i64,
        most: usize,
    },
    /// The oldest that wait, due or not: rows up to this number, then events and rows past it.
    Oldest {
        after: i64,
    },
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Every event up to this number is taken, in a row, or not asked for.
    pub cursor: i64,
    /// How the endpoint is doing.
    pub health: Health,
    /// Deliveries that have, or get, a row.
    pub marks: Vec<Mark>,
    /// The endpoint takes deliveries again: rows that wait for their next attempt are due.
    pub recovered: bool,
}
