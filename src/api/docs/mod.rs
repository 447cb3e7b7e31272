//! OpenAPI documents and documentation pages of both listeners.

mod examples;
pub(crate) mod openapi;
pub(crate) mod operator;
pub(crate) mod pages;
pub(crate) mod partner;
