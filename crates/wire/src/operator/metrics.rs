//! The operation of `/metrics`, and its media types.

use crate::error_code::Code;
use crate::operation::{Method, Operation};

/// Open to the addresses of the settings.
pub const GET_METRICS: Operation<(), String, ()> =
    Operation::new(Method::Get, "/metrics", (), "getMetrics", "Get metrics")
        .errors(&[Code::InvalidCredentials, Code::IpNotAllowed]);

/// Prometheus text 0.0.4.
pub const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `OpenMetrics` 1.0.0.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
