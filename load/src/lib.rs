//! What does a partner see of Vouchsafe, and does it hold? The wire seen from outside: a signer, a client,
//! a history of what was asked and answered with a checker over it, and a load run with its audit.
//!
//! Rule: nothing here comes from the service's own code. A mistake made there is not made here a second time,
//! so the black-box tests and the audit can be believed.

pub mod aftermath;
pub mod apart;
pub mod arrivals;
pub mod audit;
pub mod books;
pub mod check;
pub mod client;
pub mod compare;
pub mod costs;
pub mod database;
pub mod drive;
mod facts;
pub mod floor;
mod gate;
pub mod grow;
pub mod grown;
pub mod growth;
pub mod history;
pub mod keeps;
pub mod machine;
pub mod money;
pub mod nodes;
pub mod origin;
mod outcome;
pub mod partner;
pub mod partner_file;
pub mod pauses;
pub mod peer;
pub mod play;
pub mod progress;
pub mod receiver;
pub mod recorder;
pub mod replays;
pub mod report;
pub mod restart;
pub mod run;
pub mod scenario;
mod sent;
pub mod signer;
pub mod stand;
pub mod tally;
pub mod timeline;
pub mod traffic;
pub mod watch;
mod weights;
pub mod wire;
pub mod workload;
