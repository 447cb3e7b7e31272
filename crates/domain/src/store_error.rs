//! Errors of the engine's store, which the database reports and the engine handles.

/// The store is unavailable; as far as the caller knows nothing has changed. Retry later.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store is unavailable: {0}; try again")]
pub struct Unavailable(pub String);

/// Why a batch has no verdicts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Not written because of its content: writing it again fails again.
    #[error("the batch was rejected: {0}")]
    Poisoned(String),
    /// Not written because a record in it waited too long for a lock, or ran into a deadlock or serialization
    /// failure. The other records may be written without it.
    #[error("the batch conflicted with another transaction: {0}")]
    Contended(String),
    /// Not written because of a transient condition (out of resources, a standby server). Writing it again
    /// may succeed.
    #[error("the batch could not be written now: {0}")]
    Busy(String),
    /// Not written: the lane has a newer generation.
    #[error("the lane was fenced off")]
    Fenced,
    /// The outcome is not known yet.
    #[error("the outcome of the batch is unknown: {0}")]
    Unknown(String),
}
