//! What is kept under an idempotency key: the answer's status and its very bytes.

use bytes::Bytes;
use uuid::Uuid;

/// Names a key of one partner at one endpoint: the first 16 bytes of a SHA-256 over all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyHash(pub Uuid);

/// Tells one request from another: SHA-256 of method, path and raw body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// An answer, ready to be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Bytes,
}

impl std::fmt::Debug for Answer {
    /// Without the body: bodies stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answer({}, {} bytes)", self.status, self.body.len())
    }
}

/// An answer that was kept, with the fingerprint of the request it was given to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAnswer {
    /// Of the request that was answered.
    pub fingerprint: Fingerprint,
    /// What it was answered.
    pub answer: Answer,
}

/// For how long an answer is kept under its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Keep {
    /// 24 hours from the commit: the Idempotency-Key of a partner (spec part 8).
    Day,
    /// For ever: the reference of a top-up or an adjustment, which may never be booked twice.
    Forever,
}
