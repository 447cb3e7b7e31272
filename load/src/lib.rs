//! Load generator and auditor: request signer, HTTP client, operation history with a checker, load runs with an
//! audit.
//!
//! Rule: this crate shares no code with the service, so a bug of the service cannot hide in the code that checks it.

pub mod acknowledgements;
pub mod arrivals;
pub mod audit;
pub mod check;
pub mod client;
pub mod compare;
pub mod costs;
pub mod database;
pub mod deployment;
mod facts;
pub mod grown;
pub mod growth;
mod histogram;
pub mod history;
pub mod latency_breakdown;
pub mod load_run;
pub mod machine;
pub mod metrics;
pub mod money;
pub mod nodes;
pub mod origin;
mod outcome;
pub mod pace;
mod pacing;
pub mod partner;
pub mod partner_file;
pub mod pause_recovery;
pub mod pauses;
pub mod peer;
pub mod prefill;
pub mod progress;
pub mod recorder;
pub mod replays;
pub mod report;
pub mod request;
pub mod resource_monitor;
pub mod restart;
pub mod run;
pub mod run_history;
pub mod run_result;
pub mod scenario;
pub mod scenario_run;
mod sent_orders;
pub mod signer;
pub mod tally;
pub mod timeline;
pub mod traffic;
pub mod webhook_receiver;
mod weights;
pub mod wire;
pub mod workload;
