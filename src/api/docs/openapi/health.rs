//! OpenAPI operations without authentication, on both listeners: health checks and the document itself.

use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::HttpMethod;
use utoipa::openapi::schema::{Object, ObjectBuilder};
use vouchsafe_wire::health::HealthBody;

use super::operation::Operation;
use super::response::OperationResponse;

/// The operations without authentication.
pub(crate) fn public_operations(tag: &'static str) -> [Operation; 5] {
    [
        liveness(HttpMethod::Get, "getHealth", tag),
        liveness(HttpMethod::Head, "headHealth", tag),
        readiness(HttpMethod::Get, "getReadiness", tag),
        readiness(HttpMethod::Head, "headReadiness", tag),
        document(tag),
    ]
}

fn liveness(method: HttpMethod, id: &'static str, tag: &'static str) -> Operation {
    Operation::new(method, "/healthz", id)
        .describe(
            tag,
            "Check liveness",
            "Responds with 200 while the process can serve requests at all.",
        )
        .response(OperationResponse::json::<HealthBody>(
            200,
            "The process is alive.",
            json!({ "status": "alive" }),
        ))
}

fn readiness(method: HttpMethod, id: &'static str, tag: &'static str) -> Operation {
    Operation::new(method, "/readyz", id)
        .describe(
            tag,
            "Check readiness",
            "Checks that the database responds and that orders can be committed. Use it for load balancer health checks.",
        )
        .response(OperationResponse::json::<HealthBody>(
            200,
            "The service accepts orders.",
            json!({ "status": "ready" }),
        ))
}

/// `GET /openapi.json`.
fn document(tag: &'static str) -> Operation {
    Operation::new(HttpMethod::Get, "/openapi.json", "getOpenApi")
        .describe(
            tag,
            "Get this document",
            "Returns the OpenAPI 3.1 document of this API.",
        )
        .response(OperationResponse::json::<DocumentBody>(
            200,
            "The OpenAPI document.",
            json!({ "openapi": "3.1.0", "info": { "title": "Vouchsafe", "version": "1.0.0" }, "paths": {} }),
        ))
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
