//! Builder of an OpenAPI operation: parameters, request body, responses and errors.
//!
//! Method, path, id, summary and errors come from the constants of the wire format; status, description and
//! headers of an error from the table of codes.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{self, OperationBuilder, Parameter, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{HttpMethod, Object, RefOr, Required, Schema, Server};
use vouchsafe_security::idempotency::MAX_KEY_LENGTH;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operation::{Method, Route};

use super::header::{ResponseHeader, rate_limit_headers};
use super::parameter::{any_text, header, parameter, text};
use super::response::{OperationResponse, by_status, error_response, invalid_http_responses};
use super::schemas::Schemas;

/// A path parameter: name, description, schema, and the errors of an ID without an object.
pub type PathParameter = (&'static str, &'static str, fn() -> RefOr<Schema>, &'static [Code]);

/// The body of a request.
pub(super) enum RequestBodySpec {
    /// JSON: adds the schema to the document; an example; whether the body is required.
    Json(fn(&mut Schemas) -> RefOr<Schema>, Value, Required),
    /// Text: media types, each with an example.
    Text(Vec<(&'static str, &'static str)>),
}

/// An operation of a listener.
pub struct Operation {
    method: HttpMethod,
    path: String,
    id: &'static str,
    builder: OperationBuilder,
    pub(super) body: Option<RequestBodySpec>,
    responses: Vec<OperationResponse>,
    /// The response of a change that waits for a second operator.
    pub(super) waiting: Option<OperationResponse>,
    error_codes: Vec<Code>,
    /// What a caller needs, such as the role `viewer`: kind and name.
    pub(super) requirement: Option<(&'static str, &'static str)>,
    /// Names and values of the extensions.
    extensions: Vec<(&'static str, &'static str)>,
    pub(super) is_rate_limited: bool,
    is_conditional: bool,
    is_at_root: bool,
    stored_error_codes: &'static [Code],
}

impl Operation {
    /// An operation with the parameters and errors that all operations share, and a description (Markdown).
    pub fn new<Access>(prefix: &str, route: &Route<Access>, description: &'static str) -> Self {
        let method = match route.method {
            Method::Get => HttpMethod::Get,
            Method::Head => HttpMethod::Head,
            Method::Post => HttpMethod::Post,
            Method::Put => HttpMethod::Put,
            Method::Patch => HttpMethod::Patch,
            Method::Delete => HttpMethod::Delete,
        };
        let trace = header(
            "traceparent",
            "W3C trace context of the caller. The request continues its trace; the response has its id in `X-Trace-ID`.",
            text("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        );
        let builder = OperationBuilder::new()
            .parameter(trace)
            .operation_id(Some(route.id))
            .summary(Some(route.summary))
            .description(Some(description));
        let errors = [route.errors, route.stored_errors].concat();
        Self {
            method,
            path: format!("{prefix}{}", route.path),
            id: route.id,
            builder,
            body: None,
            responses: Vec::new(),
            waiting: None,
            error_codes: vec![Code::ServiceUnavailable],
            requirement: None,
            extensions: Vec::new(),
            is_rate_limited: false,
            is_conditional: false,
            is_at_root: false,
            stored_error_codes: route.stored_errors,
        }
        .errors(&errors)
    }

    /// The `operationId`.
    pub const fn id(&self) -> &'static str {
        self.id
    }

    /// Sets the tag.
    #[must_use]
    pub fn tag(self, tag: &'static str) -> Self {
        self.edit(|operation| operation.tag(tag))
    }

    /// Adds `If-None-Match`, the 304 response, and `ETag` to all but the errors.
    #[must_use]
    pub fn conditional(mut self) -> Self {
        self.is_conditional = true;
        self.responses.push(OperationResponse::empty(
            304,
            "Unchanged: the response that you have is current.",
        ));
        self.parameter(header(
            "If-None-Match",
            "`ETag` of the response that you have.",
            text("\"9f86d081884c7d659a2feaa0c55ad015\""),
        ))
    }

    /// Adds a header to the successful responses.
    #[must_use]
    pub fn with_header(mut self, header: ResponseHeader) -> Self {
        let with_header = |response: OperationResponse| response.with_header(header);
        self.responses = self.responses.into_iter().map(with_header).collect();
        self
    }

    /// Adds a text body that the client can ask for instead.
    #[must_use]
    pub fn or_text(mut self, media_type: &'static str, example: &str) -> Self {
        let or_text = |response: OperationResponse| response.or_text(media_type, example);
        self.responses = self.responses.into_iter().map(or_text).collect();
        self
    }

    /// Requires all of these security schemes.
    #[must_use]
    pub fn secured(self, schemes: &[&'static str]) -> Self {
        let requirement = schemes
            .iter()
            .fold(SecurityRequirement::default(), |all, scheme| {
                all.add(*scheme, [""; 0])
            });
        self.edit(|operation| operation.security(requirement))
    }

    /// Adds an extension.
    #[must_use]
    pub fn extension(mut self, name: &'static str, value: &'static str) -> Self {
        self.extensions.push((name, value));
        let extensions = Extensions::from_iter(self.extensions.iter().copied());
        self.edit(|operation| operation.extensions(Some(extensions)))
    }

    #[must_use]
    pub fn errors(mut self, codes: &[Code]) -> Self {
        self.error_codes.extend(codes);
        self
    }

    pub(super) fn response(mut self, response: OperationResponse) -> Self {
        self.responses.push(response);
        self
    }

    /// Adds those parameters that the path has, with their errors.
    #[must_use]
    pub fn path_parameters(self, path: &str, known: &[PathParameter]) -> Self {
        let known = known
            .iter()
            .filter(|(name, ..)| path.split('/').any(|part| part == format!("{{{name}}}")));
        known.fold(self, |operation, (name, about, schema, errors)| {
            operation
                .parameter(parameter(
                    ParameterIn::Path,
                    Required::True,
                    name,
                    about,
                    schema(),
                ))
                .errors(errors)
        })
    }

    /// Adds an optional request header.
    #[must_use]
    pub fn header_parameter(self, name: &str, about: &str, schema: Object) -> Self {
        self.parameter(header(name, about, schema))
    }

    /// Adds the required `Idempotency-Key` and its errors. `subject` is what the request creates.
    #[must_use]
    pub fn idempotent(self, subject: &str) -> Self {
        let about = format!(
            "Unique key for this {subject}. The server executes a request once per key; for 24 hours repetitions get the stored \
             response."
        );
        let key = ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(MAX_KEY_LENGTH))
            .pattern(Some("^[!-~]+$"))
            .examples(["po-1001"])
            .build();
        self.parameter(parameter(
            ParameterIn::Header,
            Required::True,
            "Idempotency-Key",
            &about,
            key,
        ))
        .errors(&[
            Code::MissingIdempotencyKey,
            Code::InvalidIdempotencyKey,
            Code::IdempotencyInProgress,
            Code::IdempotencyKeyReused,
        ])
    }

    /// Requires a security scheme and a role. The role is an extension: OpenAPI 3.1 allows roles where OAuth
    /// lists scopes, but validators take them for undeclared scopes. The description names the role for
    /// readers.
    #[must_use]
    pub fn require_role(mut self, scheme: &'static str, role: &'static str) -> Self {
        self.requirement = Some(("role", role));
        self.secured(&[scheme]).extension("x-required-role", role)
    }

    /// Requires a scope of the credential, as an extension like a role.
    #[must_use]
    pub fn require_scope(mut self, scope: &'static str) -> Self {
        self.requirement = Some(("scope", scope));
        self.extension("x-required-scope", scope)
    }

    /// Adds the rate-limit headers to the responses.
    #[must_use]
    pub fn rate_limited(mut self) -> Self {
        self.is_rate_limited = true;
        self
    }

    /// Sets a text body in one of these media types, each with an example.
    #[must_use]
    pub fn text_body(mut self, media_types: Vec<(&'static str, &'static str)>) -> Self {
        self.body = Some(RequestBodySpec::Text(media_types));
        self.errors(&[
            Code::MalformedRequest,
            Code::RequestTimeout,
            Code::UnsupportedMediaType,
            Code::ValidationFailed,
        ])
    }

    /// Adds the response of a change that waits for a second operator.
    #[must_use]
    pub fn may_wait(mut self, response: OperationResponse) -> Self {
        self.waiting = Some(response);
        self
    }

    pub(super) fn json_body(mut self, body: RequestBodySpec) -> Self {
        self.body = Some(body);
        self.errors(&[
            Code::MalformedRequest,
            Code::RequestTimeout,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
            Code::ValidationFailed,
        ])
    }

    pub(super) fn query(self, parameters: Vec<Parameter>) -> Self {
        self.query_parameters(parameters)
            .errors(&[Code::ValidationFailed])
    }

    /// Adds the filter of a list, whose parameters have these names.
    pub(super) fn list(self, filter: Vec<Parameter>, names: &BTreeSet<String>) -> Self {
        let documented: BTreeSet<_> = filter.iter().map(|parameter| parameter.name.clone()).collect();
        assert_eq!(documented, *names, "parameters of a flattened part are missing");
        self.query_parameters(filter)
            .errors(&[Code::ValidationFailed, Code::InvalidCursor])
    }

    /// Places the operation at the root of its listener, whatever the server of the document is.
    #[must_use]
    pub fn at_root(mut self) -> Self {
        self.is_at_root = true;
        self
    }

    /// Builds the operation for a document with this server, and returns it with its path and method.
    pub(super) fn build(self, schemas: &mut Schemas, server: &str) -> (String, HttpMethod, path::Operation) {
        let mut operation = self.builder;
        if let Some(body) = self.body {
            operation = operation.request_body(Some(build_body(body, schemas)));
        }
        for answer in self.responses.into_iter().chain(self.waiting) {
            let mut headers = common_headers(self.is_rate_limited, answer.status());
            headers.extend(self.is_conditional.then_some(ResponseHeader::EntityTag));
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
        let is_rejected = |status: &String| status.starts_with('4');
        let mut operation = operation.build();
        if !operation.responses.responses.keys().any(is_rejected) {
            operation.responses.responses.extend(invalid_http_responses());
        }
        if self.is_at_root && server != super::ROOT {
            operation.servers = Some(vec![Server::new(super::ROOT)]);
        }
        if let (Some((kind, name)), Some(description)) = (self.requirement, &mut operation.description) {
            description.push_str(&format!("\n\nRequires the {kind} `{name}`."));
        }
        // An operation without requirements says so: `security: []`.
        operation.security.get_or_insert_default();
        if matches!(self.method, HttpMethod::Head) {
            remove_bodies(&mut operation);
        }
        (self.path, self.method, operation)
    }

    pub(super) fn query_parameters(self, parameters: Vec<Parameter>) -> Self {
        parameters
            .into_iter()
            .map(example_in_schema)
            .fold(self, Self::parameter)
    }

    pub(super) fn parameter(self, parameter: Parameter) -> Self {
        self.edit(|operation| operation.parameter(parameter))
    }

    fn edit(mut self, change: impl FnOnce(OperationBuilder) -> OperationBuilder) -> Self {
        self.builder = change(self.builder);
        self
    }
}

/// Moves the example into the schema, like the examples of other parameters.
fn example_in_schema(parameter: Parameter) -> Parameter {
    let mut value = json!(parameter);
    if let Some(example) = value.as_object_mut().and_then(|fields| fields.remove("example")) {
        value["schema"]["examples"] = json!([example]);
    }
    serde_json::from_value(value).unwrap_or(parameter)
}

/// The headers of all responses with this status.
fn common_headers(limited: bool, status: u16) -> Vec<ResponseHeader> {
    let limits = if limited { rate_limit_headers(status) } else { &[] };
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
