//! A resumable check: one statement per step, with the position and the violations found so far as its state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::scan::{Scan, Steps};
use super::{Finding, MAX_ROWS, SCANS, invariants};

/// Rows per range: about half a second.
const ROWS_PER_STEP: u32 = 10_000;

/// Rows per slice: a pass over the table costs about as much as the checks of so many rows.
const ROWS_PER_SLICE: i64 = 1_000_000;

/// Slices are chosen by one byte of some keys.
const MAX_SLICES: i32 = 256;

/// Planner settings of ranges: index probes in the order of the range's index, and hash joins of what they
/// found, whatever the statistics say. A probe is a LATERAL with OFFSET 0.
const RANGE_SETTINGS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; \
    SET enable_mergejoin = off; SET enable_nestloop = off; SET enable_memoize = off; SET work_mem = '64MB'";

/// Planner settings of slices and small tables. Without statistics the planner expects few rows and picks
/// nested loops, with which 40,000 orders take a quarter of an hour.
const TABLE_SETTINGS: &str = "SET enable_seqscan = on; SET enable_bitmapscan = on; SET enable_sort = on; \
    SET enable_mergejoin = on; SET enable_nestloop = off; SET enable_memoize = on; SET work_mem = '64MB'";

/// Position and violations of a check; continues only with the program and the database it began with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyState {
    program: String,
    database: String,
    /// Name of the scan; empty before the first step.
    scan: String,
    /// The key up to which its rows are checked, or the number of its steps that are done.
    position: Vec<String>,
    steps: u64,
    /// Slices of the scan; the tables may shrink before it continues. Zero before its first step.
    slices: i32,
    violations: BTreeMap<String, Vec<String>>,
}

/// What a step has checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyProgress {
    pub scan: &'static str,
    /// Rows of the scan that are checked, about.
    pub rows: u64,
    /// Rows of its tables, as the planner knows them; zero for small tables.
    pub expected: u64,
}

/// Why a saved state cannot be continued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this check was begun by another version of the program or on another database; remove the file to begin a new one"
)]
pub struct ForeignState;

#[derive(Debug)]
pub struct VerifyRun {
    state: VerifyState,
    rows_per_step: u32,
    /// The scan in progress, and what was read at its start.
    current: Option<CurrentScan>,
}

#[derive(Debug, Clone, Copy)]
struct CurrentScan {
    index: usize,
    rows: i64,
}

impl Default for VerifyRun {
    fn default() -> Self {
        Self::with_rows_per_step(ROWS_PER_STEP)
    }
}

impl VerifyRun {
    pub(super) fn with_rows_per_step(rows_per_step: u32) -> Self {
        Self {
            state: VerifyState::default(),
            rows_per_step,
            current: None,
        }
    }

    /// Continues a saved check, or begins one.
    ///
    /// # Errors
    /// [`ForeignState`] inside `Ok` if the state does not belong here.
    pub async fn resume(
        connection: &mut PgConnection,
        saved: Option<VerifyState>,
    ) -> Result<Result<Self, ForeignState>, sqlx::Error> {
        let database: Option<String> = sqlx::query_scalar!(
            r#"SELECT format('%s %s', environment, created_at) AS "identity!" FROM deployment LIMIT 1"#
        )
        .fetch_optional(connection)
        .await?;
        let mut run = Self::default();
        run.state.program = env!("CARGO_PKG_VERSION").to_owned();
        run.state.database = database.unwrap_or_default();
        if let Some(saved) = saved {
            let is_known =
                ["", END].contains(&saved.scan.as_str()) || SCANS.iter().any(|scan| scan.name == saved.scan);
            let is_own = (&saved.program, &saved.database) == (&run.state.program, &run.state.database);
            if !is_own || !is_known {
                return Ok(Err(ForeignState));
            }
            run.state = saved;
        }
        Ok(Ok(run))
    }

    #[must_use]
    pub fn state(&self) -> &VerifyState {
        &self.state
    }

