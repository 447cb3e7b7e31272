//! Tracing target of exported spans.

/// Target of every exported span, the request spans of the service included. The engine's spans have level
/// DEBUG, so they cost nothing while no subscriber enables them. Log output filters this target out.
pub const SPANS: &str = "vouchsafe::telemetry::trace";
