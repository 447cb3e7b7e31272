//! Unambiguous framing of the signed message `timestamp ‖ method ‖ path ‖ body`.
//!
//! The message has no separators, so [`CanonicalRequest`] accepts only parts that can be split in one way:
//! ten digits of timestamp, one of four methods followed by the `/` of the path, a path without `{`, and a
//! body that is empty or begins with `{`. Otherwise a signature would also be valid for another request with
//! bytes moved across a boundary.
//!
//! A path may be signed as received (`/api/v1/orders`) or without the prefix (`/orders`). Both stay
//! unambiguous because the prefix is required and must not occur twice.

/// The prefix of every path of the partner API.
pub const API_PREFIX: &str = "/api/v1";

/// Unix seconds have ten digits from 2001 to 2286.
const TIMESTAMP_DIGITS: usize = 10;

/// Unix seconds as exactly ten ASCII digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp([u8; TIMESTAMP_DIGITS]);

impl Timestamp {
    /// Parses the value of `X-Timestamp`; `None` unless it is ten digits.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits: [u8; TIMESTAMP_DIGITS] = text.try_into().ok()?;
        digits.iter().all(u8::is_ascii_digit).then_some(Self(digits))
    }

    /// `None` before 2001-09-09 and after 2286-11-20.
    #[must_use]
    pub fn from_unix_s(seconds: i64) -> Option<Self> {
        Self::parse(seconds.to_string().as_bytes())
    }

    /// Seconds since 1970.
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

/// The signed parts of a request besides the timestamp, as received.
#[derive(Clone, Copy)]
pub struct SignedRequest<'a> {
    pub method: &'a str,
    /// The path in origin form without the query, such as `/api/v1/orders`.
    pub path: &'a str,
    /// The unparsed body.
    pub body: &'a [u8],
}

/// The part of a request that cannot be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// Not GET, POST, PUT or DELETE in capitals.
    #[error("this method cannot be signed")]
    Method,
    /// Not `/api/v1/` followed by segments of `[A-Za-z0-9_.-]`.
    #[error(
        "this path cannot be signed: expected /api/v1/ and letters, digits, '_', '.', '-' between single '/'"
    )]
    Path,
    /// Neither empty nor a JSON object from the first byte.
    #[error("the body must be empty or begin with '{{'")]
    Body,
}

/// A timestamp and request whose message can be split in one way only.
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
    /// [`FramingError`] names the first ambiguous part.
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

    /// The message parts with the path as received.
    #[must_use]
    pub fn as_received(&self) -> [&[u8]; 4] {
        self.parts(self.request.path)
    }

    /// The message parts with the path after [`API_PREFIX`].
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

/// The path after the prefix, or `None` if the path cannot be signed.
fn short_path(path: &str) -> Option<&str> {
    let short = path.strip_prefix(API_PREFIX)?;
    let segments = short.strip_prefix('/')?;
    // With the prefix twice, the short form of one path would be the full form of another.
    if short.starts_with("/api/v1/") || short == API_PREFIX {
        return None;
    }
    segments.split('/').all(is_plain_segment).then_some(short)
}

/// Rejects empty segments (`//`, trailing slash), those that a proxy may resolve (`.`, `..`), escapes and
/// `{`.
fn is_plain_segment(segment: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    !matches!(segment, "" | "." | "..") && segment.bytes().all(plain)
}

#[cfg(test)]
mod tests;
