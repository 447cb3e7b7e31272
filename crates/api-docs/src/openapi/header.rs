//! Response headers in OpenAPI documents.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, header};

/// Declares the headers: `Component = "name" presence, description, schema;`.
macro_rules! response_headers {
    ($($(#[doc = $doc:literal])* $header:ident = $name:literal $presence:ident, $description:expr, $schema:expr;)+) => {
        /// A response header. Variant names are the component names in the document.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ResponseHeader {
            $($(#[doc = $doc])* $header,)+
        }

        impl ResponseHeader {
            /// The name on the wire.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$header => $name,)+
                }
            }

            /// The components of all headers, by name.
            pub fn components() -> BTreeMap<String, RefOr<header::Header>> {
                [$((stringify!($header).to_owned(), build(Presence::$presence, $description, $schema)),)+].into()
            }
        }
    };
}

/// Whether every response that documents the header has it.
#[derive(PartialEq, Eq)]
enum Presence {
    Always,
    Sometimes,
}

const RETRY_AFTER: &str = "Seconds to wait before you retry the same request.";
const POLICY: &str = "Rate limit of the request's class: `q` requests in any `w` seconds.";
const QUOTA: &str = "Remaining quota: `r` requests now, more in `t` seconds.";

response_headers! {
    TraceId = "X-Trace-ID" Always,
        "W3C trace id of the request: from its `traceparent`, or generated. Quote it when you contact support.",
        text().pattern(Some("^[0-9a-f]{32}$")).examples(["4bf92f3577b34da6a3ce929d0e0e4736"]);
    Location = "Location" Always, "Path of the created resource.", text().pattern(Some("^/"));
    /// A stored response has it.
    Replayed = "Idempotent-Replayed" Sometimes,
        "`true` if this is the stored response of an earlier request with the same key. Nothing was executed again.",
        text().enum_values(Some(["true"]));
    /// Every error of the status has it.
    RetryAfter = "Retry-After" Always, RETRY_AFTER, seconds();
    /// Some errors of the status have it.
    MaybeRetryAfter = "Retry-After" Sometimes, format!("{RETRY_AFTER} Absent if a retry does not help."), seconds();
    RateLimitPolicy = "RateLimit-Policy" Always, POLICY, text().examples([r#""orders";q=100;w=60"#]);
    RateLimit = "RateLimit" Always, QUOTA, text().examples([r#""orders";r=87;t=42"#]);
    /// On a response that may precede authentication.
    MaybeRateLimitPolicy = "RateLimit-Policy" Sometimes, POLICY, text().examples([r#""orders";q=100;w=60"#]);
    /// On a response that may precede authentication.
    MaybeRateLimit = "RateLimit" Sometimes, QUOTA, text().examples([r#""orders";r=87;t=42"#]);
    Challenge = "WWW-Authenticate" Always, "How to authenticate: with `X-API-Key` and `X-API-Secret`.",
        text().examples([r#"ApiKey realm="Vouchsafe partner API""#]);
    EntityTag = "ETag" Always,
        "Version of the response body. Send it as `If-None-Match` to get 304 while the body is unchanged.",
        text().pattern(Some("^(W/)?\"[^\"]+\"$"));
    ContentLanguage = "Content-Language" Sometimes, "Languages of the texts in the response.",
        text().examples(["de, en"]);
    PreferenceApplied = "Preference-Applied" Sometimes,
        "`wait=N` or `wait=N; until=closed` if the server applied the request's `Prefer`.",
        text().pattern(Some("^wait=[0-9]+(; until=closed)?$"));
}

impl ResponseHeader {
    /// A reference to the header's component.
    pub fn reference(self) -> Ref {
        Ref::new(format!("#/components/headers/{self:?}"))
    }
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn seconds() -> ObjectBuilder {
    let seconds = ObjectBuilder::new().schema_type(Type::Integer);
    seconds.minimum(Some(0)).examples([json!(1)])
}

fn build(presence: Presence, description: impl Into<String>, schema: ObjectBuilder) -> RefOr<header::Header> {
    let mut header = HeaderBuilder::new()
        .description(Some(description))
        .schema(Some(schema))
        .build();
    // utoipa's header type lacks the field `required`.
    header.extensions = (presence == Presence::Always).then(|| Extensions::from_iter([("required", true)]));
    RefOr::T(header)
}

/// The rate-limit headers of a response with this status. Unauthenticated callers get none, nor do requests
/// that are rejected before the rate limit is checked.
pub(super) const fn rate_limit_headers(status: u16) -> &'static [ResponseHeader] {
    match status {
        200..=399 | 402 | 404 | 409 | 422 => &[ResponseHeader::RateLimitPolicy, ResponseHeader::RateLimit],
        401 => &[ResponseHeader::Challenge],
        _ => &[
            ResponseHeader::MaybeRateLimitPolicy,
            ResponseHeader::MaybeRateLimit,
        ],
    }
}
