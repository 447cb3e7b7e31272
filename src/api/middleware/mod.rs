//! Middleware and extractors of both listeners.

pub mod authentication;
pub mod load_shedding;
pub mod operator;
pub mod rate_limit_headers;
pub mod readiness_gate;
pub mod sandbox_observer;
pub mod trace;
