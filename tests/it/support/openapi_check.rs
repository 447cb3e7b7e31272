//! Is every answer one that the served document describes?
//!
//! Rule: an answer of an operation has a status, headers and a body that its listener's document names, and nothing
//! beyond: here objects are closed and words are all there are, so that what is served and not described fails.

mod document;
mod strict;

use std::net::SocketAddr;
use std::sync::OnceLock;

use hyper::Method;
use serde_json::Value;
use vouchsafe_load::client::ApiResponse;

use self::document::Document;
use super::service::shared;

/// Who is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    Partner,
    Operator,
}

impl Listener {
    /// The document that is served there.
    pub(crate) fn document(self) -> &'static Document {
        static DOCUMENTS: [OnceLock<Document>; 2] = [OnceLock::new(), OnceLock::new()];
        DOCUMENTS[self as usize].get_or_init(|| Document::fetch(self.address()))
    }

    fn address(self) -> SocketAddr {
        match self {
            Self::Partner => shared().http_address(),
            Self::Operator => shared().admin_address(),
        }
    }

    /// Where nothing is reached without a token, a wrong path is not told from a right one.
    fn is_route_hidden(self, path: &str) -> bool {
        self == Self::Operator && path.starts_with("/admin/v1")
    }
}

/// The answer, if it is as described.
pub(crate) fn assert_documented(listener: Listener, method: &Method, target: &str, answer: ApiResponse) -> ApiResponse {
    let path = target.split('?').next().unwrap_or_default();
    let document = listener.document();
    let status = answer.status.as_u16();
    match document.find(path) {
        _ if status == 401 && listener.is_route_hidden(path) => document.assert_error(&answer, "INVALID_CREDENTIALS"),
        None => document.assert_error(&answer, "ROUTE_NOT_FOUND"),
        Some(found) => match document.operation(&found, method) {
            Some(operation) => document.assert_response(&operation, &answer),
            None => {
                document.assert_error(&answer, "METHOD_NOT_ALLOWED");
                assert_eq!(
                    answer.header("allow"),
                    Some(document.methods(&found).as_str()),
                    "{target}"
                );
            }
        },
    }
    answer
}

/// The body of an answer as JSON.
fn body_of(answer: &ApiResponse) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{error}: {:?}", answer.body))
}
