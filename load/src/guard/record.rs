//! Committed record of counts, and the comparison of two sets of counts.

use std::fmt;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::{Counts, Toolchain};
use crate::report::{Verdict, write_output_file};

/// Limit of the growth of a count by one change, and below it what other work on the machine causes.
const MAX_GROWTH: f64 = 0.03;

/// Limit of the growth since the last release, by all changes together.
const MAX_GROWTH_SINCE_RELEASE: f64 = 0.05;

/// Limit of the growth of statements and commits per order, of which one order alone has about one.
const MAX_MORE_STATEMENTS: f64 = 0.5;

/// Limit of the growth of commits per order with several connections, above which the instructions are not
/// compared: on a busy machine fewer orders share a batch, whose fixed cost each of them then bears more of.
const MAX_GROWTH_OF_SHARED_COMMITS: f64 = 0.1;

/// Whether these are instructions of orders of which fewer shared a batch now.
fn has_smaller_batches(figure: &str, before: &Counts, now: &Counts) -> bool {
    let Some(("instructions", load)) = figure.split_once('.').filter(|(_, load)| *load != "1") else {
        return false;
    };
    let commits = format!("commits.{load}");
    let growth = before.get(&commits).zip(now.get(&commits));
    growth.is_some_and(|(before, now)| now / before - 1.0 > MAX_GROWTH_OF_SHARED_COMMITS)
}

/// Limit of the growth of a figure; `limit` is that of steady ones. `None` if it depends on time: how many
/// orders share a batch, and how often threads wait.
fn max_growth(figure: &str, before: f64, limit: f64) -> Option<f64> {
    match figure.split_once('.')? {
        ("statements" | "commits", "1" | "64_skus") => Some(MAX_MORE_STATEMENTS / before),
        // Its chunks are claimed in one round or in another.
        (_, "64_skus") => None,
        ("instructions", _) | ("allocations" | "wal_bytes", "1") => Some(limit),
        _ => None,
    }
}

/// Counts of the last release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Release {
    pub version: String,
    pub counts: Counts,
}

/// Content of the committed file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub toolchain: Toolchain,
    pub release: Release,
    pub counts: Counts,
}

/// One figure before and now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    pub figure: String,
    pub before: f64,
    pub now: f64,
    /// `None` if the figure is reported only.
    pub max_growth: Option<f64>,
}

impl Change {
    /// Growth relative to the earlier count.
    fn growth(&self) -> f64 {
        if self.before == self.now {
            0.0
        } else {
            self.now / self.before - 1.0
        }
    }

    fn exceeds_limit(&self) -> bool {
        self.max_growth.is_some_and(|limit| self.growth() > limit)
    }

    /// Whether the count fell by as much as a growth that fails.
    fn is_drop(&self) -> bool {
        self.max_growth.is_some_and(|limit| self.growth() < -limit)
    }
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What the counts are compared with, for example `the record`.
    pub base: String,
    pub changes: Vec<Change>,
}

impl Comparison {
    /// Compares the figures that both have.
    #[must_use]
    pub fn between(base: impl Into<String>, before: &Counts, now: &Counts) -> Self {
        Self::with_limit(base, before, now, MAX_GROWTH)
    }

    fn with_limit(base: impl Into<String>, before_counts: &Counts, now: &Counts, limit: f64) -> Self {
        let change = |(figure, before): (&String, &f64)| {
            Some(Change {
                figure: figure.clone(),
                before: *before,
                now: *now.get(figure)?,
                max_growth: max_growth(figure, *before, limit)
                    .filter(|_| !has_smaller_batches(figure, before_counts, now)),
            })
        };
        Self {
            base: base.into(),
            changes: before_counts.iter().filter_map(change).collect(),
        }
    }

    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.changes.iter().any(Change::exceeds_limit) {
            Verdict::ThresholdMissed
        } else {
            Verdict::Passed
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<26}{:>14}{:>14}{:>9}",
            "per order", self.base, "now", "change"
        )?;
        for change in &self.changes {
            let Change {
                figure, before, now, ..
            } = change;
            let mark = if change.exceeds_limit() {
                "  ABOVE THE LIMIT"
            } else if change.max_growth.is_none() {
                "  reported only"
            } else {
                ""
            };
            let growth = change.growth() * 100.0;
            writeln!(f, "{figure:<26}{before:>14.2}{now:>14.2}{growth:>+8.1} %{mark}")?;
        }
        Ok(())
    }
}

