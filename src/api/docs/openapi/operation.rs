//! Builder of an OpenAPI operation: parameters, request body, responses and errors.
//!
//! Errors are given as codes; their status, description and headers follow from the error table.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{self, OperationBuilder, Parameter};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{HttpMethod, RefOr, Required, Schema};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::page::{DEFAULT_LIMIT, MAX_LIMIT};

use super::header::{self, ResponseHeader};
use super::parameter::{any_text, in_header, in_path, in_query, integer, text, timestamp};
use super::response::{OperationResponse, error_response};
use super::schemas::Schemas;

/// The body of a request.
enum RequestBodySpec {
    /// JSON: adds the schema to the document; an example; whether the body is required.
    Json(fn(&mut Schemas) -> RefOr<Schema>, Value, Required),
    /// Text: media types, each with an example.
    Text(Vec<(&'static str, &'static str)>),
}

/// An operation of a listener.
pub(crate) struct Operation {
    method: HttpMethod,
    path: String,
    builder: OperationBuilder,
    body: Option<RequestBodySpec>,
    responses: Vec<OperationResponse>,
    error_codes: Vec<Code>,
    is_rate_limited: bool,
    stored_error_codes: Vec<Code>,
}

impl Operation {
    /// An operation with the parameters and errors that all operations share.
    pub(crate) fn new(method: HttpMethod, path: impl Into<String>, id: &'static str) -> Self {
        let builder = OperationBuilder::new()
            .operation_id(Some(id))
            .parameter(in_header(
                Required::False,
                "traceparent",
                "W3C trace context of the caller. The request continues its trace; the response has its id in `X-Trace-ID`.",
                text("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            ));
        Self {
            method,
            path: path.into(),
            builder,
            body: None,
            responses: Vec::new(),
            error_codes: vec![Code::ServiceUnavailable],
            is_rate_limited: false,
            stored_error_codes: Vec::new(),
        }
    }

    /// Sets tag, summary and description (Markdown).
    pub(crate) fn describe(
        self,
        tag: &'static str,
        summary: &'static str,
        description: &'static str,
    ) -> Self {
        self.edit(|operation| {
            operation
                .tag(tag)
                .summary(Some(summary))
                .description(Some(description))
        })
    }

    /// Adds a path parameter.
    pub(crate) fn path_parameter(
        self,
        name: &'static str,
        about: &str,
        schema: impl Into<RefOr<Schema>>,
    ) -> Self {
        self.parameter(in_path(name, about, schema))
    }

    /// Adds an optional query parameter.
    pub(crate) fn query_parameter(
        self,
        name: &'static str,
        about: &str,
        schema: impl Into<RefOr<Schema>>,
    ) -> Self {
        self.parameter(in_query(Required::False, name, about, schema))
    }

    /// Adds a required query parameter.
    pub(crate) fn required_query_parameter(
        self,
        name: &str,
        about: &str,
        schema: impl Into<RefOr<Schema>>,
    ) -> Self {
        self.parameter(in_query(Required::True, name, about, schema))
    }

    /// Adds a required request header.
    pub(crate) fn required_header_parameter(
        self,
        name: &str,
        about: &str,
        schema: impl Into<RefOr<Schema>>,
    ) -> Self {
        self.parameter(in_header(Required::True, name, about, schema))
    }

    /// Adds an optional request header.
    pub(crate) fn header_parameter(self, name: &str, about: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        self.parameter(in_header(Required::False, name, about, schema))
    }

    /// Adds `If-None-Match` and the 304 response.
    pub(crate) fn conditional(self) -> Self {
        self.header_parameter(
            "If-None-Match",
            "`ETag` of the response that you have.",
            text("\"9f86d081884c7d659a2feaa0c55ad015\""),
        )
        .response(
            OperationResponse::empty(304, "Unchanged: the response that you have is current.")
                .with_header(ResponseHeader::EntityTag),
        )
    }

    /// Adds the time range parameters `from` and `to`.
    pub(crate) fn with_period(self) -> Self {
        self.query_parameter(
            "from",
            "Start of the time range, inclusive: a date (midnight UTC) or an RFC 3339 time.",
            timestamp("2026-11-20"),
        )
        .query_parameter(
            "to",
            "End of the time range, exclusive: a date (midnight UTC) or an RFC 3339 time.",
            timestamp("2026-11-21T12:00:00Z"),
        )
    }

    /// Adds the pagination parameters `limit` and `cursor`.
    pub(crate) fn paginated(self) -> Self {
        self.query_parameter(
            "limit",
            "Maximum number of entries on the page.",
            integer(1, MAX_LIMIT, DEFAULT_LIMIT),
        )
        .query_parameter(
            "cursor",
            "`next_cursor` of the previous page. It is valid only for the same list with the same filters.",
            text("AAECAwQFBgdzYngtaW5zdGFudA"),
        )
        .errors(&[Code::ValidationFailed, Code::InvalidCursor])
    }

    /// Requires all of these security schemes.
    pub(crate) fn secured(self, schemes: &[&'static str]) -> Self {
        let none: [String; 0] = [];
        let requirement = schemes
            .iter()
            .fold(SecurityRequirement::default(), |all, scheme| {
                all.add(*scheme, none.clone())
            });
        self.edit(|operation| operation.security(requirement))
    }

    /// Sets a required JSON body, with an example.
    pub(crate) fn json_body<T: ToSchema>(mut self, example: Value) -> Self {
        self.body = Some(RequestBodySpec::Json(
            Schemas::request::<T>,
            example,
            Required::True,
        ));
        self
    }

    /// Sets an optional JSON body, with an example.
    pub(crate) fn optional_json_body<T: ToSchema>(mut self, example: Value) -> Self {
        self.body = Some(RequestBodySpec::Json(
            Schemas::request::<T>,
            example,
            Required::False,
        ));
        self
    }

    /// Sets a text body in one of these media types, each with an example.
    pub(crate) fn text_body(mut self, media_types: Vec<(&'static str, &'static str)>) -> Self {
        self.body = Some(RequestBodySpec::Text(media_types));
        self
    }

    pub(crate) fn response(mut self, answer: OperationResponse) -> Self {
        self.responses.push(answer);
        self
    }

    pub(crate) fn errors(mut self, codes: &[Code]) -> Self {
        self.error_codes.extend(codes);
        self
    }

    /// Adds errors that are stored under the idempotency key and replayed.
    pub(crate) fn stored_errors(mut self, codes: &[Code]) -> Self {
        self.stored_error_codes.extend(codes);
        self.errors(codes)
    }

    /// Adds the rate-limit headers to the responses.
    pub(crate) fn rate_limited(mut self) -> Self {
        self.is_rate_limited = true;
        self
    }

    /// Builds the operation and returns it with its path and method.
    pub(super) fn build(self, schemas: &mut Schemas) -> (String, HttpMethod, path::Operation) {
        let mut operation = self.builder;
        if let Some(body) = self.body {
            operation = operation.request_body(Some(build_body(body, schemas)));
        }
        for answer in self.responses {
            let headers = common_headers(self.is_rate_limited, answer.status());
            let (status, response) = answer.build(schemas, &headers);
            operation = operation.response(status.to_string(), response);
        }
        for (status, codes) in by_status(&self.error_codes) {
            let mut headers = common_headers(self.is_rate_limited, status);
            if codes.iter().any(|code| self.stored_error_codes.contains(code)) {
                headers.push(ResponseHeader::Replayed);
            }
            operation = operation.response(status.to_string(), error_response(&codes, &headers, schemas));
        }
        let mut operation = operation.build();
        if matches!(self.method, HttpMethod::Head) {
            remove_bodies(&mut operation);
        }
        (self.path, self.method, operation)
    }

    fn parameter(self, parameter: Parameter) -> Self {
        self.edit(|operation| operation.parameter(parameter))
    }

    fn edit(mut self, change: impl FnOnce(OperationBuilder) -> OperationBuilder) -> Self {
        self.builder = change(self.builder);
        self
    }
}

/// The headers of all responses with this status.
fn common_headers(limited: bool, status: u16) -> Vec<ResponseHeader> {
    let limits = if limited {
        header::rate_limit_headers(status)
    } else {
        &[]
    };
    [&[ResponseHeader::TraceId], limits].concat()
}

/// Removes response bodies: HEAD responds like GET without a body.
fn remove_bodies(operation: &mut path::Operation) {
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            response.content.clear();
        }
    }
}

fn build_body(body: RequestBodySpec, schemas: &mut Schemas) -> RequestBody {
    let request = RequestBodyBuilder::new().required(Some(Required::True));
    match body {
        RequestBodySpec::Json(add_schema, example, required) => {
            let content = ContentBuilder::new()
                .schema(Some(add_schema(schemas)))
                .example(Some(example));
            let request = request.required(Some(required));
            request.content("application/json", content.build()).build()
        }
        RequestBodySpec::Text(media_types) => media_types
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

/// Groups codes by status, without duplicates, in the order of the table.
fn by_status(codes: &[Code]) -> BTreeMap<u16, Vec<Code>> {
    let mut groups: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in Code::ALL.iter().filter(|code| codes.contains(code)) {
        groups.entry(code.status()).or_default().push(*code);
    }
    groups
}
