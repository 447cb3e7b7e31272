//! OpenAPI documents, JSON Schemas and documentation pages of both listeners, from the operations of the wire
//! format, with prose and examples.

mod examples;
pub mod openapi;
pub mod operator;
pub mod pages;
pub mod partner;
mod text_file;

pub use text_file::TextFile;
