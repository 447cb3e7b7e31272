//! From when to when: the span of time that a list is asked for.

use sqlx::{Postgres, QueryBuilder};
use time::OffsetDateTime;

/// A span of time, open at each end that is not given. Both are whole microseconds, as all times are that it is compared
/// with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Period {
    /// From this moment on.
    pub from: Option<OffsetDateTime>,
    pub to: Option<OffsetDateTime>,
}

impl Period {
    /// Adds the conditions on a column of times.
    pub(super) fn restrict(self, query: &mut QueryBuilder<Postgres>, column: &str) {
        if let Some(from) = self.from {
            query.push(format_args!(" AND {column} >= ")).push_bind(from);
        }
        if let Some(to) = self.to {
            query.push(format_args!(" AND {column} < ")).push_bind(to);
        }
    }
}
