//! OpenAPI operations without authentication, on both listeners: health checks and the document itself.

use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder};
use vouchsafe_wire::health::{
    GET_HEALTH, GET_OPEN_API, GET_READINESS, HEAD_HEALTH, HEAD_OPEN_API, HEAD_READINESS, Health,
};
use vouchsafe_wire::operation;

use super::description::Description;
use super::operation::Operation;
use super::response::OperationResponse;

/// The tag of the operations without authentication.
pub const TAG: &str = "Health";

type PublicOperation<Response> = operation::Operation<(), Response, ()>;

pub(crate) fn operations() -> impl Iterator<Item = Operation> {
    let operations = [
        liveness(&GET_HEALTH),
        liveness(&HEAD_HEALTH),
        readiness(&GET_READINESS),
        readiness(&HEAD_READINESS),
        document(&GET_OPEN_API),
        document(&HEAD_OPEN_API),
    ];
    operations.into_iter().map(|operation| operation.tag(TAG))
}

fn describe<R>(operation: &PublicOperation<R>, description: &'static str) -> Description<(), R> {
    Description::new(
        Operation::new("", &operation.route, description).at_root(),
        operation,
    )
}

fn liveness(operation: &PublicOperation<Health>) -> Operation {
    let description = "Responds with 200 while the process can serve requests at all.";
    describe(operation, description).ok("The process is alive.", status("alive"))
}

fn readiness(operation: &PublicOperation<Health>) -> Operation {
    let description = "Checks that the database responds and that orders can be committed. Use it for load balancer health checks.";
    describe(operation, description).ok("The service accepts orders.", status("ready"))
}

fn status(status: &str) -> Value {
    json!({ "status": status })
}

fn document(operation: &PublicOperation<()>) -> Operation {
    let description = "Returns the OpenAPI 3.1 document of this API.";
    let example =
        json!({ "openapi": "3.1.0", "info": { "title": "Vouchsafe", "version": "1.0.0" }, "paths": {} });
    let response = OperationResponse::json::<DocumentBody>(200, "The OpenAPI document.", example);
    describe(operation, description).response(response)
}

/// An OpenAPI document, as a free-form object.
struct DocumentBody;

impl utoipa::PartialSchema for DocumentBody {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        let document: Object = ObjectBuilder::new()
            .description(Some("An OpenAPI 3.1 document."))
            .property("openapi", super::parameter::text("3.1.0"))
            .required("openapi")
            .additional_properties(Some(utoipa::openapi::schema::AdditionalProperties::FreeForm(
                true,
            )))
            .build();
        document.into()
    }
}

impl ToSchema for DocumentBody {
    fn name() -> std::borrow::Cow<'static, str> {
        "Document".into()
    }
}
