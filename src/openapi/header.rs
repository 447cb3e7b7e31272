//! Which headers do answers have?

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, header};

/// A header of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// `X-Trace-ID`, on every answer.
    TraceId,
    /// `Location` of what was made.
    Location,
    /// `Idempotent-Replayed`, on an answer that was given before.
    Replayed,
    /// `Retry-After`, where every error of the status has it.
    RetryAfter,
    /// `Retry-After`, where some errors of the status have it.
    MaybeRetryAfter,
    /// `RateLimit-Policy`.
    RateLimitPolicy,
    /// `RateLimit`.
    RateLimit,
    /// `RateLimit-Policy`, where the caller may not be known.
    MaybeRateLimitPolicy,
    /// `RateLimit`, where the caller may not be known.
    MaybeRateLimit,
    /// `ETag`.
    EntityTag,
    /// `Preference-Applied`.
    PreferenceApplied,
}

/// What an answer of this status says of the limit of its class. Who is not known, or came too early to be looked at, is
/// told nothing.
pub(super) const fn limits(status: u16) -> &'static [Header] {
    match status {
        200..=399 | 402 | 404 | 409 | 422 => &[Header::RateLimitPolicy, Header::RateLimit],
        401 => &[],
        _ => &[Header::MaybeRateLimitPolicy, Header::MaybeRateLimit],
    }
}

impl Header {
    const ALL: [Self; 11] = [
        Self::TraceId,
        Self::Location,
        Self::Replayed,
        Self::RetryAfter,
        Self::MaybeRetryAfter,
        Self::RateLimitPolicy,
        Self::RateLimit,
        Self::MaybeRateLimitPolicy,
        Self::MaybeRateLimit,
        Self::EntityTag,
        Self::PreferenceApplied,
    ];

    /// Its name on the wire.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::TraceId => "X-Trace-ID",
            Self::Location => "Location",
            Self::Replayed => "Idempotent-Replayed",
            Self::RetryAfter | Self::MaybeRetryAfter => "Retry-After",
            Self::RateLimitPolicy | Self::MaybeRateLimitPolicy => "RateLimit-Policy",
            Self::RateLimit | Self::MaybeRateLimit => "RateLimit",
            Self::EntityTag => "ETag",
            Self::PreferenceApplied => "Preference-Applied",
        }
    }

    /// A reference to its description.
    pub(crate) fn reference(self) -> Ref {
        Ref::new(format!("#/components/headers/{self:?}"))
    }

    /// The descriptions of all of them, by name.
    pub(crate) fn components() -> BTreeMap<String, RefOr<header::Header>> {
        let described = |header: Self| (format!("{header:?}"), RefOr::T(header.described()));
        Self::ALL.map(described).into_iter().collect()
    }

    /// Whether every answer that names it has it.
    const fn is_required(self) -> bool {
        matches!(
            self,
            Self::TraceId
                | Self::Location
                | Self::RetryAfter
                | Self::RateLimitPolicy
                | Self::RateLimit
                | Self::EntityTag
        )
    }

    fn described(self) -> header::Header {
        let mut header = HeaderBuilder::new()
            .description(Some(self.description()))
            .schema(Some(self.schema()))
            .build();
        // `required` is a field of a header that the library's type does not have.
        header.extensions = self
            .is_required()
            .then(|| Extensions::from_iter([("required", true)]));
        header
    }

    const fn description(self) -> &'static str {
        match self {
            Self::TraceId => {
                "The W3C trace id of the request: that of its `traceparent`, or a new one. Quote it when you ask for help."
            }
            Self::Location => "The path of what was made.",
            Self::Replayed => {
                "`true` on an answer that was given to this key before; nothing was executed again."
            }
            Self::RetryAfter => "After how many seconds to send the same request again.",
            Self::MaybeRetryAfter => {
                "After how many seconds to send the same request again, where that may help."
            }
            Self::RateLimitPolicy | Self::MaybeRateLimitPolicy => {
                "The limit of the request's class: `q` requests in any `w` seconds."
            }
            Self::RateLimit | Self::MaybeRateLimit => {
                "What is left of the limit: `r` requests now, more in `t` seconds."
            }
            Self::EntityTag => {
                "Names these very bytes: send it as `If-None-Match`, and nothing is sent again while they are the same."
            }
            Self::PreferenceApplied => "`wait=N`, where the request's `Prefer: wait=N` was granted.",
        }
    }

    fn schema(self) -> Object {
        let text = ObjectBuilder::new().schema_type(Type::String);
        match self {
            Self::TraceId => text
                .pattern(Some("^[0-9a-f]{32}$"))
                .examples(["4bf92f3577b34da6a3ce929d0e0e4736"])
                .build(),
            Self::Location => text.pattern(Some("^/")).build(),
            Self::Replayed => text.enum_values(Some(["true"])).build(),
            Self::RetryAfter | Self::MaybeRetryAfter => ObjectBuilder::new()
                .schema_type(Type::Integer)
                .minimum(Some(0))
                .examples([json!(1)])
                .build(),
            Self::RateLimitPolicy | Self::MaybeRateLimitPolicy => {
                text.examples([r#""orders";q=100;w=60"#]).build()
            }
            Self::RateLimit | Self::MaybeRateLimit => text.examples([r#""orders";r=87;t=42"#]).build(),
            Self::EntityTag => text.pattern(Some("^\"[^\"]+\"$")).build(),
            Self::PreferenceApplied => text.pattern(Some("^wait=[0-9]+$")).build(),
        }
    }
}
