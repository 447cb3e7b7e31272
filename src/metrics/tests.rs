//! Tests of the metrics: names, help texts, documentation, formats.

use std::collections::BTreeMap;
use std::time::Duration;

use vouchsafe_domain::delivery::AttemptOutcome;

use super::*;

const OPERATIONS_PAGE: &str = include_str!("../../docs/operations/monitoring.md");

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Metrics that have a series in each family.
fn recorded() -> Metrics {
    let metrics = Metrics::new(&Telemetry::disabled());
    metrics.record_request(FinishedRequest {
        listener: "partner",
        method: "GET",
        route: None,
        status: 200,
        duration: Duration::from_millis(1),
        exemplar: ExemplarLabels::new(TRACE),
    });
    metrics.stock().set(&StockTotals::default());
    metrics.vendors().set_circuit("mock", false);
    metrics.record_rate_limited(RequestClass::Orders);
    metrics.record_refusal(Code::ServiceUnavailable, Some(RequestClass::Orders));
    metrics.record_authentication_failure(Code::InvalidSignature);
    metrics.refresh_actors("wallet", ActorTotals::default());
    metrics.vendors().record_rejected_response("mock");
    metrics.vendors().record_failed_reconciliation("mock");
    metrics
        .vendors()
        .set_reconciliation("mock", 0, Some(1_767_225_600));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    metrics.runtimes().add("main", runtime.handle().clone());
    metrics
        .deliveries()
        .record_attempt(AttemptOutcome::Delivered, Duration::from_millis(5));
    metrics
}

/// Type and help text of each family in the Prometheus text format.
fn families(text: &str) -> BTreeMap<&str, (&str, &str)> {
    let mut families = BTreeMap::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let described = lines.next().and_then(|line| line.strip_prefix("# TYPE "));
        let (of, kind) = described.and_then(|rest| rest.split_once(' ')).unwrap();
        assert_eq!(of, name);
        let sample = lines.peek().unwrap();
        assert!(sample.starts_with(name), "{name} has no series: {sample}");
        assert!(
            families.insert(name, (kind, help)).is_none(),
            "{name} is registered twice"
        );
    }
    families
}

#[test]
fn metrics_have_help_and_names_of_their_type_and_unit() {
    let text = recorded().encode(MetricsFormat::PrometheusText);
    let families = families(&text);
    assert!(families.len() > 25, "{families:?}");
    for (name, (kind, help)) in families {
        assert!(
            help.len() > 10 && help.ends_with('.') && !help.contains('\\'),
            "{name}: {help}"
        );
        assert!(
            ["counter", "gauge", "histogram"].contains(&kind),
            "{name}: {kind}"
        );
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}: {kind}");
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(name.chars().all(is_plain), "{name}");
        assert!(
            name.starts_with("vouchsafe_") || name.starts_with("process_"),
            "{name}"
        );
        let words: Vec<_> = name.split('_').collect();
        for foreign in [
            "ms",
            "milliseconds",
            "minutes",
            "hours",
            "days",
            "kb",
            "kib",
            "percent",
            "time",
        ] {
            // The client libraries of Prometheus name the metrics of the process.
            assert!(
                name.starts_with("process_") || !words.contains(&foreign),
                "{name}: {foreign}; use seconds, bytes or a ratio"
            );
        }
        let is_time = ["Time ", "Duration ", "Age ", "Start "]
            .iter()
            .any(|word| help.starts_with(word));
        assert_eq!(is_time, name.ends_with("_seconds"), "{name}: {help}");
    }
}

#[test]
fn every_metric_is_in_the_operations_page() {
    let text = recorded().encode(MetricsFormat::PrometheusText);
    for name in families(&text).into_keys() {
        let is_listed = ["`", "{"]
            .iter()
            .any(|end| OPERATIONS_PAGE.contains(&format!("`{name}{end}")));
        assert!(is_listed, "docs/operations/monitoring.md does not list {name}");
    }
}

#[test]
fn open_metrics_end_with_their_mark() {
    let text = recorded().encode(MetricsFormat::OpenMetrics);
    assert!(text.contains("# UNIT vouchsafe_http_request_duration_seconds seconds\n"));
    assert!(text.contains("# TYPE vouchsafe_http_requests counter\n"));
    assert!(text.ends_with("\n# EOF\n"));
}

#[test]
fn request_duration_has_its_trace_in_open_metrics_only() {
    let metrics = recorded();
    let open_metrics = metrics.encode(MetricsFormat::OpenMetrics);
    let with_exemplar: Vec<_> = open_metrics.lines().filter(|line| line.contains(TRACE)).collect();
    let [bucket] = with_exemplar[..] else {
        panic!("{with_exemplar:?}");
    };
    assert!(
        bucket.contains("_request_duration_seconds_bucket{le=\"0.001\","),
        "{bucket}"
    );
    let exemplar = format!(" 1 # {{trace_id=\"{TRACE}\"}} 0.001");
    assert!(bucket.ends_with(&exemplar), "{bucket}");
    let text = metrics.encode(MetricsFormat::PrometheusText);
    assert!(!text.contains("trace_id"), "{text}");
}
