//! What does a partner see of Vouchsafe, and does it hold? The wire seen from outside: a signer, a client,
//! a history of what was asked and answered with a checker over it, and a load run with its audit.
//!
//! Rule: nothing here comes from the service's own code. A mistake made there is not made here a second time,
//! so the black-box tests and the audit can be believed.

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
