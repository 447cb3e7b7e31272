//! Pages below `/docs`, rendered as HTML from Markdown files of `docs` and from the OpenAPI document of a
//! listener.
//!
//! They load nothing from other hosts and run one script of our own.

mod code;
mod highlight;
mod keywords;
mod layout;
mod markdown;
mod outline;
mod page;
pub mod reference;
mod site;

pub use site::{ASSETS, Audience, FAVICON, FILES, OPERATOR_PAGES, PAGES, SEARCH, Site};
