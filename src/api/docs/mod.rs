//! OpenAPI documents and documentation pages of both listeners.

pub(crate) mod openapi;
pub(crate) mod operator;
pub(crate) mod pages;
pub(crate) mod partner;
