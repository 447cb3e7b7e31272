//! Nothing: the package has only the bench `benches/instructions.rs`.
