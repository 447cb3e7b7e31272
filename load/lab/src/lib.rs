//! Measurements in turns: the service compared with a peer and a Postgres floor, one node with two, orders with and without open
//! consoles; and the verdict on timing side channels.
//!
//! Rule: this crate shares no code with the service, so the peer cannot inherit its speed or its bugs.
//!
//! Modules, each importing only modules below it:
//!
//! | Module | Subject |
//! |---|---|
//! | [`consoles`] | orders with and without open consoles, with many live actors |
//! | [`nodes`] | throughput of two nodes, and a model of it |
//! | [`compare`] | service, peer, floor and signature verification in turns |
//! | [`peer`] | the peer and its reduced variants |
//! | [`timing_verdict`] | whether two kinds of requests take different times, for the bench `auth_timing` |

pub mod compare;
pub mod consoles;
pub mod nodes;
pub mod peer;
pub mod timing_verdict;
