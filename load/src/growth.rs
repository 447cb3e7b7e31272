//! How do the costs of the benches grow with what they are measured by? What criterion left behind, told as a table and drawn.
//!
//! What is measured of many together is told for one; of bytes it is told for all of them.

mod svg;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::svg::render_svg;

/// Below each case of a bench, what its last run measured.
const LAST_RUN: &str = "new";

/// Why nothing can be told.
#[derive(Debug, thiserror::Error)]
pub enum BenchCostsError {
    /// A directory or a file cannot be read.
    #[error("cannot read `{path}`")]
    File {
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A file is not as criterion writes it.
    #[error("`{path}` is not as criterion writes it")]
    Form {
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A group was asked for that no bench has left.
    #[error("no bench has measured `{0}` by size: run it with `cargo bench` first")]
    Missing(String),
}

/// What one size was measured to cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BenchPoint {
    pub size: f64,
    /// The median of one, in nanoseconds.
    pub ns: f64,
    /// From where to where the median lies, with 95 % confidence.
    pub interval_ns: (f64, f64),
}

/// What a group of benches was measured to cost, by size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchGroup {
    /// As the bench calls it.
    pub name: String,
    /// From the least size to the greatest.
    pub points: Vec<BenchPoint>,
}

/// All that was asked for.
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
    /// What criterion left in this directory: of these groups in their order, or of all that were measured by size.
    ///
    /// # Errors
    /// [`GrowthError`].
    pub fn read(directory: &Path, groups: &[String]) -> Result<Self, BenchCostsError> {
        let mut found = BTreeMap::<String, Vec<BenchPoint>>::new();
        for group in directories(directory)? {
            for case in directories(&group)? {
                if let Some((name, point)) = case_of(&case.join(LAST_RUN))? {
                    found.entry(name).or_default().push(point);
                }
            }
        }
        for points in found.values_mut() {
            points.sort_by(|one, other| one.size.total_cmp(&other.size));
        }
        let group = |(name, points)| BenchGroup { name, points };
        if groups.is_empty() {
            return Ok(Self(found.into_iter().map(group).collect()));
        }
        let asked = groups.iter().map(|name| {
            let points = found.remove(name);
            points
                .map(|points| group((name.clone(), points)))
                .ok_or_else(|| BenchCostsError::Missing(name.clone()))
        });
        asked.collect::<Result<_, _>>().map(Self)
    }
}

/// A case and its group; `None` for what was not measured by size, or not at all.
fn case_of(directory: &Path) -> Result<Option<(String, BenchPoint)>, BenchCostsError> {
    let what = directory.join("benchmark.json");
    if !what.exists() {
        return Ok(None);
    }
    let benchmark: Benchmark = read(&what)?;
    let size = benchmark.value_str.and_then(|text| text.parse().ok());
    let Some(size) = size else {
        return Ok(None);
    };
    let Estimates { median } = read(&directory.join("estimates.json"))?;
    let together = benchmark
        .throughput
        .and_then(|throughput| throughput.get("Elements").copied());
    let one = |ns: f64| ns / together.unwrap_or(1.0);
    let interval = median.confidence_interval;
    let point = BenchPoint {
        size,
        ns: one(median.point_estimate),
        interval_ns: (one(interval.lower_bound), one(interval.upper_bound)),
    };
    Ok(Some((benchmark.group_id, point)))
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, BenchCostsError> {
    let text = fs::read(path).map_err(file(path))?;
    serde_json::from_slice(&text).map_err(|source| BenchCostsError::Form {
        path: path.to_owned(),
        source,
    })
}

fn directories(path: &Path) -> Result<Vec<PathBuf>, BenchCostsError> {
    let entries = fs::read_dir(path).map_err(file(path))?;
    let paths = entries.map(|entry| Ok(entry.map_err(file(path))?.path()));
    let paths: Result<Vec<_>, _> = paths.collect();
    Ok(paths?.into_iter().filter(|path| path.is_dir()).collect())
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> BenchCostsError {
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

    /// A case as criterion leaves it, of which so many nanoseconds were measured.
    fn case(directory: &Path, group: &str, value: &str, throughput: &str, ns: u32) {
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

    fn figures(growth: &BenchCosts) -> Vec<(&str, Vec<(f64, f64)>)> {
        let points = |group: &BenchGroup| group.points.iter().map(|point| (point.size, point.ns)).collect();
        growth
            .0
            .iter()
            .map(|group| (group.name.as_str(), points(group)))
            .collect()
    }

    #[test]
    fn what_many_took_together_is_told_for_one() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        case(at, "together", "16", r#"{"Elements":16}"#, 320);
        case(at, "together", "4", r#"{"Elements":4}"#, 100);
        case(at, "bytes", "96", r#"{"Bytes":96}"#, 500);
        case(at, "purse", "settled", "null", 9);
        fs::create_dir_all(at.join("report")).unwrap();
        let all = BenchCosts::read(at, &[]).unwrap();
        let expected = vec![
            ("bytes", vec![(96.0, 500.0)]),
            ("together", vec![(4.0, 25.0), (16.0, 20.0)]),
        ];
        assert_eq!(figures(&all), expected);
        let asked = BenchCosts::read(at, &["together".to_owned()]).unwrap();
        assert_eq!(figures(&asked), expected[1..]);
        assert!(
            asked.to_string().contains("        16          20.0 ns"),
            "{asked}"
        );
    }

    #[test]
    fn a_group_that_was_not_measured_is_missed() {
        let directory = tempfile::tempdir().unwrap();
        let missing = BenchCosts::read(directory.path(), &["shelf".to_owned()]);
        assert!(matches!(missing, Err(BenchCostsError::Missing(name)) if name == "shelf"));
        let nowhere = BenchCosts::read(&directory.path().join("nowhere"), &[]);
        assert!(matches!(nowhere, Err(BenchCostsError::File { .. })));
    }
}
