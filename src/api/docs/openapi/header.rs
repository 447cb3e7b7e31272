//! Response headers in OpenAPI documents.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, header};

/// A response header. Variant names are the component names in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseHeader {
    TraceId,
    Location,
    /// `Idempotent-Replayed`, on a stored response.
    Replayed,
    /// `Retry-After`, if every error of the status has it.
    RetryAfter,
    /// `Retry-After`, if some errors of the status have it.
    MaybeRetryAfter,
    RateLimitPolicy,
    RateLimit,
    /// `RateLimit-Policy`, on a response that may precede authentication.
    MaybeRateLimitPolicy,
    /// `RateLimit`, on a response that may precede authentication.
    MaybeRateLimit,
    EntityTag,
    PreferenceApplied,
}

/// The rate-limit headers of a response with this status. Unauthenticated callers get none, nor do requests that are rejected
/// before the rate limit is checked.
pub(super) const fn rate_limit_headers(status: u16) -> &'static [ResponseHeader] {
    match status {
        200..=399 | 402 | 404 | 409 | 422 => &[ResponseHeader::RateLimitPolicy, ResponseHeader::RateLimit],
        401 => &[],
        _ => &[
            ResponseHeader::MaybeRateLimitPolicy,
            ResponseHeader::MaybeRateLimit,
        ],
    }
}

impl ResponseHeader {
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

    /// The name on the wire.
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

    /// A reference to the header's component.
    pub(crate) fn reference(self) -> Ref {
        Ref::new(format!("#/components/headers/{self:?}"))
    }

    /// The components of all headers, by name.
    pub(crate) fn components() -> BTreeMap<String, RefOr<header::Header>> {
        let described = |header: Self| (format!("{header:?}"), RefOr::T(header.build()));
        Self::ALL.map(described).into_iter().collect()
    }

    /// Whether every response that documents the header has it.
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

    fn build(self) -> header::Header {
        let mut header = HeaderBuilder::new()
            .description(Some(self.description()))
            .schema(Some(self.schema()))
            .build();
        // utoipa's header type lacks the field `required`.
        header.extensions = self
            .is_required()
            .then(|| Extensions::from_iter([("required", true)]));
        header
    }

    const fn description(self) -> &'static str {
        match self {
            Self::TraceId => {
                "W3C trace id of the request: from its `traceparent`, or generated. Quote it when you contact support."
            }
            Self::Location => "Path of the created resource.",
            Self::Replayed => {
                "`true` if this is the stored response of an earlier request with the same key. Nothing was executed again."
            }
            Self::RetryAfter => "Seconds to wait before you retry the same request.",
            Self::MaybeRetryAfter => {
                "Seconds to wait before you retry the same request. Absent if a retry does not help."
            }
            Self::RateLimitPolicy | Self::MaybeRateLimitPolicy => {
                "Rate limit of the request's class: `q` requests in any `w` seconds."
            }
            Self::RateLimit | Self::MaybeRateLimit => {
                "Remaining quota: `r` requests now, more in `t` seconds."
            }
            Self::EntityTag => {
                "Version of the response body. Send it as `If-None-Match` to get 304 while the body is unchanged."
            }
            Self::PreferenceApplied => "`wait=N` if the server applied the request's `Prefer: wait=N`.",
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
