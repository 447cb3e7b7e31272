//! Journal records per commit, from the service's `/metrics`.

/// Histogram of journal records per commit.
const BATCH_RECORDS: &str = "vouchsafe_journal_batch_records";

/// Cumulative counts of journal commits and of the records in them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JournalBatchCounters {
    records: f64,
    commits: f64,
}

impl JournalBatchCounters {
    /// Parses `/metrics`; `None` if the histogram is missing.
    pub(crate) fn parse(metrics: &str) -> Option<Self> {
        let value = |suffix: &str| {
            let name = format!("{BATCH_RECORDS}_{suffix} ");
            let line = metrics.lines().find_map(|line| line.strip_prefix(&*name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Self {
            records: value("sum")?,
            commits: value("count")?,
        })
    }

    /// Mean number of records per commit since an earlier reading.
    pub(super) fn mean_since(self, earlier: Self) -> Option<f64> {
        let commits = self.commits - earlier.commits;
        (commits > 0.0).then(|| (self.records - earlier.records) / commits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_mean_covers_commits_between_two_readings() {
        let counters = |sum, count| {
            let text =
                format!("# TYPE x histogram\n{BATCH_RECORDS}_sum {sum}\n{BATCH_RECORDS}_count {count}\n");
            JournalBatchCounters::parse(&text).unwrap()
        };
        let (earlier, now) = (counters("100.0", 50), counters("1300.0", 60));
        assert_eq!(now.mean_since(earlier), Some(120.0));
        assert_eq!(earlier.mean_since(earlier), None);
        assert_eq!(JournalBatchCounters::parse("up 1\n"), None);
    }
}
