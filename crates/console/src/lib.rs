//! The operators' console in the browser: pages and forms over the operator API.
//!
//! Plain functions from a request to a page, without a web framework. The console has no rights of its own:
//! it reads and changes everything through [`AdminApi`], in the name of the signed-in operator. Pages work
//! without script.

mod action;
mod api;
mod api_target;
mod body_schema;
mod bulk;
mod chart;
mod csv;
mod decisions;
mod field;
mod form;
mod input;
mod input_value;
mod json;
mod label;
mod layout;
mod list;
mod live;
mod number;
mod page;
mod pages;
mod respond;
mod sent_forms;
mod show;
mod table;
mod template;
mod time_input;
mod uses;
mod value;
mod visit;

pub use api::{AdminApi, ApiBody, ApiRequest, ApiResponse};
pub use csv::{csv_paths, list_of_csv};
pub use layout::Viewer;
pub use live::render_event;
pub use respond::{
    Error, Form, Request, Response, forms, parse_form, paths, respond, respond_error, respond_refusal,
    respond_session_ended,
};
pub use sent_forms::SentForms;
pub use uses::{ApiUse, Place, api_uses};
