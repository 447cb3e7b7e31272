//! OpenAPI documents and documentation pages of both listeners.

pub mod openapi;
pub mod operator;
pub mod pages;
pub mod partner;
