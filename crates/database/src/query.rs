//! Parts of queries: limits and time ranges.

use sqlx::{Postgres, QueryBuilder};
use vouchsafe_domain::period::Period;

/// Converts a count or limit to an SQL `bigint`.
#[must_use]
pub fn to_bigint(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Adds the conditions of a time range on a timestamp column.
pub fn restrict_period(period: Period, query: &mut QueryBuilder<Postgres>, column: &str) {
    if let Some(from) = period.from {
        query.push(format_args!(" AND {column} >= ")).push_bind(from);
    }
    if let Some(to) = period.to {
        query.push(format_args!(" AND {column} < ")).push_bind(to);
    }
}
