//! Time range of a list filter.

use sqlx::{Postgres, QueryBuilder};
use time::OffsetDateTime;

/// A time range, unbounded at an end that is `None`. Both ends are whole microseconds, like all stored times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Period {
    /// Inclusive.
    pub from: Option<OffsetDateTime>,
    /// Exclusive.
    pub to: Option<OffsetDateTime>,
}

impl Period {
    /// Adds the conditions on a timestamp column.
    pub(super) fn restrict(self, query: &mut QueryBuilder<Postgres>, column: &str) {
        if let Some(from) = self.from {
            query.push(format_args!(" AND {column} >= ")).push_bind(from);
        }
        if let Some(to) = self.to {
            query.push(format_args!(" AND {column} < ")).push_bind(to);
        }
    }
}