    /// Runs the next statement; `None` at the end.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer, or is not a database of this service. The step can
    /// be repeated.
    pub async fn step(
        &mut self,
        connection: &mut PgConnection,
    ) -> Result<Option<VerifyProgress>, sqlx::Error> {
        let current = match self.current {
            Some(current) => current,
            None => match self.open_scan(connection).await? {
                Some(current) => current,
                None => return Ok(None),
            },
        };
        let scan = &SCANS[current.index];
        let (found, next) = match scan.steps {
            Steps::Ranges {
                last,
                next,
                violations,
                ..
            } => {
                let from = &self.state.position;
                let key = next(from, self.rows_per_step.into());
                let to = key.fetch_optional(&mut *connection).await?;
                let is_last = to.is_none();
                let to = to.unwrap_or_else(|| to_key(last));
                let found = violations(from, &to).fetch_all(&mut *connection).await?;
                (found, (!is_last).then_some(to))
            }
            Steps::Slices(violations) => {
                let (slices, done) = (self.state.slices, self.steps_done());
                let found = violations(done, slices).fetch_all(&mut *connection).await?;
                (found, (done + 1 < slices).then(|| vec![(done + 1).to_string()]))
            }
            Steps::Whole(invariants) => {
                let done = usize::try_from(self.steps_done()).unwrap_or(0);
                let mut found = Vec::new();
                if let Some(invariant) = invariants.get(done) {
                    let rows = (invariant.violations)().fetch_all(&mut *connection).await?;
                    found.extend(rows.into_iter().map(|row| vec![invariant.name.to_owned(), row]));
                }
                let next = done + 1;
                (found, (next < invariants.len()).then(|| vec![next.to_string()]))
            }
        };
        self.record(found);
        self.state.steps += 1;
        let progress = self.progress(scan, current);
        match next {
            Some(position) => self.state.position = position,
            None => self.begin_scan(current.index + 1),
        }
        Ok(Some(progress))
    }

    /// The findings of the steps so far.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let finding = |(name, description)| {
            let mut rows = self.state.violations.get(name).cloned().unwrap_or_default();
            let has_more = rows.len() > MAX_ROWS;
            rows.truncate(MAX_ROWS);
            Finding {
                name,
                description,
                holds: rows.is_empty(),
                rows,
                has_more,
            }
        };
        invariants().map(finding).collect()
    }

    fn begin_scan(&mut self, index: usize) {
        self.current = None;
        self.state.steps = 0;
        self.state.slices = 0;
        self.state.scan = SCANS.get(index).map_or(END, |scan| scan.name).to_owned();
        self.state.position = match SCANS.get(index).map(|scan| &scan.steps) {
            Some(Steps::Ranges { first, .. }) => to_key(first),
            _ => vec!["0".to_owned()],
        };
    }

    /// Sets the planner's options and reads the size of the tables.
    async fn open_scan(&mut self, connection: &mut PgConnection) -> Result<Option<CurrentScan>, sqlx::Error> {
        if self.state.scan.is_empty() {
            self.begin_scan(0);
        }
        let Some(index) = SCANS.iter().position(|scan| scan.name == self.state.scan) else {
            return Ok(None);
        };
        let scan = &SCANS[index];
        let settings = match scan.steps {
            Steps::Ranges { .. } => RANGE_SETTINGS,
            Steps::Slices(_) | Steps::Whole(_) => TABLE_SETTINGS,
        };
        // Not checked at compile time: several statements at once.
        sqlx::raw_sql(settings).execute(&mut *connection).await?;
        let tables: Vec<_> = scan.tables.iter().map(|&table| table.to_owned()).collect();
        let rows = sqlx::query_scalar!(
            r#"SELECT COALESCE(sum(GREATEST(c.reltuples, 0)), 0)::bigint AS "rows!"
                 FROM pg_class AS c
                WHERE c.oid = ANY ($1::text[]::regclass[])"#,
            &tables,
        );
        let rows = rows.fetch_one(connection).await?;
        if self.state.slices == 0 {
            self.state.slices = slices(rows);
        }
        let current = CurrentScan { index, rows };
        self.current = Some(current);
        Ok(Some(current))
    }

    fn steps_done(&self) -> i32 {
        let done = self.state.position.first().and_then(|text| text.parse().ok());
        done.unwrap_or(0)
    }

    fn record(&mut self, found: Vec<Vec<String>>) {
        for pair in found {
            let Ok([name, row]) = <[String; 2]>::try_from(pair) else {
                continue;
            };
            let rows = self.state.violations.entry(name).or_default();
            if rows.len() <= MAX_ROWS {
                rows.push(row);
            }
        }
    }

    fn progress(&self, scan: &Scan, current: CurrentScan) -> VerifyProgress {
        let expected = u64::try_from(current.rows).unwrap_or(0);
        let done = match scan.steps {
            Steps::Ranges { .. } => self.state.steps * u64::from(self.rows_per_step),
            Steps::Slices(_) => {
                let slices = u64::try_from(self.state.slices).unwrap_or(1);
                expected * self.state.steps / slices.max(1)
            }
            Steps::Whole(_) => 0,
        };
        VerifyProgress {
            scan: scan.name,
            rows: done,
            expected,
        }
    }
}

/// Stands for the end of the check in a state.
const END: &str = "end";

fn to_key(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// Number of slices of a table: a power of two.
fn slices(rows: i64) -> i32 {
    let wanted = u64::try_from(rows / ROWS_PER_SLICE + 1).unwrap_or(1);
    i32::try_from(wanted.next_power_of_two()).map_or(MAX_SLICES, |slices| slices.min(MAX_SLICES))
}
