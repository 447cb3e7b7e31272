//! Response validation against the served OpenAPI documents.
//!
//! The status, headers and body of each response must match its operation. Objects accept no undocumented
//! properties and extensible enums no undocumented values, so that an undocumented part of a response fails
//! the test.

mod document;
mod strict;

use std::net::SocketAddr;
use std::sync::OnceLock;

use hyper::Method;
use vouchsafe_api_client::ApiResponse;

use self::document::Document;
use crate::instance::shared;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    Partner,
    Operator,
}

impl Listener {
    pub fn document(self) -> &'static Document {
        static DOCUMENTS: [OnceLock<Document>; 2] = [OnceLock::new(), OnceLock::new()];
        DOCUMENTS[self as usize].get_or_init(|| Document::fetch(self.address()))
    }

    fn address(self) -> SocketAddr {
        match self {
            Self::Partner => shared().http_address(),
            Self::Operator => shared().admin_address(),
        }
    }

    /// An unknown admin path returns the same error without a token as an existing one.
    fn is_route_hidden(self, path: &str) -> bool {
        self == Self::Operator && path.starts_with("/admin/v1")
    }
}

/// Asserts that the document describes the response, and returns it.
pub(crate) fn assert_documented(
    listener: Listener,
    method: &Method,
    target: &str,
    response: ApiResponse,
) -> ApiResponse {
    let path = target.split('?').next().unwrap_or_default();
    let document = listener.document();
    let status = response.status.as_u16();
    match document.find(path) {
        _ if status == 401 && listener.is_route_hidden(path) => {
            document.assert_error(&response, "INVALID_CREDENTIALS")
        }
        None => document.assert_error(&response, "ROUTE_NOT_FOUND"),
        Some(found) => match document.operation(&found, method) {
            Some(operation) => document.assert_response(&operation, &response),
            None => {
                document.assert_error(&response, "METHOD_NOT_ALLOWED");
                assert_eq!(
                    response.header("allow"),
                    Some(document.methods(&found).as_str()),
                    "{target}"
                );
            }
        },
    }
    response
}
