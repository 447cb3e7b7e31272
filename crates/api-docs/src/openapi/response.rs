//! Responses of an OpenAPI operation: a success with its body, or the errors of a status.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::{RefOr, Response, Schema};
use vouchsafe_wire::error_body::ErrorBody;
use vouchsafe_wire::error_code::Code;

use super::header::ResponseHeader;
use super::parameter::any_text;
use super::schemas::Schemas;

/// Responses of the HTTP server to requests that reach no operation. Each has a status of its own: some
/// generators do not know ranges.
const INVALID_HTTP: [(&str, &str); 3] = [
    (
        "400",
        "The request is not valid HTTP. The response has no body and no `X-Trace-ID`.",
    ),
    (
        "408",
        "The head of the request takes too long. The response has no body and no `X-Trace-ID`.",
    ),
    (
        "431",
        "The head of the request is too large. The response has no body and no `X-Trace-ID`.",
    ),
];

enum BodyFormat {
    /// JSON. The function adds the schema to the document and returns a reference.
    Json(fn(&mut Schemas) -> RefOr<Schema>),
    /// Text with this media type.
    Text(&'static str),
}

/// A response of an operation.
pub struct OperationResponse {
    status: u16,
    description: &'static str,
    /// A body per media type.
    bodies: Vec<(BodyFormat, Value)>,
    headers: Vec<ResponseHeader>,
}

impl OperationResponse {
    /// A response without a body.
    pub fn empty(status: u16, description: &'static str) -> Self {
        Self {
            status,
            description,
            bodies: Vec::new(),
            headers: Vec::new(),
        }
    }

    /// A response with a JSON body of this type and an example.
    pub fn json<T: ToSchema>(status: u16, description: &'static str, example: Value) -> Self {
        Self::empty(status, description).with_body(BodyFormat::Json(Schemas::response::<T>), example)
    }

    /// A page of a list, with an example entry. It `can_count` all entries that match.
    pub fn page<T: ToSchema>(description: &'static str, entry: Value, can_count: bool) -> Self {
        let example = json!({ "data": [entry], "has_more": false, "next_cursor": null });
        let schema = match can_count {
            true => Schemas::counted_page_of::<T>,
            false => Schemas::page_of::<T>,
        };
        Self::empty(200, description).with_body(BodyFormat::Json(schema), example)
    }

    /// A response with a text body.
    pub fn text(media_type: &'static str, description: &'static str, example: &str) -> Self {
        Self::empty(200, description).with_body(BodyFormat::Text(media_type), Value::from(example))
    }

    /// Adds a text body that the client can ask for instead.
    pub fn or_text(self, media_type: &'static str, example: &str) -> Self {
        self.with_body(BodyFormat::Text(media_type), Value::from(example))
    }

    fn with_body(mut self, form: BodyFormat, example: Value) -> Self {
        self.bodies.push((form, example));
        self
    }

    /// Adds a header to those that all responses have.
    pub fn with_header(mut self, header: ResponseHeader) -> Self {
        self.headers.push(header);
        self
    }

    pub(super) const fn status(&self) -> u16 {
        self.status
    }

    /// Builds the response; `everywhere` are the headers of all responses.
    pub(super) fn build(self, schemas: &mut Schemas, everywhere: &[ResponseHeader]) -> (u16, Response) {
        let headers = self.headers.iter().chain(everywhere);
        let mut response = headers.fold(
            ResponseBuilder::new().description(self.description),
            |response, header| response.header_ref(header.name(), header.reference()),
        );
        for (form, example) in self.bodies {
            let (media_type, schema) = match form {
                BodyFormat::Json(add_schema) => ("application/json", add_schema(schemas)),
                BodyFormat::Text(media_type) => (media_type, any_text().into()),
            };
            let content = ContentBuilder::new().schema(Some(schema)).example(Some(example));
            response = response.content(media_type, content.build());
        }
        (self.status, response.build())
    }
}

/// The responses to requests that reach no operation, by status.
pub(super) fn invalid_http_responses() -> impl Iterator<Item = (String, RefOr<Response>)> {
    let responses = INVALID_HTTP.into_iter();
    responses.map(|(status, description)| (status.to_owned(), Response::new(description).into()))
}

/// Groups codes by status, without duplicates, in the order of the table.
pub(super) fn by_status(codes: &[Code]) -> BTreeMap<u16, Vec<Code>> {
    let mut groups: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in Code::ALL.iter().filter(|code| codes.contains(code)) {
        groups.entry(code.status()).or_default().push(*code);
    }
    groups
}

/// The response for all errors of one status.
pub(super) fn error_response(
    codes: &[Code],
    everywhere: &[ResponseHeader],
    schemas: &mut Schemas,
) -> Response {
    let line = |code: &Code| format!("`{}`: {}", code.as_str(), code.meaning());
    let lines: Vec<_> = codes.iter().map(line).collect();
    let example = |code: &Code| {
        let example = ExampleBuilder::new().value(Some(example_error(*code)));
        (code.as_str(), example.build())
    };
    let content = ContentBuilder::new()
        .schema(Some(schemas.response::<ErrorBody<'_>>()))
        .examples_from_iter(codes.iter().map(example));
    let response = ResponseBuilder::new()
        .description(lines.join("\n\n"))
        .content("application/json", content.build());
    let headers = everywhere.iter().copied().chain(retry_after(codes));
    headers
        .fold(response, |response, header| {
            response.header_ref(header.name(), header.reference())
        })
        .build()
}

fn retry_after(codes: &[Code]) -> Option<ResponseHeader> {
    let has_delay = |code: &Code| *code == Code::RateLimitExceeded || code.retry_after_s().is_some();
    if codes.iter().all(has_delay) {
        Some(ResponseHeader::RetryAfter)
    } else {
        codes
            .iter()
            .any(has_delay)
            .then_some(ResponseHeader::MaybeRetryAfter)
    }
}

fn example_error(code: Code) -> Value {
    let mut error = json!({
        "name": code.name(),
        "code": code.as_str(),
        "message": code.meaning(),
        "retryable": code.retryable(),
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    });
    let detail = match code {
        Code::ValidationFailed => Some(json!({ "field": "limit", "message": "expected 1 to 100" })),
        Code::DenominationNotAllowed => {
            let message = "product sbx-instant is not sold at this denomination; GET /products/sbx-instant lists its denominations";
            Some(json!({ "field": "items[0].denomination", "message": message }))
        }
        Code::InsufficientInventory => Some(
            json!({ "field": "items[0].quantity", "message": "expected at most 20", "max_quantity": 20 }),
        ),
        _ => None,
    };
    if let Some(detail) = detail {
        error["details"] = json!([detail]);
    }
    json!({ "error": error })
}
