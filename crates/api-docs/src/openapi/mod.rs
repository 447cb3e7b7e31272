//! OpenAPI 3.1 document builder for both listeners.
//!
//! Schemas derive from the wire types, errors from the table of error codes, paths, methods and access from
//! the operations of the wire format, which the router takes too; this crate adds descriptions and examples.

mod description;
mod header;
pub mod health;
pub mod json_schema;
pub mod json_text;
mod operation;
mod parameter;
mod references;
mod response;
mod schemas;
mod webhook;
pub mod wire_order;

use serde_json::Value;
use utoipa::openapi::security::SecurityScheme;
use utoipa::openapi::{
    ComponentsBuilder, Info, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Paths, RefOr, Schema,
    Server, Tag,
};

pub use description::Description;
pub use header::ResponseHeader;
pub use operation::{Operation, PathParameter};
pub(crate) use parameter::path_parameters;
pub use parameter::{date, text};
pub use response::OperationResponse;
pub use schemas::Schemas;
pub use webhook::Webhook;

use vouchsafe_wire::error_body::ErrorBody;
use vouchsafe_wire::error_code::Code;

use crate::TextFile;

/// Server of operations at the root of a listener.
const ROOT: &str = "/";

/// The parts of a document other than its operations.
pub struct DocumentInfo {
    pub title: &'static str,
    /// Path of the server below which the operations are: clients are generated against it. Operations
    /// outside of it name their own.
    pub server: &'static str,
    /// Introduction, in Markdown.
    pub description: &'static str,
    /// Tags with their descriptions.
    pub tags: &'static [(&'static str, &'static str)],
    /// The codes that errors of the listener may have.
    pub error_codes: Vec<Code>,
    /// Security schemes by name.
    pub security: Vec<(&'static str, SecurityScheme)>,
}

/// Builds the document of a listener, with the webhooks that it sends.
pub fn build_document(
    about: DocumentInfo,
    operations: impl IntoIterator<Item = Operation>,
    webhooks: impl IntoIterator<Item = Webhook>,
) -> OpenApi {
    let mut schemas = Schemas::default();
    let mut paths = Paths::new();
    for operation in operations {
        let (path, method, described) = operation.build(&mut schemas, about.server);
        paths.add_path_operation(path, vec![method], described);
    }
    let webhooks = webhook::build(webhooks);
    let security = about.security.into_iter();
    let security = security.map(|(name, scheme)| (name.to_owned(), RefOr::T(scheme)));
    let mut schemas = schemas.finish();
    let (errors, properties) = ErrorBody::code_properties(&about.error_codes);
    if let Some(RefOr::T(Schema::Object(errors))) = schemas.get_mut(errors.as_ref()) {
        let properties = properties.map(|(name, schema)| (name.to_owned(), Schema::from(schema).into()));
        errors.properties.extend(properties);
    }
    let mut components = ComponentsBuilder::new().schemas_from_iter(schemas).build();
    components.security_schemes = security.collect();
    components.headers = ResponseHeader::components();
    let tag = |(name, description): &(&str, &str)| {
        let mut tag = Tag::new(*name);
        tag.description = Some((*description).to_owned());
        tag
    };
    OpenApiBuilder::new()
        .info(info(about.title, about.description))
        .servers(Some([Server::new(about.server)]))
        .tags(Some(about.tags.iter().map(tag).collect::<Vec<_>>()))
        .paths(paths)
        .webhooks(webhooks)
        .components(Some(components))
        .build()
}

fn info(title: &str, description: &str) -> Info {
    let license = LicenseBuilder::new()
        .name(env!("CARGO_PKG_LICENSE"))
        .identifier(Some(env!("CARGO_PKG_LICENSE")))
        .build();
    InfoBuilder::new()
        .title(title)
        .description(Some(description))
        .version(env!("CARGO_PKG_VERSION"))
        .license(Some(license))
        .build()
}

/// The document as a JSON value, with references and components as all generators read them.
pub fn to_value(document: &OpenApi) -> Value {
    let mut document = serde_json::to_value(document).unwrap_or_default();
    references::write_bounds_in_place(&mut document);
    references::separate(&mut document);
    references::remove_unused(&mut document);
    document
}

/// The document as a file.
#[must_use]
pub fn to_file(document: &OpenApi) -> TextFile {
    TextFile::new("application/json", json_text::compact(&to_value(document)))
}
