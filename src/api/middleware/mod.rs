//! Middleware and extractors of both listeners.

mod address_limit;
pub(crate) mod api_scope;
pub(crate) mod authentication;
pub(crate) mod compression;
pub(crate) mod listener_peers;
pub(crate) mod listeners;
mod load_shedding;
pub(crate) mod operator;
mod rate_limit_headers;
mod readiness_gate;
mod refusals;
pub(crate) mod request_origin;
pub(crate) mod response_delivery;
pub(crate) mod sandbox_observer;
pub(crate) mod security_events;
pub(crate) mod security_headers;
pub(crate) mod trace;
