//! Journal records per commit, from the service's `/metrics`.

/// Histogram of records per commit.
const RECORDS: &str = "vouchsafe_journal_batch_records";

/// Cumulative counts of commits and records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JournalBatchCounters {
    records: f64,
    commits: f64,
}

impl JournalBatchCounters {
    /// Parses `/metrics`; `None` if the histogram is missing.
    #[must_use]
    pub fn parse(metrics: &str) -> Option<Self> {
        Some(Self {
            records: metric_value(metrics, &format!("{RECORDS}_sum "))?,
            commits: metric_value(metrics, &format!("{RECORDS}_count "))?,
        })
    }

    /// Mean number of records per commit since an earlier reading.
    #[must_use]
    pub fn mean_since(self, earlier: Self) -> Option<f64> {
        let commits = self.commits - earlier.commits;
        (commits > 0.0).then(|| (self.records - earlier.records) / commits)
    }
}

fn metric_value(metrics: &str, name: &str) -> Option<f64> {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_covers_commits_between_two_readings() {
        let text = |sum, count| {
            format!(
                "# TYPE vouchsafe_journal_batch_records histogram\nvouchsafe_journal_batch_records_sum {sum}\n\
                 vouchsafe_journal_batch_records_count {count}\n"
            )
        };
        let earlier = JournalBatchCounters::parse(&text("100.0", 50)).unwrap();
        let now = JournalBatchCounters::parse(&text("1300.0", 60)).unwrap();
        assert_eq!(now.mean_since(earlier), Some(120.0));
        assert_eq!(earlier.mean_since(earlier), None);
        assert_eq!(JournalBatchCounters::parse("up 1\n"), None);
    }
}
