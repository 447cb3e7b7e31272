//! Description of an operation, typed by the bodies of its constant: what a caller sends, then the responses.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use serde_json::Value;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Required, Schema};
use utoipa::{IntoParams, ToSchema};
use vouchsafe_security::idempotency::MAX_KEY_LENGTH;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::{ListFilter, filter_parameters};
use vouchsafe_wire::operation::Page;
use vouchsafe_wire::page::PageParameters;
use vouchsafe_wire::{operation, query};

use super::operation::{Operation, RequestBodySpec};
use super::parameter::{header, parameter};
use super::response::OperationResponse;
use super::schemas::Schemas;

/// A path parameter: name, description, schema, and the errors of an ID without an object.
pub type PathParameter = (&'static str, &'static str, fn() -> RefOr<Schema>, &'static [Code]);

/// An operation whose response is not described yet, with the types of its bodies.
pub struct Description<Request, Response> {
    operation: Operation,
    types: PhantomData<fn(Request) -> Response>,
}

impl<Request, Response> Description<Request, Response> {
    /// An operation below a prefix, with its description (Markdown).
    pub fn new<Access>(
        prefix: &str,
        operation: &operation::Operation<Request, Response, Access>,
        description: &'static str,
    ) -> Self {
        Self {
            operation: Operation::new(prefix, &operation.route, description),
            types: PhantomData,
        }
    }

    /// Adds those parameters that the path has, with their errors.
    #[must_use]
    pub fn path_parameters(self, path: &str, known: &[PathParameter]) -> Self {
        let known = known
            .iter()
            .filter(|(name, ..)| path.split('/').any(|part| part == format!("{{{name}}}")));
        known.fold(self, |described, (name, about, schema, errors)| {
            described
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
    pub fn header_parameter(self, name: &str, about: &str, schema: impl Into<RefOr<Schema>>) -> Self {
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

    /// Requires all of these security schemes.
    #[must_use]
    pub fn secured(self, schemes: &[&'static str]) -> Self {
        self.edit(|operation| operation.secured(schemes))
    }

    /// Requires a security scheme and a role. The role is an extension: OpenAPI 3.1 allows roles where OAuth lists scopes, but
    /// validators take them for undeclared scopes. The description names the role for readers.
    #[must_use]
    pub fn require_role(mut self, scheme: &'static str, role: &'static str) -> Self {
        self.operation.requirement = Some(("role", role));
        self.secured(&[scheme]).extension("x-required-role", role)
    }

    /// Requires a scope of the credential, as an extension like a role.
    #[must_use]
    pub fn require_scope(mut self, scope: &'static str) -> Self {
        self.operation.requirement = Some(("scope", scope));
        self.extension("x-required-scope", scope)
    }

    /// Adds an extension.
    #[must_use]
    pub fn extension(self, name: &'static str, value: &'static str) -> Self {
        self.edit(|operation| operation.extension(name, value))
    }

    /// Adds the rate-limit headers to the responses.
    #[must_use]
    pub fn rate_limited(mut self) -> Self {
        self.operation.is_rate_limited = true;
        self
    }

    #[must_use]
    pub fn errors(self, codes: &[Code]) -> Self {
        self.edit(|operation| operation.errors(codes))
    }

    /// Sets a text body in one of these media types, each with an example.
    #[must_use]
    pub fn text_body(mut self, media_types: Vec<(&'static str, &'static str)>) -> Self {
        self.operation.body = Some(RequestBodySpec::Text(media_types));
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
        self.operation.waiting = Some(response);
        self
    }

    /// Completes the operation with a response that does not follow from the types.
    #[must_use]
    pub fn response(self, response: OperationResponse) -> Operation {
        self.operation.response(response)
    }

    /// Completes the operation with a text response.
    #[must_use]
    pub fn text(self, media_type: &'static str, description: &'static str, example: &str) -> Operation {
        self.response(OperationResponse::text(media_type, description, example))
    }

    fn parameter(self, parameter: Parameter) -> Self {
        self.edit(|operation| operation.parameter(parameter))
    }

    fn edit(mut self, change: impl FnOnce(Operation) -> Operation) -> Self {
        self.operation = change(self.operation);
        self
    }
}

impl<Request: ToSchema, Response> Description<Request, Response> {
    /// Sets a required JSON body, with an example.
    #[must_use]
    pub fn json_body(self, example: Value) -> Self {
        self.json(example, Required::True)
    }

    /// Sets an optional JSON body, with an example.
    #[must_use]
    pub fn optional_json_body(self, example: Value) -> Self {
        self.json(example, Required::False)
    }

    fn json(mut self, example: Value, required: Required) -> Self {
        let body = RequestBodySpec::Json(Schemas::request::<Request>, example, required);
        self.operation.body = Some(body);
        self.errors(&[
            Code::MalformedRequest,
            Code::RequestTimeout,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
            Code::ValidationFailed,
        ])
    }
}

impl<Request: IntoParams, Response> Description<Request, Response> {
    /// Adds the query parameters.
    #[must_use]
    pub fn query(self) -> Self {
        self.edit(|operation| operation.query_parameters(Request::into_params(|| None)))
            .errors(&[Code::ValidationFailed])
    }
}

impl<Filter: ListFilter, Entry: ToSchema> Description<Filter, Page<Entry>> {
    /// Completes the operation with the parameters of a list (its filter, `limit` and `cursor`), and the response with an example
    /// entry.
    #[must_use]
    pub fn list(self, description: &'static str, entry: Value) -> Operation {
        let filter = filter_parameters::<Filter>();
        let documented: BTreeSet<_> = filter.iter().map(|parameter| parameter.name.clone()).collect();
        assert_eq!(
            documented,
            query::names::<Filter>(),
            "parameters of a flattened part are missing"
        );
        self.operation
            .query_parameters(filter)
            .query_parameters(PageParameters::of::<Filter>())
            .errors(&[Code::ValidationFailed, Code::InvalidCursor])
            .response(OperationResponse::page::<Entry>(description, entry))
    }
}

impl<Request, Response: ToSchema> Description<Request, Response> {
    /// Completes the operation with the response 200, and an example of its JSON body.
    #[must_use]
    pub fn ok(self, description: &'static str, example: Value) -> Operation {
        self.responses([(200, description, example)])
    }

    /// Completes the operation with the response 201, and an example of its JSON body.
    #[must_use]
    pub fn created(self, description: &'static str, example: Value) -> Operation {
        self.responses([(201, description, example)])
    }

    /// Completes the operation with the response 202, and an example of its JSON body.
    #[must_use]
    pub fn accepted(self, description: &'static str, example: Value) -> Operation {
        self.responses([(202, description, example)])
    }

    /// Completes the operation with responses of several statuses, and examples of their JSON bodies.
    #[must_use]
    pub fn responses<const N: usize>(self, responses: [(u16, &'static str, Value); N]) -> Operation {
        let responses = responses.into_iter();
        responses.fold(self.operation, |operation, (status, description, example)| {
            operation.response(OperationResponse::json::<Response>(status, description, example))
        })
    }
}

impl<Request> Description<Request, ()> {
    /// Completes the operation with the response 204.
    #[must_use]
    pub fn no_content(self, description: &'static str) -> Operation {
        self.response(OperationResponse::empty(204, description))
    }
}
