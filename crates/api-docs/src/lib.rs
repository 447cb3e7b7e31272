//! OpenAPI documents, JSON Schemas and documentation pages of both listeners. The routes themselves, and the table that joins each
//! with its description here, are in the service's crate.

mod examples;
pub mod openapi;
pub mod operator;
pub mod pages;
pub mod partner;
mod text_file;

pub use text_file::TextFile;
