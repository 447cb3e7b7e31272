//! How many records does a commit of the service have? From its own counters, as `/metrics` shows them to operators.

/// The name of the histogram of records by commit.
const RECORDS: &str = "vouchsafe_journal_batch_records";

/// Commits so far, and the records in them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JournalBatchCounters {
    records: f64,
    commits: f64,
}

impl JournalBatchCounters {
    /// Reads the text of `/metrics`; `None` if it does not say.
    #[must_use]
    pub fn parse(metrics: &str) -> Option<Self> {
        Some(Self {
            records: value(metrics, &format!("{RECORDS}_sum "))?,
            commits: value(metrics, &format!("{RECORDS}_count "))?,
        })
    }

    /// Records of a commit, on average, of those after an earlier look.
    #[must_use]
    pub fn mean_since(self, then: Self) -> Option<f64> {
        let commits = self.commits - then.commits;
        (commits > 0.0).then(|| (self.records - then.records) / commits)
    }
}

fn value(metrics: &str, name: &str) -> Option<f64> {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_of_what_came_between() {
        let text = |sum, count| {
            format!(
                "# TYPE vouchsafe_journal_batch_records histogram\nvouchsafe_journal_batch_records_sum {sum}\n\
                 vouchsafe_journal_batch_records_count {count}\n"
            )
        };
        let then = JournalBatchCounters::parse(&text("100.0", 50)).unwrap();
        let now = JournalBatchCounters::parse(&text("1300.0", 60)).unwrap();
        assert_eq!(now.mean_since(then), Some(120.0));
        assert_eq!(then.mean_since(then), None);
        assert_eq!(JournalBatchCounters::parse("up 1\n"), None);
    }
}
