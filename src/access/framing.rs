//! Where does one part of a signed message end and the next begin?
//!
//! The message is `timestamp ‖ method ‖ path ‖ body` with no separator, so the parts themselves must be unmistakable.
//! The rule: whatever is accepted here has exactly one reading. A timestamp is ten digits; a method is one of four
//! words and is ended by the `/` of the path; a path holds no `{`; a body is empty or begins with `{`. Without that, a
//! signature for one request would be good for another with bytes moved across a boundary.
//!
//! A path may be signed as received (`/api/v1/orders`) or without the prefix (`/orders`). Both stay unmistakable,
//! because the prefix must be there and must not be there twice.

/// What every path of the partner API begins with.
pub const API_PREFIX: &str = "/api/v1";

/// Digits of a timestamp: Unix seconds have ten of them from 2001 to 2286.
const TIMESTAMP_DIGITS: usize = 10;

/// Unix seconds as they are written in the header: exactly ten ASCII digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp([u8; TIMESTAMP_DIGITS]);

impl Timestamp {
    /// Reads the value of `X-Timestamp`; `None` if it is anything but ten digits.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits: [u8; TIMESTAMP_DIGITS] = text.try_into().ok()?;
        digits.iter().all(u8::is_ascii_digit).then_some(Self(digits))
    }

    /// The timestamp of this many seconds since 1970; `None` before 2001-09-09 and after 2286-11-20.
    #[must_use]
    pub fn from_unix_s(seconds: i64) -> Option<Self> {
        Self::parse(seconds.to_string().as_bytes())
    }

    /// Seconds since 1970. Ten digits always fit.
    #[must_use]
    pub fn unix_s(self) -> i64 {
        self.0
            .iter()
            .fold(0, |seconds, digit| seconds * 10 + i64::from(digit - b'0'))
    }

    /// The ten digits, as they are signed.
    #[must_use]
    pub const fn digits(&self) -> &[u8] {
        &self.0
    }
}

/// The part of a request that its signature covers besides the time, as it came over the wire.
#[derive(Clone, Copy)]
pub struct SignedRequest<'a> {
    pub method: &'a str,
    /// The path in origin form without a query, `/api/v1/orders`.
    pub path: &'a str,
    /// The body's bytes before any parsing.
    pub body: &'a [u8],
}

/// Which part of a request has no place in a signed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// Not one of GET, POST, PUT and DELETE in capitals.
    #[error("this method cannot be signed")]
    Method,
    /// Not `/api/v1/` and segments of `[A-Za-z0-9_.-]`.
    #[error(
        "this path cannot be signed: expected /api/v1/ and letters, digits, '_', '.', '-' between single '/'"
    )]
    Path,
    /// Neither empty nor a JSON object from its first byte on.
    #[error("the body must be empty or begin with '{{'")]
    Body,
}

/// A request and its time whose message has exactly one reading.
#[derive(Clone, Copy)]
pub struct CanonicalRequest<'a> {
    timestamp: Timestamp,
    request: SignedRequest<'a>,
    short_path: &'a str,
}

impl<'a> CanonicalRequest<'a> {
    /// Checks the parts.
    ///
    /// # Errors
    /// [`FramingError`] names the first part that could be mistaken.
    pub fn new(timestamp: Timestamp, request: SignedRequest<'a>) -> Result<Self, FramingError> {
        if !matches!(request.method, "GET" | "POST" | "PUT" | "DELETE") {
            return Err(FramingError::Method);
        }
        let short_path = short_path(request.path).ok_or(FramingError::Path)?;
        if !request.body.is_empty() && !request.body.starts_with(b"{") {
            return Err(FramingError::Body);
        }
        Ok(Self {
            timestamp,
            request,
            short_path,
        })
    }

    /// The parts of the message with the path as received.
    #[must_use]
    pub fn as_received(&self) -> [&[u8]; 4] {
        self.parts(self.request.path)
    }

    /// The parts of the message with the path behind [`API_PREFIX`].
    #[must_use]
    pub fn without_prefix(&self) -> [&[u8]; 4] {
        self.parts(self.short_path)
    }

    fn parts<'b>(&'b self, path: &'b str) -> [&'b [u8]; 4] {
        [
            self.timestamp.digits(),
            self.request.method.as_bytes(),
            path.as_bytes(),
            self.request.body,
        ]
    }
}

/// The path behind the prefix, where the whole path may be signed.
fn short_path(path: &str) -> Option<&str> {
    let short = path.strip_prefix(API_PREFIX)?;
    let segments = short.strip_prefix('/')?;
    // With the prefix twice, the short form of one path would be another path in full.
    if short.starts_with("/api/v1/") || short == API_PREFIX {
        return None;
    }
    segments.split('/').all(is_plain_segment).then_some(short)
}

/// No empty segment (`//`, a slash at the end), none that a proxy may resolve (`.`, `..`), no escape, no `{`.
fn is_plain_segment(segment: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    !matches!(segment, "" | "." | "..") && segment.bytes().all(plain)
}

#[cfg(test)]
mod tests;
