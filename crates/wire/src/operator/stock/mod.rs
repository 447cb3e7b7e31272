//! Bodies of `/stock`, and readers of imported files.

pub mod blocks;
pub mod columns;
pub mod csv;
pub mod expiries;
pub mod field_splitter;
pub mod format;
pub mod import;
pub mod level;
pub mod named_fields;
mod ndjson;
pub mod quarantine;
pub mod row;
pub mod void;
