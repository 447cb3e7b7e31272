//! The operators' console in the browser: pages and forms over the operator API.
//!
//! Plain functions from a request to a page, without a web framework. The console has no rights of its own: it reads and changes
//! everything through [`AdminApi`], in the name of the signed-in operator. Pages work without script.

mod api;
mod assets;
mod chart;
mod form;
mod icon;
mod input_value;
mod json;
mod layout;
mod list;
mod live;
mod page;
mod pages;
mod respond;
mod sent_forms;
mod show;
mod table;
mod template;
mod uses;
mod value;
mod visit;

pub use api::{AdminApi, ApiBody, ApiRequest, ApiResponse};
pub use assets::{Asset, DESIGN_TOKENS, asset};
pub use layout::{Viewer, render_bare};
pub use live::render_event;
pub use respond::{
    Error, Form, Request, Response, forms, parse_form, paths, respond, respond_error, respond_session_ended,
};
pub use sent_forms::SentForms;
pub use uses::{ApiUse, Place, api_uses};

/// Headers of every page. Scripts and styles come from files of the console only.
pub const PAGE_HEADERS: [(&str, &str); 5] = [
    ("content-type", "text/html; charset=utf-8"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
];

/// Headers of a file: its path has its hash.
pub const ASSET_HEADERS: [(&str, &str); 2] = [
    ("cache-control", "public, max-age=31536000, immutable"),
    ("x-content-type-options", "nosniff"),
];
