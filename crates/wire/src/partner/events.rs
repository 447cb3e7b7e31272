//! Filters of `GET /events`. Its response is a page of envelopes.

pub const FILTERS: [&str; 1] = ["after"];
