//! Idempotency keys and the responses stored under them.

use bytes::Bytes;
use uuid::Uuid;

/// Identifies an idempotency key: the first 16 bytes of SHA-256 over partner, endpoint and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
pub struct KeyHash(pub Uuid);

/// Keyed hash of method, path and raw body; detects a key that is reused with a different request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// The status and body of an HTTP response.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub body: Bytes,
}

impl std::fmt::Debug for Response {
    /// Omits the body: bodies stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Response({}, {} bytes)", self.status, self.body.len())
    }
}

/// The response stored under a key, and the fingerprint of the request that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    pub fingerprint: Fingerprint,
    pub response: Response,
}

/// How long a response stays under its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retention {
    /// 24 hours from the commit: the `Idempotency-Key` of a partner (spec part 8).
    Day,
    /// Forever: the reference of a top-up or an adjustment, which must never be posted twice.
    Forever,
}
