//! OpenAPI operations without authentication, on both listeners: health checks and the document itself.

use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder};
use vouchsafe_wire::health::HealthBody;

use super::operation::Operation;

/// The tag of the operations without authentication.
pub const TAG: &str = "Health";

/// `/healthz`.
pub fn liveness(operation: Operation) -> Operation {
    operation
        .id("getHealth")
        .describe(
            TAG,
            "Check liveness",
            "Responds with 200 while the process can serve requests at all.",
        )
        .ok::<HealthBody>("The process is alive.", json!({ "status": "alive" }))
}

/// `/readyz`.
pub fn readiness(operation: Operation) -> Operation {
    operation
        .id("getReadiness")
        .describe(
            TAG,
            "Check readiness",
            "Checks that the database responds and that orders can be committed. Use it for load balancer health checks.",
        )
        .ok::<HealthBody>("The service accepts orders.",
            json!({ "status": "ready" }),)
}

/// `/openapi.json`.
pub fn document(operation: Operation) -> Operation {
    operation
        .id("getOpenApi")
        .describe(
            TAG,
            "Get this document",
            "Returns the OpenAPI 3.1 document of this API.",
        )
        .ok::<DocumentBody>(
            "The OpenAPI document.",
            json!({ "openapi": "3.1.0", "info": { "title": "Vouchsafe", "version": "1.0.0" }, "paths": {} }),
        )
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
