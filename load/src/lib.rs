//! Load generator and auditor: scenarios, load runs with an audit, reports.
//!
//! Rule: this crate and those that it depends on share no code with the service, so a bug of the service
//! cannot hide in the code that checks it.
//!
//! Modules, each importing only modules below it:
//!
//! | Module | Subject |
//! |---|---|
//! | [`guard`] | counts of an order under callgrind, and their record |
//! | [`compare`] | service, peer and floor in turns |
//! | [`peer`] | reference implementation of the order API, and the floor |
//! | [`ab`] | two programs in alternating turns |
//! | [`sweep`] | highest rate within bounds |
//! | [`paired`] | figures of turns, compared within rounds |
//! | [`scenario_run`] | scenario runner, prefilled databases |
//! | [`report`] | report of runs as text, JSON and HTML, thresholds, comparison with an earlier report |
//! | [`follow_up`] | pauses of Postgres, restarts, replays, webhooks, consoles |
//! | [`audit`] | audit of everything that the service acknowledged |
//! | [`run`] | load driver, progress, resource monitor, metrics |
//! | [`tally`] | latencies, outcomes and acknowledgements of a run |
//! | [`traffic`] | scenario files and the requests drawn from them |
//! | [`deployment`] | private service with seed data |
//! | [`resources`] | cost per order, conditions of a measurement |
//! | [`statistics`] | statistics of repeated measurements |
//! | [`condition`] | condition on a figure of a report |
//! | [`runtime`] | runtime of one thread |
//! | [`stoppable_thread`] | thread that runs until its owner stops it |

pub mod ab;
pub mod audit;
pub mod compare;
pub mod condition;
pub mod deployment;
pub mod follow_up;
pub mod guard;
pub mod paired;
pub mod peer;
pub mod report;
pub mod resources;
pub mod run;
pub mod runtime;
pub mod scenario_run;
pub mod statistics;
pub mod stoppable_thread;
pub mod sweep;
pub mod tally;
pub mod traffic;
