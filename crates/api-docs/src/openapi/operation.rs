//! Builder of an OpenAPI operation: parameters, request body, responses and errors.
//!
//! Errors are given as codes; their status, description and headers follow from the error table.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{self, OperationBuilder, Parameter, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{HttpMethod, RefOr, Required, Response, Schema};
use utoipa::{IntoParams, ToSchema};
use vouchsafe_security::idempotency::MAX_KEY_LENGTH;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::{ListFilter, filter_parameters};
use vouchsafe_wire::page::PageParameters;
use vouchsafe_wire::query;

use super::header::{ResponseHeader, rate_limit_headers};
use super::parameter::{any_text, header, parameter, text};
use super::response::{OperationResponse, error_response};
use super::schemas::Schemas;

/// Description of the responses of the HTTP server to requests that reach no operation.
const INVALID_HTTP: &str = "The request is not valid HTTP (400), its head takes too long (408) or is too large (431). These \
     responses have no body and no `X-Trace-ID`.";

/// The body of a request.
enum RequestBodySpec {
    /// JSON: adds the schema to the document; an example; whether the body is required.
    Json(fn(&mut Schemas) -> RefOr<Schema>, Value, Required),
    /// Text: media types, each with an example.
    Text(Vec<(&'static str, &'static str)>),
}

/// An operation of a listener.
pub struct Operation {
    method: HttpMethod,
    path: String,
    builder: OperationBuilder,
    body: Option<RequestBodySpec>,
    responses: Vec<OperationResponse>,
    error_codes: Vec<Code>,
    /// What a caller needs, such as the role `viewer`: kind and name.
    requirement: Option<(&'static str, &'static str)>,
    /// Names and values of the extensions.
    extensions: Vec<(&'static str, &'static str)>,
    is_rate_limited: bool,
    is_conditional: bool,
    stored_error_codes: Vec<Code>,
}

