//! Figures that the service reports in its `/metrics`: its build, and the journal records per commit.

use std::collections::BTreeMap;

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use vouchsafe_api_client::Client;
use vouchsafe_api_client::origin::Origin;

/// Series with the build as its labels.
const BUILD_INFO: &str = "vouchsafe_build_info{";

/// Histogram of journal records per commit.
const BATCH_RECORDS: &str = "vouchsafe_journal_batch_records";

/// Client of the admin listener.
pub(crate) struct MetricsReader(Client);

impl MetricsReader {
    pub(crate) fn new(admin_url: &str) -> anyhow::Result<Self> {
        Ok(Self(Client::new(Origin::parse(admin_url)?)))
    }

    pub(crate) async fn read(&mut self) -> anyhow::Result<String> {
        let request = self
            .0
            .call(Method::GET, "/metrics", HeaderMap::new(), Bytes::new());
        Ok(String::from_utf8_lossy(&request.await?.body).into_owned())
    }
}

/// Labels of the build, such as `version` and `profile`, whose values contain no quotes and no commas. Empty
/// if the program does not report them.
pub(crate) fn parse_build_info(metrics: &str) -> BTreeMap<String, String> {
    let mut lines = metrics.lines();
    let labels = lines.find_map(|line| line.strip_prefix(BUILD_INFO)?.split_once('}'));
    let (labels, _) = labels.unwrap_or_default();
    let pairs = labels.split(',').filter_map(|label| label.split_once('='));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), value.trim_matches('"').to_owned()))
        .collect()
}

/// Cumulative counts of journal commits and of the records in them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JournalBatchCounters {
    records: f64,
    commits: f64,
}

impl JournalBatchCounters {
    /// `None` if the histogram is missing.
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
    fn labels_of_the_build_are_parsed() {
        let metrics = "# TYPE vouchsafe_build_info gauge\nvouchsafe_build_info{version=\"0.2.0\",profile=\"release\"} 1\nup 1\n";
        let labels: Vec<_> = parse_build_info(metrics).into_iter().collect();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(labels, [pair("profile", "release"), pair("version", "0.2.0")]);
        assert!(parse_build_info("up 1\n").is_empty());
    }

    #[test]
    fn batch_mean_covers_commits_between_two_readings() {
        let counters = |sum, count| {
            let text = format!("{BATCH_RECORDS}_sum {sum}\n{BATCH_RECORDS}_count {count}\n");
            JournalBatchCounters::parse(&text).unwrap()
        };
        let (earlier, now) = (counters("100.0", 50), counters("1300.0", 60));
        assert_eq!(now.mean_since(earlier), Some(120.0));
        assert_eq!(earlier.mean_since(earlier), None);
        assert_eq!(JournalBatchCounters::parse("up 1\n"), None);
    }
}
