//! Identities of nodes and lanes.

use std::sync::Arc;

/// An incarnation of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) node: Arc<str>,
    pub(super) incarnation: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaneId {
    pub(super) node: Arc<str>,
    pub(super) lane: u16,
}
