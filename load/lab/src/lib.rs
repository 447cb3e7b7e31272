//! Measurements in turns: the service compared with a peer and a Postgres floor.
//!
//! Rule: this crate shares no code with the service, so the peer cannot inherit its speed or its bugs.
//!
//! Modules, each importing only modules below it:
//!
//! | Module | Subject |
//! |---|---|
//! | [`compare`] | service, peer and floor in turns |
//! | [`peer`] | the peer and its reduced variants |

pub mod compare;
pub mod peer;