impl Operation {
    /// An operation with the parameters and errors that all operations share.
    pub fn new(method: HttpMethod, path: impl Into<String>) -> Self {
        let trace = header(
            "traceparent",
            "W3C trace context of the caller. The request continues its trace; the response has its id in `X-Trace-ID`.",
            text("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        );
        Self {
            method,
            path: path.into(),
            builder: OperationBuilder::new().parameter(trace),
            body: None,
            responses: Vec::new(),
            error_codes: vec![Code::ServiceUnavailable],
            requirement: None,
            extensions: Vec::new(),
            is_rate_limited: false,
            is_conditional: false,
            stored_error_codes: Vec::new(),
        }
    }

    /// Sets the `operationId`.
    pub fn id(self, id: &'static str) -> Self {
        self.edit(|operation| operation.operation_id(Some(id)))
    }

    /// Sets tag, summary and description (Markdown).
    pub fn describe(self, tag: &'static str, summary: &'static str, description: &'static str) -> Self {
        self.edit(|operation| {
            operation
                .tag(tag)
                .summary(Some(summary))
                .description(Some(description))
        })
    }

    /// Whether the path has this parameter.
    pub fn has_path_parameter(&self, name: &str) -> bool {
        self.path.split('/').any(|part| part == format!("{{{name}}}"))
    }

    /// Adds a path parameter.
    pub fn path_parameter(self, name: &'static str, about: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        self.parameter(parameter(ParameterIn::Path, Required::True, name, about, schema))
    }

    /// Adds an optional request header.
    pub fn header_parameter(self, name: &str, about: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        self.parameter(header(name, about, schema))
    }

    /// Adds the required `Idempotency-Key` and its errors. `subject` is what the request creates.
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

    /// Adds `If-None-Match`, the 304 response, and `ETag` to all but the errors.
    pub fn conditional(mut self) -> Self {
        self.is_conditional = true;
        self.header_parameter(
            "If-None-Match",
            "`ETag` of the response that you have.",
            text("\"9f86d081884c7d659a2feaa0c55ad015\""),
        )
        .response(OperationResponse::empty(
            304,
            "Unchanged: the response that you have is current.",
        ))
    }

    /// Adds the query parameters of a struct.
    pub fn query<Q: IntoParams>(self) -> Self {
        self.query_parameters(Q::into_params(|| None))
    }

    /// Adds the parameters of a list: its filter, `limit` and `cursor`.
    pub fn paginated<F: ListFilter>(self) -> Self {
        let filter = filter_parameters::<F>();
        let documented: BTreeSet<_> = filter.iter().map(|parameter| parameter.name.clone()).collect();
        assert_eq!(
            documented,
            query::names::<F>(),
            "parameters of a flattened part are missing"
        );
        self.query_parameters(filter)
            .query_parameters(PageParameters::of::<F>())
            .errors(&[Code::ValidationFailed, Code::InvalidCursor])
    }

    /// Adds the parameters of a list, and the response with an example entry.
    pub fn list<F: ListFilter, T: ToSchema>(self, description: &'static str, entry: Value) -> Self {
        self.paginated::<F>()
            .response(OperationResponse::page::<T>(description, entry))
    }

    /// Adds the response 200 with a JSON body and an example.
    pub fn ok<T: ToSchema>(self, description: &'static str, example: Value) -> Self {
        self.response(OperationResponse::json::<T>(200, description, example))
    }

    /// Adds the response 201 with a JSON body and an example.
    pub fn created<T: ToSchema>(self, description: &'static str, example: Value) -> Self {
        self.response(OperationResponse::json::<T>(201, description, example))
    }

    /// Adds the response 202 with a JSON body and an example.
    pub fn accepted<T: ToSchema>(self, description: &'static str, example: Value) -> Self {
        self.response(OperationResponse::json::<T>(202, description, example))
    }

    /// Requires all of these security schemes.
    pub fn secured(self, schemes: &[&'static str]) -> Self {
        let requirement = schemes
            .iter()
            .fold(SecurityRequirement::default(), |all, scheme| {
                all.add(*scheme, [""; 0])
            });
        self.edit(|operation| operation.security(requirement))
    }

    /// Requires a security scheme and a role. The role is an extension: OpenAPI 3.1 allows roles where OAuth lists scopes, but
    /// validators take them for undeclared scopes. The description names the role for readers.
    pub fn require_role(mut self, scheme: &'static str, role: &'static str) -> Self {
        self.requirement = Some(("role", role));
        self.secured(&[scheme]).extension("x-required-role", role)
    }

    /// Requires a scope of the credential, as an extension like a role.
    pub fn require_scope(mut self, scope: &'static str) -> Self {
        self.requirement = Some(("scope", scope));
        self.extension("x-required-scope", scope)
    }

    /// Adds an extension.
    pub fn extension(mut self, name: &'static str, value: &'static str) -> Self {
        self.extensions.push((name, value));
        let extensions = Extensions::from_iter(self.extensions.iter().copied());
        self.edit(|operation| operation.extensions(Some(extensions)))
    }

    /// Sets a required JSON body, with an example.
    pub fn json_body<T: ToSchema>(mut self, example: Value) -> Self {
        self.body = Some(RequestBodySpec::Json(
            Schemas::request::<T>,
            example,
            Required::True,
        ));
        self
    }

    /// Sets an optional JSON body, with an example.
    pub fn optional_json_body<T: ToSchema>(mut self, example: Value) -> Self {
        self.body = Some(RequestBodySpec::Json(
            Schemas::request::<T>,
            example,
            Required::False,
        ));
        self
    }

    /// Sets a text body in one of these media types, each with an example.
    pub fn text_body(mut self, media_types: Vec<(&'static str, &'static str)>) -> Self {
        self.body = Some(RequestBodySpec::Text(media_types));
        self
    }

    pub fn response(mut self, answer: OperationResponse) -> Self {
        self.responses.push(answer);
        self
    }

    pub fn errors(mut self, codes: &[Code]) -> Self {
        self.error_codes.extend(codes);
        self
    }

    /// Adds errors that are stored under the idempotency key and replayed.
    pub fn stored_errors(mut self, codes: &[Code]) -> Self {
        self.stored_error_codes.extend(codes);
        self.errors(codes)
    }

    /// Adds the rate-limit headers to the responses.
    pub fn rate_limited(mut self) -> Self {
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
            let rejection = Response::new(INVALID_HTTP);
            operation
                .responses
                .responses
                .insert("4XX".to_owned(), rejection.into());
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

    fn query_parameters(self, parameters: Vec<Parameter>) -> Self {
        parameters
            .into_iter()
            .map(example_in_schema)
            .fold(self, Self::parameter)
    }

    fn parameter(self, parameter: Parameter) -> Self {
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

/// Groups codes by status, without duplicates, in the order of the table.
fn by_status(codes: &[Code]) -> BTreeMap<u16, Vec<Code>> {
    let mut groups: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in Code::ALL.iter().filter(|code| codes.contains(code)) {
        groups.entry(code.status()).or_default().push(*code);
    }
    groups
}
