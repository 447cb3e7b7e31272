//! Port to the operator API: the console reads and changes everything through it, in the name of the
//! signed-in operator.

use std::future::Future;

use maud::{Markup, html};
use vouchsafe_wire::operation::Method;

use crate::json::Json;

/// The operator API. Its implementation carries out a request exactly as if the operator had sent it: roles,
/// second operators, audit entries and error messages are those of the API.
pub trait AdminApi {
    fn call(&self, request: ApiRequest) -> impl Future<Output = ApiResponse>;
}

/// A request to the operator API.
pub struct ApiRequest {
    pub method: Method,
    /// Path below `/admin/v1`, with the query.
    pub target: String,
    pub body: Option<ApiBody>,
}

/// A body. It may contain codes and secrets, so it has no `Debug`.
pub enum ApiBody {
    Json(String),
    /// The file of the form, which the implementation has.
    File {
        content_type: &'static str,
    },
}

/// A response of the operator API. It may contain a new secret, so it has no `Debug`.
pub struct ApiResponse {
    pub status: u16,
    /// Seconds by which the standby that was read is behind.
    pub replica_lag: Option<String>,
    pub body: Vec<u8>,
}

/// What a request changed or read, or why it was refused.
pub(crate) type ApiResult = Result<Success, Refusal>;

pub(crate) struct Success {
    pub(crate) status: u16,
    pub(crate) json: Json,
    replica_lag: Option<String>,
}

impl Success {
    /// A line about the standby that was read.
    pub(crate) fn replica_note(&self) -> Markup {
        html! {
            @if let Some(lag) = &self.replica_lag { p.hint { "Read from a standby that is " (lag) " s behind." } }
        }
    }
}

/// An error response.
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) message: String,
    /// Field and message.
    pub(crate) details: Vec<(String, String)>,
    pub(crate) trace_id: String,
}

pub(crate) async fn call(api: &impl AdminApi, request: ApiRequest) -> ApiResult {
    let ApiResponse {
        status,
        replica_lag,
        body,
    } = api.call(request).await;
    if (200..300).contains(&status) {
        return Ok(Success {
            status,
            json: Json::parse(&body),
            replica_lag,
        });
    }
    Err(Refusal::parse(status, &body))
}

impl Refusal {
    /// A refusal of the console itself.
    pub(crate) fn local(message: &str, details: Vec<(String, String)>) -> Self {
        Self {
            status: 409,
            code: String::new(),
            message: message.to_owned(),
            details,
            trace_id: String::new(),
        }
    }

    /// Parses an error response.
    pub(crate) fn parse(status: u16, body: &[u8]) -> Self {
        let json = Json::parse(body);
        let text = |json: &Json, field| json.get(field).text().unwrap_or_default().to_owned();
        let error = json.get("error");
        let details = error.get("details").entries();
        Self {
            status,
            code: text(error, "code"),
            message: text(error, "message"),
            details: details
                .iter()
                .map(|detail| (text(detail, "field"), text(detail, "message")))
                .collect(),
            trace_id: text(error, "trace_id"),
        }
    }
}

pub(crate) async fn get(api: &impl AdminApi, target: String) -> ApiResult {
    let request = ApiRequest {
        method: Method::Get,
        target,
        body: None,
    };
    call(api, request).await
}
