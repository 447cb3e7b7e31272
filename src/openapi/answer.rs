//! What may an operation answer: an outcome with its body, or the errors of a status.

use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::{RefOr, Response, Schema};

use super::header::Header;
use super::parameter::any_text;
use super::schemas::Schemas;
use crate::errors::{ApiError, Code, ErrorBody};

/// What a body is.
enum Form {
    /// JSON; the schema is noted among the others, and referred to.
    Json(fn(&mut Schemas) -> RefOr<Schema>),
    /// Text of this media type.
    Text(&'static str),
}

/// An outcome of an operation.
pub(crate) struct Answer {
    status: u16,
    description: &'static str,
    body: Option<(Form, Value)>,
    headers: Vec<Header>,
}

impl Answer {
    /// A status without a body.
    pub(crate) fn empty(status: u16, description: &'static str) -> Self {
        Self {
            status,
            description,
            body: None,
            headers: Vec::new(),
        }
    }

    /// A JSON body of this type, and an example of it.
    pub(crate) fn of<T: ToSchema>(status: u16, description: &'static str, example: Value) -> Self {
        Self::empty(status, description).carrying(Form::Json(Schemas::answered::<T>), example)
    }

    /// A page of a list, with an example of one of its entries.
    pub(crate) fn page_of<T: ToSchema>(description: &'static str, entry: Value) -> Self {
        let example = json!({ "data": [entry], "has_more": false, "next_cursor": null });
        Self::empty(200, description).carrying(Form::Json(Schemas::page_of::<T>), example)
    }

    /// A body of another media type.
    pub(crate) fn text(media_type: &'static str, description: &'static str, example: &str) -> Self {
        Self::empty(200, description).carrying(Form::Text(media_type), Value::from(example))
    }

    fn carrying(mut self, form: Form, example: Value) -> Self {
        self.body = Some((form, example));
        self
    }

    /// A header that it has beside those that all have.
    pub(crate) fn with(mut self, header: Header) -> Self {
        self.headers.push(header);
        self
    }

    /// Its status.
    pub(super) const fn status(&self) -> u16 {
        self.status
    }

    /// Its status, and what is said of it.
    pub(super) fn build(self, schemas: &mut Schemas, everywhere: &[Header]) -> (u16, Response) {
        let headers = self.headers.iter().chain(everywhere);
        let mut response = headers.fold(
            ResponseBuilder::new().description(self.description),
            |response, header| response.header_ref(header.name(), header.reference()),
        );
        if let Some((form, example)) = self.body {
            let (media_type, schema) = match form {
                Form::Json(note) => ("application/json", note(schemas)),
                Form::Text(media_type) => (media_type, any_text().into()),
            };
            let content = ContentBuilder::new().schema(Some(schema)).example(Some(example));
            response = response.content(media_type, content.build());
        }
        (self.status, response.build())
    }
}

/// The errors of one status.
pub(super) fn refusal(codes: &[Code], everywhere: &[Header], schemas: &mut Schemas) -> Response {
    let line = |code: &Code| format!("`{}`: {}", code.as_str(), code.meaning());
    let lines: Vec<_> = codes.iter().map(line).collect();
    let example = |code: &Code| {
        let example = ExampleBuilder::new().value(Some(example_of(*code)));
        (code.as_str(), example.build())
    };
    let content = ContentBuilder::new()
        .schema(Some(schemas.answered::<ErrorBody<'_>>()))
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

fn retry_after(codes: &[Code]) -> Option<Header> {
    let says_when =
        |code: &Code| *code == Code::RateLimitExceeded || ApiError::new(*code, "").retry_after_s.is_some();
    if codes.iter().all(says_when) {
        Some(Header::RetryAfter)
    } else {
        codes.iter().any(says_when).then_some(Header::MaybeRetryAfter)
    }
}

fn example_of(code: Code) -> Value {
    let mut error = json!({
        "name": code.name(),
        "code": code.as_str(),
        "message": code.meaning(),
        "retryable": code.retryable(),
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    });
    if code == Code::ValidationFailed {
        error["details"] = json!([{ "field": "limit", "message": "expected 1 to 100" }]);
    }
    json!({ "error": error })
}
