//! Domain types: plain data without actors, storage or network.

pub mod allowlist;
pub mod api_scope;
pub mod approval;
#[cfg(feature = "clap")]
pub mod arguments;
pub mod audit;
pub mod audit_action;
pub mod audit_export;
pub mod audit_log;
pub mod cap;
pub mod catalogue;
pub mod category;
pub mod certification;
pub mod change_request;
pub mod clock;
pub mod deceptive;
pub mod delivery;
pub mod envelope;
pub mod error_chain;
pub mod event;
pub mod event_kind;
pub mod expiry_policy;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod idempotency;
pub mod identifier;
pub mod ids;
pub mod iso_date;
pub mod json_depth;
#[cfg(test)]
mod label_tests;
mod labels;
pub mod ledger;
pub mod limits;
pub mod money;
pub mod node;
pub mod operator;
pub mod operator_session;
pub mod order;
pub mod overview;
pub mod partner;
pub mod payout;
pub mod period;
pub mod product;
pub mod purchase;
pub mod reconciliation;
pub mod replication;
pub mod revocation;
pub mod sample_event;
pub mod sandbox_fault;
#[cfg(feature = "utoipa")]
pub mod schema;
pub mod scope;
pub mod search;
pub mod spans;
#[cfg(feature = "sqlx")]
mod sql;
pub mod stock;
pub mod store_error;
pub mod stored;
#[cfg(feature = "utoipa")]
pub mod text_schema;
pub mod timestamp;
pub mod transition;
pub mod vendor;
pub mod voucher;
pub mod wallet;
pub mod webhook;
pub mod whole_number;
