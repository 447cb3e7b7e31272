//! What both listeners answer to anybody: the two health routes and their own document.

use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::HttpMethod;
use utoipa::openapi::schema::{Object, ObjectBuilder};

use super::answer::Answer;
use super::operation::Operation;
use crate::http::HealthBody;

/// The operations of both listeners that anybody may ask for.
pub(crate) fn anybodys(tag: &'static str) -> [Operation; 5] {
    [
        alive(HttpMethod::Get, "getHealth", tag),
        alive(HttpMethod::Head, "headHealth", tag),
        ready(HttpMethod::Get, "getReadiness", tag),
        ready(HttpMethod::Head, "headReadiness", tag),
        document(tag),
    ]
}

fn alive(method: HttpMethod, id: &'static str, tag: &'static str) -> Operation {
    Operation::new(method, "/healthz", id)
        .says(
            tag,
            "Is the process alive?",
            "Answers as long as the process can answer at all.",
        )
        .answers(Answer::of::<HealthBody>(
            200,
            "It is.",
            json!({ "status": "alive" }),
        ))
}

fn ready(method: HttpMethod, id: &'static str, tag: &'static str) -> Operation {
    Operation::new(method, "/readyz", id)
        .says(
            tag,
            "Can an order be placed now?",
            "Asks the database, and whether commits flow. Meant for load balancers.",
        )
        .answers(Answer::of::<HealthBody>(
            200,
            "It can.",
            json!({ "status": "ready" }),
        ))
}

/// `GET /openapi.json`.
fn document(tag: &'static str) -> Operation {
    Operation::new(HttpMethod::Get, "/openapi.json", "getOpenApi")
        .says(tag, "This document", "The OpenAPI 3.1 document of this listener.")
        .answers(Answer::of::<DocumentBody>(
            200,
            "The document.",
            json!({ "openapi": "3.1.0", "info": { "title": "Vouchsafe", "version": "1.0.0" }, "paths": {} }),
        ))
}

/// An OpenAPI document: any object to us, whose form its own specification describes.
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