impl Record {
    /// # Errors
    /// If the file cannot be read or has another form.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let read = || anyhow::Ok(serde_json::from_slice(&std::fs::read(path)?)?);
        read().with_context(|| format!("cannot read the record `{}`", path.display()))
    }

    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(&self.rounded())?;
        text.push('\n');
        write_output_file(path, text.as_bytes())
    }

    /// Digits below the noise would change at each writing.
    fn rounded(&self) -> Self {
        let round = |counts: &Counts| -> Counts {
            let rounded = |count: f64| {
                if count >= 100.0 {
                    count.round()
                } else {
                    (count * 1_000.0).round() / 1_000.0
                }
            };
            counts
                .iter()
                .map(|(name, count)| (name.clone(), rounded(*count)))
                .collect()
        };
        Self {
            release: Release {
                version: self.release.version.clone(),
                counts: round(&self.release.counts),
            },
            counts: round(&self.counts),
            ..self.clone()
        }
    }

    /// Comparisons with the record and with the last release.
    #[must_use]
    pub fn compare(&self, now: &Counts) -> [Comparison; 2] {
        let release = format!("release {}", self.release.version);
        [
            Comparison::between("record", &self.counts, now),
            Comparison::with_limit(release, &self.release.counts, now, MAX_GROWTH_SINCE_RELEASE),
        ]
    }

    /// Whether a count differs from the record by more than the limit in either direction.
    #[must_use]
    pub fn differs(&self, now: &Counts) -> bool {
        let changes = Comparison::between("record", &self.counts, now).changes;
        changes
            .iter()
            .any(|change| change.exceeds_limit() || change.is_drop())
    }

    /// Takes of two measurements of each figure the one that is closer to the record: a real difference is in
    /// both.
    #[must_use]
    pub fn closer(&self, first: &Counts, second: &Counts) -> Counts {
        let closer = |(figure, one): (&String, &f64)| {
            let other = second.get(figure).unwrap_or(one);
            let recorded = self.counts.get(figure).unwrap_or(one);
            let is_closer = (one - recorded).abs() <= (other - recorded).abs();
            (figure.clone(), if is_closer { *one } else { *other })
        };
        first.iter().map(closer).collect()
    }

    /// Lowers each count that fell by more than the limit, so that it cannot grow back unseen, and adds each
    /// that the record lacks; returns whether there was one.
    pub fn ratchet(&mut self, now: &Counts) -> bool {
        let changes = Comparison::between("record", &self.counts, now).changes;
        let drops = changes.into_iter().filter(Change::is_drop);
        let mut written: Counts = drops.map(|change| (change.figure, change.now)).collect();
        let new = now
            .iter()
            .filter(|(figure, _)| !self.counts.contains_key(*figure));
        written.extend(new.map(|(figure, count)| (figure.clone(), *count)));
        let has_changes = !written.is_empty();
        self.counts.extend(written);
        has_changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(instructions: f64, system_calls: f64) -> Counts {
        [
            ("instructions.16", instructions),
            ("system_calls.16", system_calls),
        ]
        .map(|(name, count)| (name.to_owned(), count))
        .into()
    }

    fn record(release: f64, counted: f64) -> Record {
        let [rustc, profile, valgrind, postgres] = ["1.95.0", "debug", "3.19.0", "15.8"].map(str::to_owned);
        Record {
            toolchain: Toolchain {
                rustc,
                profile,
                valgrind,
                postgres,
            },
            release: Release {
                version: "0.2.0".to_owned(),
                counts: counts(release, 9.0),
            },
            counts: counts(counted, 9.0),
        }
    }

    fn verdicts(record: &Record, now: &Counts) -> [Verdict; 2] {
        record.compare(now).map(|comparison| comparison.verdict())
    }

    #[test]
    fn growth_above_three_percent_fails_and_unsteady_figures_do_not() {
        let record = record(1_000.0, 1_000.0);
        assert_eq!(verdicts(&record, &counts(1_029.0, 99.0)), [Verdict::Passed; 2]);
        let [change, release] = verdicts(&record, &counts(1_031.0, 9.0));
        assert_eq!((change, release), (Verdict::ThresholdMissed, Verdict::Passed));
    }

    #[test]
    fn small_changes_add_up_to_the_limit_since_the_release() {
        let record = record(1_000.0, 1_030.0);
        assert_eq!(verdicts(&record, &counts(1_049.0, 9.0)), [Verdict::Passed; 2]);
        let [change, release] = verdicts(&record, &counts(1_055.0, 9.0));
        assert_eq!((change, release), (Verdict::Passed, Verdict::ThresholdMissed));
    }

    #[test]
    fn record_follows_drops_and_new_figures_and_not_noise() {
        let mut record = record(1_000.0, 1_000.0);
        assert!(!record.ratchet(&counts(971.0, 1.0)));
        assert!(record.ratchet(&counts(900.0, 1.0)));
        assert_eq!(record.counts, counts(900.0, 9.0));
        assert_eq!(
            verdicts(&record, &counts(930.0, 9.0))[0],
            Verdict::ThresholdMissed
        );
        record.counts.remove("instructions.16");
        assert!(record.ratchet(&counts(900.0, 9.0)));
        assert_eq!(record.counts, counts(900.0, 9.0));
    }

    #[test]
    fn difference_of_one_measurement_does_not_count() {
        let record = record(1_000.0, 1_000.0);
        let (high, low) = (counts(1_090.0, 9.0), counts(985.0, 9.0));
        assert!(record.differs(&high) && record.differs(&counts(960.0, 9.0)) && !record.differs(&low));
        assert_eq!(record.closer(&high, &low), low);
        assert_eq!(record.closer(&high, &Counts::new()), high);
    }

    #[test]
    fn one_more_statement_per_order_fails_and_polls_do_not() {
        for (figure, now, expected) in [
            ("statements.1", 1.2, Verdict::Passed),
            ("statements.1", 2.0, Verdict::ThresholdMissed),
            ("statements.16", 2.0, Verdict::Passed),
            ("statements.64_skus", 1.4, Verdict::Passed),
            ("instructions.64_skus", 1.4, Verdict::Passed),
            ("commits.64_skus", 1.6, Verdict::ThresholdMissed),
            ("idle_statements_per_s", 9.0, Verdict::Passed),
        ] {
            let of = |count| Counts::from([(figure.to_owned(), count)]);
            let verdict = Comparison::between("record", &of(1.0), &of(now)).verdict();
            assert_eq!(verdict, expected, "{figure} {now}");
        }
    }

    #[test]
    fn instructions_of_smaller_batches_are_not_compared() {
        let of = |instructions, commits| {
            Counts::from([
                ("instructions.16".to_owned(), instructions),
                ("commits.16".to_owned(), commits),
            ])
        };
        for (commits, expected) in [(0.16, Verdict::ThresholdMissed), (0.23, Verdict::Passed)] {
            let compared = Comparison::between("record", &of(1_000.0, 0.155), &of(1_050.0, commits));
            assert_eq!(compared.verdict(), expected, "{commits}");
        }
    }

    #[test]
    fn record_reads_back_as_written_and_names_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("guard.json");
        let record = record(1_000.0, 1_000.0);
        record.write(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap(), record);
        let text = record.compare(&counts(1_100.0, 9.0))[0].to_string();
        assert!(
            text.contains("instructions.16") && text.contains("+10.0 %  ABOVE THE LIMIT"),
            "{text}"
        );
        std::fs::write(&path, "{}").unwrap();
        let error = format!("{:#}", Record::read(&path).unwrap_err());
        assert!(error.contains("guard.json"), "{error}");
    }
}
