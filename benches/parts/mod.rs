//! Parts that several benches share.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "no bench uses all parts; a bench may panic, and runs on its own thread"
)]

pub(crate) mod always_commits;
pub(crate) mod bench_engine;
pub(crate) mod growth;
pub(crate) mod signed_order;
pub(crate) mod stocked_shelf;
