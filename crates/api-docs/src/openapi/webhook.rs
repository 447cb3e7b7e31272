//! Webhooks in an OpenAPI document: the requests that the service sends.

use serde_json::Value;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{HttpMethod, Paths, Ref, Required, Response};

use super::parameter::parameter;

/// A request that the service sends to an endpoint of a partner.
pub struct Webhook {
    /// The key in the document.
    pub name: &'static str,
    pub id: String,
    pub tag: &'static str,
    pub summary: String,
    pub description: String,
    /// Headers: name, whether each request has it, description, schema.
    pub headers: Vec<(&'static str, Required, &'static str, utoipa::openapi::Object)>,
    /// Name of the body's schema, which another operation has added.
    pub schema: String,
    pub example: Value,
    /// Responses of the endpoint: status or range, and what it means to the service.
    pub responses: &'static [(&'static str, &'static str)],
}

/// Builds the `webhooks` of a document; `None` without any.
pub(super) fn build(webhooks: impl IntoIterator<Item = Webhook>) -> Option<Paths> {
    let mut paths = Paths::new();
    for webhook in webhooks {
        let name = webhook.name;
        paths.paths.insert(name.to_owned(), webhook.build());
    }
    Some(paths).filter(|paths| !paths.paths.is_empty())
}

impl Webhook {
    fn build(self) -> PathItem {
        let content = ContentBuilder::new()
            .schema(Some(Ref::from_schema_name(self.schema)))
            .example(Some(self.example));
        let body = RequestBodyBuilder::new()
            .required(Some(Required::True))
            .content("application/json", content.build());
        let headers = self.headers.into_iter();
        let headers: Vec<Parameter> = headers
            .map(|(name, required, description, schema)| {
                parameter(ParameterIn::Header, required, name, description, schema)
            })
            .collect();
        let operation = OperationBuilder::new()
            .operation_id(Some(self.id))
            .tag(self.tag)
            .summary(Some(self.summary))
            .description(Some(self.description))
            .parameters(Some(headers))
            .request_body(Some(body.build()))
            .securities(Some([]))
            // openapi-generator writes client methods for webhooks, and their file over that of the tag's
            // operations.
            .extensions(Some(Extensions::from_iter([("x-internal", true)])));
        let responses = self.responses.iter();
        let operation = responses.fold(operation, |operation, (status, meaning)| {
            operation.response(*status, Response::new(*meaning))
        });
        PathItem::new(HttpMethod::Post, operation)
    }
}
