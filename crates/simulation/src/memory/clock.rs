//! Time of the in-memory database.

use std::time::Duration;

/// Time of the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DbTime(pub(super) Duration);

impl DbTime {
    pub(super) fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    pub(super) fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }

    /// Time since `earlier`; zero if this is earlier.
    pub(super) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    pub(super) fn signed_since(self, earlier: Self) -> time::Duration {
        let signed = |span| time::Duration::try_from(span).expect("the clock is far from its limit");
        signed(self.0) - signed(earlier.0)
    }
}
