//! Figures of a run by name: the ones that reports compare, and any other number of the JSON report by its
//! path.

use serde_json::Value;

/// A figure that is compared with a baseline.
pub(crate) struct Figure {
    /// Name in conditions.
    pub(crate) name: &'static str,
    /// Text in reports.
    pub(crate) label: &'static str,
    path: &'static str,
}

const fn figure(name: &'static str, label: &'static str, path: &'static str) -> Figure {
    Figure { name, label, path }
}

/// Compared figures. The path of a CPU time is that of a list of threads: those of the component are added.
pub(crate) const FIGURES: [Figure; 13] = [
    figure("orders_per_s", "orders/s", "orders_per_s"),
    figure("vouchers_per_s", "vouchers/s", "vouchers_per_s"),
    figure("p50", "p50, ms", "latency_ms.p50"),
    figure("p90", "p90, ms", "latency_ms.p90"),
    figure("p99", "p99, ms", "latency_ms.p99"),
    figure("p99_9", "p99.9, ms", "latency_ms.p99_9"),
    figure("memory", "memory at most, MiB", "memory.max_mib"),
    figure("wal_bytes", "WAL, bytes per order", "costs.wal.bytes"),
    figure("commits", "commits per order", "costs.wal.commits"),
    figure(
        "records_per_batch",
        "journal records per commit",
        "costs.records_per_batch",
    ),
    figure("service_cpu", "service, CPU µs per order", "costs.threads"),
    figure("postgres_cpu", "postgres, CPU µs per order", "costs.threads"),
    figure("generator_cpu", "generator, CPU µs per order", "costs.threads"),
];

/// Ending of the names of CPU times.
const CPU: &str = "_cpu";

/// A number of a run in the JSON report, by the name of its figure or by its path; `None` if the run has no
/// such number.
pub(crate) fn figure_of(run: &Value, name: &str) -> Option<f64> {
    let known = FIGURES.iter().find(|figure| figure.name == name);
    let path = known.map_or(name, |figure| figure.path);
    let value = value_at(run, path)?;
    match known.and_then(|figure| figure.name.strip_suffix(CPU)) {
        Some(component) => component_cpu_us(value, component),
        None => value.as_f64(),
    }
}

/// The value at a path with dots between keys and list positions.
pub(crate) fn value_at<'a>(run: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(run, |value, key| match value {
        Value::Array(values) => values.get(key.parse::<usize>().ok()?),
        _ => value.get(key),
    })
}

/// Names for an error message.
pub(crate) fn figure_names() -> String {
    FIGURES.map(|figure| figure.name).join(", ")
}

/// CPU time per order of all threads of a component; `None` if it has none, because its processes are
/// unknown.
fn component_cpu_us(threads: &Value, component: &str) -> Option<f64> {
    let threads = threads.as_array()?.iter();
    let own = threads.filter(|thread| thread["component"] == component);
    own.filter_map(|thread| thread["cpu_us"].as_f64())
        .reduce(|sum, us| sum + us)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figure_has_a_name_or_a_path() {
        let run = json!({
            "latency_ms": { "p99": 12.5 },
            "costs": { "threads": [
                { "component": "service", "cpu_us": 100.0 },
                { "component": "postgres", "cpu_us": 7.0 },
                { "component": "service", "cpu_us": 20.0 },
            ]},
            "series": { "windows": [{ "orders_per_s": 3.0 }] },
            "thresholds": [],
            "memory": null,
        });
        for (name, value) in [
            ("p99", Some(12.5)),
            ("latency_ms.p99", Some(12.5)),
            ("service_cpu", Some(120.0)),
            ("generator_cpu", None),
            ("series.windows.0.orders_per_s", Some(3.0)),
            ("series.windows.1.orders_per_s", None),
            ("latency_ms", None),
            ("memory", None),
            ("unknown", None),
        ] {
            assert_eq!(figure_of(&run, name), value, "{name}");
        }
    }
}
