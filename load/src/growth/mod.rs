//! Criterion results by input size, as a table and an SVG plot.
//!
//! Benches with an element throughput are reported per element, benches with a byte throughput per iteration.

mod svg;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use serde::{Deserialize, Serialize};

pub use self::svg::render_svg;

/// Criterion's directory for the last run of a bench.
const LAST_RUN: &str = "new";

/// Reason for missing results.
#[derive(Debug, thiserror::Error)]
pub enum BenchCostsError {
    /// A directory or file cannot be read.
    #[error("cannot read `{path}`")]
    File {
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A file does not have criterion's format.
    #[error("`{path}` does not have criterion's format")]
    Form {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// A requested group has no results.
    #[error("no results by size for `{0}`: run it with `cargo bench` first")]
    Missing(String),
}

/// Cost at one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BenchPoint {
    pub size: f64,
    /// Median per element, in nanoseconds.
    pub ns: f64,
    /// 95 % confidence interval of the median.
    pub interval_ns: (f64, f64),
}

/// Costs of a group of benches by size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchGroup {
    /// Criterion's group name.
    pub name: String,
    /// In ascending order of size.
    pub points: Vec<BenchPoint>,
}

/// Results of the selected groups.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchCosts(pub Vec<BenchGroup>);

#[derive(Deserialize)]
struct Benchmark {
    group_id: String,
    value_str: Option<String>,
    throughput: Option<BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
struct Estimates {
    median: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
    confidence_interval: Interval,
}

#[derive(Deserialize)]
struct Interval {
    lower_bound: f64,
    upper_bound: f64,
}

impl BenchCosts {
    /// Reads criterion's output directory: the given groups in their order, or all groups with a numeric size.
    ///
    /// # Errors
    /// [`BenchCostsError`] if a file cannot be read or parsed, or a requested group has no results.
    pub fn read(directory: &Path, groups: &[String]) -> Result<Self, BenchCostsError> {
        let mut groups_by_name = BTreeMap::<String, Vec<BenchPoint>>::new();
        for group in subdirectories(directory)? {
            for case in subdirectories(&group)? {
                if let Some((name, point)) = read_case(&case.join(LAST_RUN))? {
                    groups_by_name.entry(name).or_default().push(point);
                }
            }
        }
        for points in groups_by_name.values_mut() {
            points.sort_by(|one, other| one.size.total_cmp(&other.size));
        }
        let group = |(name, points)| BenchGroup { name, points };
        if groups.is_empty() {
            return Ok(Self(groups_by_name.into_iter().map(group).collect()));
        }
        let selected = groups.iter().map(|name| {
            let points = groups_by_name.remove(name);
            points
                .map(|points| group((name.clone(), points)))
                .ok_or_else(|| BenchCostsError::Missing(name.clone()))
        });
        selected.collect::<Result<_, _>>().map(Self)
    }
}

/// Returns group and point of a case; `None` without a numeric size or results.
fn read_case(directory: &Path) -> Result<Option<(String, BenchPoint)>, BenchCostsError> {
    let path = directory.join("benchmark.json");
    if !path.exists() {
        return Ok(None);
    }
    let benchmark: Benchmark = read_json(&path)?;
    let size = benchmark.value_str.and_then(|text| text.parse().ok());
    let Some(size) = size else {
        return Ok(None);
    };
    let Estimates { median } = read_json(&directory.join("estimates.json"))?;
    let elements = benchmark
        .throughput
        .and_then(|throughput| throughput.get("Elements").copied());
    let per_element = |ns: f64| ns / elements.unwrap_or(1.0);
    let interval = median.confidence_interval;
    let point = BenchPoint {
        size,
        ns: per_element(median.point_estimate),
        interval_ns: (
            per_element(interval.lower_bound),
            per_element(interval.upper_bound),
        ),
    };
    Ok(Some((benchmark.group_id, point)))
}

fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, BenchCostsError> {
    let text = fs::read(path).map_err(file_error(path))?;
    serde_json::from_slice(&text).map_err(|source| BenchCostsError::Form {
        path: path.to_owned(),
        source,
    })
}

fn subdirectories(path: &Path) -> Result<Vec<PathBuf>, BenchCostsError> {
    let entries = fs::read_dir(path).map_err(file_error(path))?;
    let paths = entries.map(|entry| Ok(entry.map_err(file_error(path))?.path()));
    let paths: Result<Vec<_>, _> = paths.collect();
    Ok(paths?.into_iter().filter(|path| path.is_dir()).collect())
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> BenchCostsError {
    let path = path.to_owned();
    move |source| BenchCostsError::File { path, source }
}

impl fmt::Display for BenchCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for BenchGroup { name, points } in &self.0 {
            writeln!(f, "{name}")?;
            for BenchPoint {
                size,
                ns,
                interval_ns: (low, high),
            } in points
            {
                writeln!(f, "  {size:>10}  {ns:>12.1} ns  ({low:.1} to {high:.1})")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a case in criterion's format.
    fn write_case(directory: &Path, group: &str, value: &str, throughput: &str, ns: u32) {
        let case = directory.join(group).join(value).join(LAST_RUN);
        fs::create_dir_all(&case).unwrap();
        let benchmark = format!(
            r#"{{"group_id":"{group}","function_id":null,"value_str":{},"throughput":{throughput},"title":"t"}}"#,
            if value == "settled" {
                "null".to_owned()
            } else {
                format!(r#""{value}""#)
            }
        );
        fs::write(case.join("benchmark.json"), benchmark).unwrap();
        let estimate = format!(
            r#"{{"confidence_interval":{{"confidence_level":0.95,"lower_bound":{0},"upper_bound":{0}}},"point_estimate":{0}}}"#,
            ns
        );
        let estimates = format!(r#"{{"mean":{estimate},"median":{estimate},"slope":null}}"#);
        fs::write(case.join("estimates.json"), estimates).unwrap();
    }

    fn points_by_group(growth: &BenchCosts) -> Vec<(&str, Vec<(f64, f64)>)> {
        let points = |group: &BenchGroup| group.points.iter().map(|point| (point.size, point.ns)).collect();
        growth
            .0
            .iter()
            .map(|group| (group.name.as_str(), points(group)))
            .collect()
    }

    #[test]
    fn costs_with_element_throughput_are_per_element() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        write_case(at, "together", "16", r#"{"Elements":16}"#, 320);
        write_case(at, "together", "4", r#"{"Elements":4}"#, 100);
        write_case(at, "bytes", "96", r#"{"Bytes":96}"#, 500);
        write_case(at, "purse", "settled", "null", 9);
        fs::create_dir_all(at.join("report")).unwrap();
        let all = BenchCosts::read(at, &[]).unwrap();
        let expected = vec![
            ("bytes", vec![(96.0, 500.0)]),
            ("together", vec![(4.0, 25.0), (16.0, 20.0)]),
        ];
        assert_eq!(points_by_group(&all), expected);
        let selected = BenchCosts::read(at, &["together".to_owned()]).unwrap();
        assert_eq!(points_by_group(&selected), expected[1..]);
        assert!(
            selected.to_string().contains("        16          20.0 ns"),
            "{selected}"
        );
    }

    #[test]
    fn group_without_results_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let missing = BenchCosts::read(directory.path(), &["shelf".to_owned()]);
        assert!(matches!(missing, Err(BenchCostsError::Missing(name)) if name == "shelf"));
        let missing = BenchCosts::read(&directory.path().join("missing"), &[]);
        assert!(matches!(missing, Err(BenchCostsError::File { .. })));
    }
}
