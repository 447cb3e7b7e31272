//! How is a listener described to programs? One OpenAPI 3.1 document, made once from the wire types and the operations.
//!
//! Rule: schemas come from the types that are read and written, errors from the one table; an operation adds what no
//! type says. Every route of a listener is in its document, which a test holds against the route table.

mod answer;
#[cfg(test)]
pub(crate) mod check;
mod header;
mod health;
mod operation;
mod parameter;
mod schemas;

use actix_web::HttpResponse;
use actix_web::http::header::CONTENT_TYPE;
use bytes::Bytes;
use serde_json::Value;
use utoipa::openapi::security::SecurityScheme;
use utoipa::openapi::{
    ComponentsBuilder, Info, InfoBuilder, OpenApi, OpenApiBuilder, Paths, RefOr, Server, Tag,
};

pub(crate) use answer::Answer;
pub(crate) use header::Header;
pub(crate) use health::anybodys;
pub(crate) use operation::Operation;
pub(crate) use parameter::{date, filter, integer, text, word};
pub(crate) use schemas::{Schemas, open_words};

/// What a document says beside its operations.
pub(crate) struct About {
    /// What the document is called.
    pub title: &'static str,
    /// What somebody should know who reads it first. Markdown.
    pub description: &'static str,
    /// Groups of operations, each with what it is about.
    pub tags: &'static [(&'static str, &'static str)],
    /// The schemes by which callers prove who they are, by name.
    pub security: Vec<(&'static str, SecurityScheme)>,
}

/// The document of a listener with these operations.
pub(crate) fn describe(about: About, operations: Vec<Operation>) -> OpenApi {
    let mut schemas = Schemas::default();
    let mut paths = Paths::new();
    for operation in operations {
        let (path, method, described) = operation.build(&mut schemas);
        paths.add_path_operation(path, vec![method], described);
    }
    let security = about.security.into_iter();
    let security = security.map(|(name, scheme)| (name.to_owned(), RefOr::T(scheme)));
    let mut components = ComponentsBuilder::new()
        .schemas_from_iter(schemas.finish())
        .build();
    components.security_schemes = security.collect();
    components.headers = Header::components();
    let tag = |(name, description): &(&str, &str)| {
        let mut tag = Tag::new(*name);
        tag.description = Some((*description).to_owned());
        tag
    };
    OpenApiBuilder::new()
        .info(info(about.title, about.description))
        .servers(Some([Server::new("/")]))
        .tags(Some(about.tags.iter().map(tag).collect::<Vec<_>>()))
        .paths(paths)
        .components(Some(components))
        .build()
}

fn info(title: &str, description: &str) -> Info {
    InfoBuilder::new()
        .title(title)
        .description(Some(description))
        .version(concat!(
            "1.",
            env!("CARGO_PKG_VERSION_MINOR"),
            ".",
            env!("CARGO_PKG_VERSION_PATCH")
        ))
        .build()
}

/// The document as JSON, for those who read it here.
pub(crate) fn value_of(document: &OpenApi) -> Value {
    serde_json::to_value(document).unwrap_or_default()
}

/// The bytes that are served.
pub(crate) fn bytes_of(document: &OpenApi) -> Bytes {
    serde_json::to_vec(document).unwrap_or_default().into()
}

/// The answer of `GET /openapi.json`.
pub(crate) fn served(bytes: &Bytes) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/json"))
        .body(bytes.clone())
}
