//! Load generator and auditor: request signer, HTTP client, operation history with a checker, load runs with an
//! audit.
//!
//! Rule: this crate shares no code with the service, so a bug of the service cannot hide in the code that checks it.

pub mod pause_recovery;
pub mod latency_breakdown;
pub mod arrivals;
pub mod audit;
pub mod acknowledgements;
pub mod check;
pub mod client;
pub mod compare;
pub mod costs;
pub mod database;
pub mod load_run;
mod facts;
pub mod floor;
mod pacing;
pub mod prefill;
pub mod grown;
pub mod growth;
pub mod history;
pub mod run_history;
pub mod machine;
pub mod money;
pub mod nodes;
pub mod origin;
mod outcome;
pub mod partner;
pub mod partner_file;
pub mod pauses;
pub mod peer;
pub mod scenario_run;
pub mod progress;
pub mod webhook_receiver;
pub mod recorder;
pub mod replays;
pub mod report;
pub mod restart;
pub mod run;
pub mod scenario;
mod sent_orders;
pub mod signer;
pub mod deployment;
pub mod tally;
pub mod timeline;
pub mod traffic;
pub mod resource_monitor;
mod weights;
pub mod wire;
pub mod workload;
