//! SQL conditions of a time range.

use sqlx::{Postgres, QueryBuilder};
use vouchsafe_domain::period::Period;

/// Adds the conditions on a timestamp column.
pub(super) fn restrict(period: Period, query: &mut QueryBuilder<Postgres>, column: &str) {
    if let Some(from) = period.from {
        query.push(format_args!(" AND {column} >= ")).push_bind(from);
    }
    if let Some(to) = period.to {
        query.push(format_args!(" AND {column} < ")).push_bind(to);
    }
}
