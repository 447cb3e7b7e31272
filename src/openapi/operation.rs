//! What is one operation: its request, its outcomes, its errors?
//!
//! The errors are said by code; status, meaning and headers follow from the one table.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{self, OperationBuilder, Parameter};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{HttpMethod, RefOr, Required, Schema};

use super::answer::{Answer, refusal};
use super::header::{self, Header};
use super::parameter::{any_text, in_header, in_path, in_query, integer, text};
use super::schemas::Schemas;
use crate::errors::Code;
use crate::http::list::{DEFAULT_LIMIT, MAX_LIMIT};

/// What comes in a request.
enum Body {
    /// JSON of a type, and whether it must be there.
    Json(fn(&mut Schemas) -> RefOr<Schema>, Value, Required),
    /// Text of these media types, each with an example.
    Text(Vec<(&'static str, &'static str)>),
}

/// One operation of a listener.
pub(crate) struct Operation {
    method: HttpMethod,
    path: String,
    described: OperationBuilder,
    body: Option<Body>,
    answers: Vec<Answer>,
    refusals: Vec<Code>,
    limited: bool,
    replays: Vec<Code>,
}

impl Operation {
    /// An operation that every listener could have: it is refused while the service goes down.
    pub(crate) fn new(method: HttpMethod, path: impl Into<String>, id: &'static str) -> Self {
        let described = OperationBuilder::new()
            .operation_id(Some(id))
            .parameter(in_header(
                Required::False,
                "traceparent",
                "The W3C trace context of the caller: its trace is continued, and answered as `X-Trace-ID`.",
                text("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            ));
        Self {
            method,
            path: path.into(),
            described,
            body: None,
            answers: Vec::new(),
            refusals: vec![Code::ServiceUnavailable],
            limited: false,
            replays: Vec::new(),
        }
    }

    /// In which group, in a few words, and in more. Markdown.
    pub(crate) fn says(self, tag: &'static str, summary: &'static str, description: &'static str) -> Self {
        self.described_by(|operation| {
            operation
                .tag(tag)
                .summary(Some(summary))
                .description(Some(description))
        })
    }

    /// A parameter in the path.
    pub(crate) fn path(self, name: &'static str, about: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        self.taking(in_path(name, about, schema))
    }

    /// A parameter in the query that may be left out.
    pub(crate) fn query(self, name: &'static str, about: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        self.taking(in_query(Required::False, name, about, schema))
    }

    /// A parameter in the query that must be there.
    pub(crate) fn required_query(self, name: &str, about: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        self.taking(in_query(Required::True, name, about, schema))
    }

    /// A header that must be there.
    pub(crate) fn required_header(self, name: &str, about: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        self.taking(in_header(Required::True, name, about, schema))
    }

    /// A header that may be left out.
    pub(crate) fn header(self, name: &str, about: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        self.taking(in_header(Required::False, name, about, schema))
    }

    /// An answer that is sent again only when it has changed.
    pub(crate) fn tagged(self) -> Self {
        self.header(
            "If-None-Match",
            "The `ETag` of the answer that you have.",
            text("\"9f86d081884c7d659a2feaa0c55ad015\""),
        )
        .answers(Answer::empty(304, "Nothing has changed since.").with(Header::EntityTag))
    }

    /// A list of what lies between two moments.
    pub(crate) fn dated(self) -> Self {
        self.query(
            "from",
            "Only what is of this moment or later: a date (its midnight in UTC) or an RFC 3339 time.",
            text("2026-11-20"),
        )
        .query(
            "to",
            "Only what is before this moment: a date (its midnight in UTC) or an RFC 3339 time.",
            text("2026-11-21T12:00:00Z"),
        )
    }

    /// A page of a list: how many, and after which.
    pub(crate) fn paged(self) -> Self {
        self.query(
            "limit",
            "How many entries a page has.",
            integer(1, MAX_LIMIT, DEFAULT_LIMIT),
        )
        .query(
            "cursor",
            "The `next_cursor` of the page before. It belongs to the list and its filters: repeat them.",
            text("AAECAwQFBgdzYngtaW5zdGFudA"),
        )
        .refuses(&[Code::ValidationFailed, Code::InvalidCursor])
    }

    /// What the caller must show: these schemes, all of them.
    pub(crate) fn secured(self, schemes: &[&'static str]) -> Self {
        let none: [String; 0] = [];
        let requirement = schemes
            .iter()
            .fold(SecurityRequirement::default(), |all, scheme| {
                all.add(*scheme, none.clone())
            });
        self.described_by(|operation| operation.security(requirement))
    }

    /// A JSON body, with an example.
    pub(crate) fn takes<T: ToSchema>(mut self, example: Value) -> Self {
        self.body = Some(Body::Json(Schemas::requested::<T>, example, Required::True));
        self
    }

    /// A JSON body that may be left out, with an example.
    pub(crate) fn may_take<T: ToSchema>(mut self, example: Value) -> Self {
        self.body = Some(Body::Json(Schemas::requested::<T>, example, Required::False));
        self
    }

    /// A body of text in one of these media types, each with an example.
    pub(crate) fn takes_text(mut self, media_types: Vec<(&'static str, &'static str)>) -> Self {
        self.body = Some(Body::Text(media_types));
        self
    }

    /// An outcome.
    pub(crate) fn answers(mut self, answer: Answer) -> Self {
        self.answers.push(answer);
        self
    }

    /// Errors that it may answer with.
    pub(crate) fn refuses(mut self, codes: &[Code]) -> Self {
        self.refusals.extend(codes);
        self
    }

    /// Errors that are kept under the request's key, and given again to a repetition.
    pub(crate) fn refuses_for_good(mut self, codes: &[Code]) -> Self {
        self.replays.extend(codes);
        self.refuses(codes)
    }

    /// Its requests are counted, and its answers say how many are left.
    pub(crate) fn limited(mut self) -> Self {
        self.limited = true;
        self
    }

    /// Where it is, and what is said of it.
    pub(super) fn build(self, schemas: &mut Schemas) -> (String, HttpMethod, path::Operation) {
        let mut described = self.described;
        if let Some(body) = self.body {
            described = described.request_body(Some(build_body(body, schemas)));
        }
        for answer in self.answers {
            let headers = everywhere(self.limited, answer.status());
            let (status, response) = answer.build(schemas, &headers);
            described = described.response(status.to_string(), response);
        }
        for (status, codes) in by_status(&self.refusals) {
            let mut headers = everywhere(self.limited, status);
            if codes.iter().any(|code| self.replays.contains(code)) {
                headers.push(Header::Replayed);
            }
            described = described.response(status.to_string(), refusal(&codes, &headers, schemas));
        }
        let mut described = described.build();
        if matches!(self.method, HttpMethod::Head) {
            forget_bodies(&mut described);
        }
        (self.path, self.method, described)
    }

    fn taking(self, parameter: Parameter) -> Self {
        self.described_by(|operation| operation.parameter(parameter))
    }

    fn described_by(mut self, change: impl FnOnce(OperationBuilder) -> OperationBuilder) -> Self {
        self.described = change(self.described);
        self
    }
}

/// The headers of every answer of this status.
fn everywhere(limited: bool, status: u16) -> Vec<Header> {
    let limits = if limited { header::limits(status) } else { &[] };
    [&[Header::TraceId], limits].concat()
}

/// An answer to HEAD is that to GET, without its body.
fn forget_bodies(operation: &mut path::Operation) {
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            response.content.clear();
        }
    }
}

fn build_body(body: Body, schemas: &mut Schemas) -> RequestBody {
    let request = RequestBodyBuilder::new().required(Some(Required::True));
    match body {
        Body::Json(note, example, required) => {
            let content = ContentBuilder::new()
                .schema(Some(note(schemas)))
                .example(Some(example));
            let request = request.required(Some(required));
            request.content("application/json", content.build()).build()
        }
        Body::Text(media_types) => media_types
            .into_iter()
            .fold(request, |request, (media_type, example)| {
                let content = ContentBuilder::new()
                    .schema(Some(any_text()))
                    .example(Some(example.into()));
                request.content(media_type, content.build())
            })
            .build(),
    }
}

/// The codes of each status, each once, in the order of the table.
fn by_status(codes: &[Code]) -> BTreeMap<u16, Vec<Code>> {
    let mut groups: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in Code::ALL.iter().filter(|code| codes.contains(code)) {
        groups.entry(code.status()).or_default().push(*code);
    }
    groups
}
