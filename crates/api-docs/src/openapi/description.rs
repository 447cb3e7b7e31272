//! Description of an operation, typed by the bodies of its constant: what a caller sends, then the responses.

use std::marker::PhantomData;

use serde_json::Value;
use serde_json::value::to_raw_value;
use utoipa::openapi::{Object, Required};
use utoipa::{IntoParams, ToSchema};
use vouchsafe_wire::csv::{self, CsvTable};
use vouchsafe_wire::filter::{ListFilter, filter_parameters};
use vouchsafe_wire::operation::Page;
use vouchsafe_wire::page::{CountParameter, PageParameters};
use vouchsafe_wire::{operation, query};

use super::operation::{Operation, RequestBodySpec};
use super::response::OperationResponse;
use super::schemas::Schemas;

/// An operation whose response is not described yet, with the types of its bodies. Its functions only pass
/// schemas of the types on: the compiler makes a copy of each for every operation.
pub struct Description<Request, Response> {
    operation: Operation,
    /// The columns of a list that is also served as CSV.
    csv: Option<CsvTable>,
    types: PhantomData<fn(Request) -> Response>,
}

impl<Request, Response> Description<Request, Response> {
    /// An operation with the types of its constant.
    pub fn new<Access>(
        operation: Operation,
        constant: &operation::Operation<Request, Response, Access>,
    ) -> Self {
        let route = &constant.route;
        Self {
            operation,
            csv: route.is_list.then(|| CsvTable::of(route.columns)),
            types: PhantomData,
        }
    }

    fn map(self, add: impl FnOnce(Operation) -> Operation) -> Self {
        Self {
            operation: add(self.operation),
            ..self
        }
    }

    /// Adds an optional request header.
    #[must_use]
    pub fn header_parameter(self, name: &str, about: &str, schema: Object) -> Self {
        self.map(|operation| operation.header_parameter(name, about, schema))
    }

    /// Adds the required `Idempotency-Key` and its errors. `subject` is what the request creates.
    #[must_use]
    pub fn idempotent(self, subject: &str) -> Self {
        self.map(|operation| operation.idempotent(subject))
    }

    /// Requires all of these security schemes.
    #[must_use]
    pub fn secured(self, schemes: &[&'static str]) -> Self {
        self.map(|operation| operation.secured(schemes))
    }

    /// Sets a text body in one of these media types, each with an example.
    #[must_use]
    pub fn text_body(self, media_types: Vec<(&'static str, &'static str)>) -> Self {
        self.map(|operation| operation.text_body(media_types))
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
}

impl<Request: ToSchema, Response> Description<Request, Response> {
    /// Sets a required JSON body, with an example.
    #[must_use]
    pub fn json_body(self, example: Value) -> Self {
        let body = RequestBodySpec::Json(Schemas::request::<Request>, example, Required::True);
        self.map(|operation| operation.json_body(body))
    }

    /// Sets an optional JSON body, with an example.
    #[must_use]
    pub fn optional_json_body(self, example: Value) -> Self {
        let body = RequestBodySpec::Json(Schemas::request::<Request>, example, Required::False);
        self.map(|operation| operation.json_body(body))
    }
}

impl<Request: IntoParams, Response> Description<Request, Response> {
    /// Adds the query parameters.
    #[must_use]
    pub fn query(self) -> Self {
        self.map(|operation| operation.query(Request::into_params(|| None)))
    }
}

impl<Filter: ListFilter, Entry: ToSchema> Description<Filter, Page<Entry>> {
    /// Completes the operation with the parameters of a list (its filter, `limit` and `cursor`), and the
    /// response with an example entry.
    #[must_use]
    pub fn list(self, description: &'static str, entry: Value) -> Operation {
        let csv = self.csv.map(|table| {
            let line = to_raw_value(&entry).and_then(|entry| table.line(&entry));
            format!("{}\r\n{}\r\n", table.header(), line.unwrap_or_default())
        });
        let page = OperationResponse::page::<Entry>(description, entry, csv.is_some());
        let (page, count) = match csv {
            Some(example) => (
                page.or_text(csv::MEDIA_TYPE, &example),
                CountParameter::into_params(|| None),
            ),
            None => (page, Vec::new()),
        };
        self.operation
            .list(filter_parameters::<Filter>(), &query::names::<Filter>())
            .query_parameters(PageParameters::of::<Filter>())
            .query_parameters(count)
            .response(page)
    }
}

impl<Request, Response: ToSchema> Description<Request, Response> {
    /// Completes the operation with the response 200, and an example of its JSON body.
    #[must_use]
    pub fn ok(self, description: &'static str, example: Value) -> Operation {
        self.response(OperationResponse::json::<Response>(200, description, example))
    }

    /// Completes the operation with the response 201, and an example of its JSON body.
    #[must_use]
    pub fn created(self, description: &'static str, example: Value) -> Operation {
        self.response(OperationResponse::json::<Response>(201, description, example))
    }

    /// Completes the operation with the response 202, and an example of its JSON body.
    #[must_use]
    pub fn accepted(self, description: &'static str, example: Value) -> Operation {
        self.response(OperationResponse::json::<Response>(202, description, example))
    }

    /// Completes the operation with responses of two statuses, and examples of their JSON bodies.
    #[must_use]
    pub fn responses(self, responses: [(u16, &'static str, Value); 2]) -> Operation {
        let [first, second] = responses.map(|(status, description, example)| {
            OperationResponse::json::<Response>(status, description, example)
        });
        self.response(first).response(second)
    }
}

impl<Request> Description<Request, ()> {
    /// Completes the operation with the response 204.
    #[must_use]
    pub fn no_content(self, description: &'static str) -> Operation {
        self.response(OperationResponse::empty(204, description))
    }
}
