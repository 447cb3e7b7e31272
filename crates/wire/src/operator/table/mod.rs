//! Reader of people's tables: CSV in the encodings, separators and line ends that programs write, or NDJSON.
//!
//! What is unambiguous is accepted with a notice; everything else is refused by its cause. A record that does
//! not parse is rejected whole, with its line. No error quotes a line, which may contain a code.

pub mod blocks;
pub mod columns;
pub mod field_splitter;
pub mod line_error;
pub mod notice;
pub mod reader;
pub mod separator;
pub mod text_decoder;
