//! Scans: statements that check a range of a table, a slice of its rows, or a small table as a whole.
//!
//! A statement reads one snapshot and lasts for about a second, so it delays neither vacuum nor the pruning
//! of rows that every order updates. What it compares is either in one range, in the same order in both
//! tables (the debits and the first events of a wallet), or found by an index.

use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::QueryScalar;

use super::Invariant;
pub(super) use super::{MAX_ROWS, to_bigint};

/// A statement; its rows are pairs of an invariant's name and a violation.
pub(super) type Violations = QueryScalar<'static, Postgres, Vec<String>, PgArguments>;

/// A key in a table's order, one text per column.
pub(super) type Key = QueryScalar<'static, Postgres, Vec<String>, PgArguments>;

/// An invariant's name and, at its first condition, its description.
pub(super) type Condition = (&'static str, Option<&'static str>);

pub(super) struct Scan {
    pub(super) name: &'static str,
    /// Tables whose sizes determine the number of steps.
    pub(super) tables: &'static [&'static str],
    pub(super) conditions: &'static [Condition],
    pub(super) steps: Steps,
}

pub(super) enum Steps {
    /// Ranges of a key: above the first one, up to the second one.
    Ranges {
        first: &'static [&'static str],
        last: &'static [&'static str],
        /// The key of the row that is so many rows behind a key, or no row.
        next: fn(&[String], i64) -> Key,
        violations: fn(&[String], &[String]) -> Violations,
    },
    /// The rows of one hash value, for conditions without a common order. The number of slices is a power of
    /// two.
    Slices(fn(slice: i32, slices: i32) -> Violations),
    /// One statement per invariant.
    Whole(&'static [Invariant]),
}

impl Scan {
    pub(super) const fn whole(name: &'static str, invariants: &'static [Invariant]) -> Self {
        Self {
            name,
            tables: &[],
            conditions: &[],
            steps: Steps::Whole(invariants),
        }
    }
}

macro_rules! description {
    () => {
        None
    };
    ($description:literal) => {
        Some($description)
    };
}

/// The statement of some conditions. A further condition of an invariant has no description.
///
/// MATERIALIZED hides the limit from the planner, which would else expect to stop early and choose a slow
/// plan.
macro_rules! violations {
    (
        $with:literal, [$($argument:expr),*], $limit:literal,
        $($name:literal $(: $description:literal)? => $sql:literal,)+
    ) => {
        sqlx::query_scalar!(
            $with
                + "violations (name, what) AS MATERIALIZED (SELECT NULL::text, NULL::text WHERE false"
                + $(" UNION ALL SELECT '" + $name + "', what FROM (" + $sql + ") AS v (what)" +)+
                r#") SELECT ARRAY[v.name, v.what] AS "violation!"
                       FROM (SELECT *, row_number() OVER (PARTITION BY name) AS place FROM violations) AS v
                      WHERE v.place <= "#
                + $limit,
            $($argument,)*
            to_bigint(MAX_ROWS + 1),
        )
    };
}

/// A scan by ranges. Parameters: $1 and $2 are the keys, in `next` the key and a number of rows.
macro_rules! scan {
    (
        $scan:literal, tables: $tables:expr, first: $first:expr, last: $last:expr, next: $next:literal, with: $with:literal,
        $($name:literal $(: $description:literal)? => $sql:literal,)+
    ) => {
        Scan {
            name: $scan,
            tables: &$tables,
            conditions: &[$(($name, description!($($description)?)),)+],
            steps: Steps::Ranges {
                first: &$first,
                last: &$last,
                next: |from, rows| sqlx::query_scalar!($next, from, rows),
                violations: |from, to| {
                    violations!($with, [from, to], "$3", $($name $(: $description)? => $sql,)+)
                },
            },
        }
    };
}

/// A scan by slices. Parameters: $1 is the slice, $2 the number of slices.
macro_rules! sliced_scan {
    (
        $scan:literal, tables: $tables:expr, with: $with:literal,
        $($name:literal $(: $description:literal)? => $sql:literal,)+
    ) => {
        Scan {
            name: $scan,
            tables: &$tables,
            conditions: &[$(($name, description!($($description)?)),)+],
            steps: Steps::Slices(|slice, slices| {
                violations!($with, [slice, slices], "$3", $($name $(: $description)? => $sql,)+)
            }),
        }
    };
}

pub(super) use {description, scan, sliced_scan, violations};

/// Keys below and above every UUID that the service generates.
pub(super) const FIRST_UUID: &str = "00000000-0000-0000-0000-000000000000";
pub(super) const LAST_UUID: &str = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/// Keys below and above every number.
pub(super) const FIRST_NUMBER: &str = "-9223372036854775808";
pub(super) const LAST_NUMBER: &str = "9223372036854775807";
