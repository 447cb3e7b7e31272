//! Measurements in turns: the service compared with a peer and a Postgres floor, one node with two, orders with and without open
//! consoles.
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

pub mod compare;
pub mod consoles;
pub mod nodes;
pub mod peer;
