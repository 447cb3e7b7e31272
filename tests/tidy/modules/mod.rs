//! Rules on the modules of a crate, which read its sources with a parser.

mod attributes;
mod circles;
mod pure_cores;
mod references;
mod resolve;
mod tests;
mod tree;

pub(crate) use self::circles::module_circles;
pub(crate) use self::pure_cores::{PURE_CORES, impure_references};
pub(crate) use self::tree::ModuleTree;
