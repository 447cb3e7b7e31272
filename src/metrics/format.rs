//! Exposition formats of `/metrics` and their content negotiation: Prometheus text 0.0.4 and OpenMetrics
//! 1.0.0.

use actix_web::http::header::{Accept, Quality};
use actix_web::mime::Mime;
use vouchsafe_wire::operator::metrics::{OPEN_METRICS, PROMETHEUS_TEXT};

/// A format of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    PrometheusText,
    OpenMetrics,
}

impl MetricsFormat {
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::PrometheusText => PROMETHEUS_TEXT,
            Self::OpenMetrics => OPEN_METRICS,
        }
    }

    /// `OpenMetrics` if the client prefers it, else `PrometheusText`, also if it accepts neither.
    pub(crate) fn negotiate(accept: &Accept) -> Self {
        if Self::OpenMetrics.preference(accept) > Self::PrometheusText.preference(accept) {
            Self::OpenMetrics
        } else {
            Self::PrometheusText
        }
    }

    /// The quality of the most specific range that matches (RFC 9110, section 12.5.1), and how specific that
    /// range is.
    fn preference(self, accept: &Accept) -> Option<(Quality, u8)> {
        let matching = accept
            .iter()
            .filter_map(|range| Some((self.specificity(&range.item)?, range.quality)));
        let (specificity, quality) = matching.max()?;
        (quality > Quality::ZERO).then_some((quality, specificity))
    }

    /// How specific a matching media range is; `None` if it does not match.
    fn specificity(self, range: &Mime) -> Option<u8> {
        let (kind, subtype, own_version) = match self {
            Self::PrometheusText => ("text", "plain", "0.0.4"),
            Self::OpenMetrics => ("application", "openmetrics-text", "1.0.0"),
        };
        match (range.type_().as_str(), range.subtype().as_str()) {
            (accepted, of) if (accepted, of) == (kind, subtype) => match range.get_param("version") {
                None => Some(2),
                Some(version) => (version == own_version).then_some(3),
            },
            (accepted, "*") if accepted == kind => Some(1),
            ("*", "*") => Some(0),
            _ => None,
        }
    }

    /// Renders an `OpenMetrics` text in this format.
    pub(super) fn render(self, open_metrics: String) -> String {
        match self {
            Self::PrometheusText => to_prometheus_text(&open_metrics),
            Self::OpenMetrics => open_metrics,
        }
    }
}

/// Begins an exemplar. A label's value cannot contain it, because its quotes are escaped.
const EXEMPLAR_START: &str = " # {trace_id=\"";

/// The samples are the same. In the older format the description of a counter names its sample, `…_total`,
/// and there are no units, no exemplars and no end mark.
fn to_prometheus_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut push = |parts: &[&str]| {
        parts.iter().for_each(|part| text.push_str(part));
        text.push('\n');
    };
    let mut help = "";
    for line in open_metrics.lines() {
        let mut words = line.splitn(4, ' ');
        match [words.next(), words.next(), words.next(), words.next()] {
            [Some("#"), Some("HELP"), _, described] => help = described.unwrap_or_default(),
            [Some("#"), Some("TYPE"), Some(name), Some(kind)] => {
                let suffix = if kind == "counter" { "_total" } else { "" };
                push(&["# HELP ", name, suffix, " ", help]);
                push(&["# TYPE ", name, suffix, " ", kind]);
            }
            [Some("#"), ..] => {}
            _ => push(&[line.split_once(EXEMPLAR_START).map_or(line, |(sample, _)| sample)]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{ACCEPT, Header as _};
    use actix_web::test::TestRequest;

    use super::MetricsFormat::{self, OpenMetrics, PrometheusText};
    use super::*;

    fn negotiated(accept: &str) -> MetricsFormat {
        let request = TestRequest::default()
            .insert_header((ACCEPT, accept))
            .to_request();
        MetricsFormat::negotiate(&Accept::parse(&request).unwrap())
    }

    #[test]
    fn preferred_format_is_negotiated() {
        for (accept, expected) in [
            // Prometheus 2.5, 2.42 and 3.1.
            (
                "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                PrometheusText,
            ),
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                 application/openmetrics-text;version=0.0.1;q=0.4,\
                 text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
                OpenMetrics,
            ),
            // Prometheus configured to prefer its text format.
            (
                "text/plain;version=0.0.4;q=0.5,application/openmetrics-text;version=1.0.0;q=0.4,*/*;q=0.1",
                PrometheusText,
            ),
            ("text/plain", PrometheusText),
            ("application/openmetrics-text", OpenMetrics),
            ("Application/OpenMetrics-Text; Version=1.0.0", OpenMetrics),
            ("application/openmetrics-text, */*", OpenMetrics),
            ("application/openmetrics-text;q=0.5, */*", PrometheusText),
            ("application/openmetrics-text, text/plain", PrometheusText),
            ("application/openmetrics-text;q=0", PrometheusText),
            ("text/plain;q=0, */*", OpenMetrics),
            ("application/*", OpenMetrics),
            ("*/*", PrometheusText),
            ("", PrometheusText),
            ("text/html,application/xhtml+xml,*/*;q=0.8", PrometheusText),
            ("application/json", PrometheusText),
            ("no media range;;, application/openmetrics-text", OpenMetrics),
        ] {
            assert_eq!(negotiated(accept), expected, "{accept}");
        }
    }

    #[test]
    fn text_format_names_counters_by_their_sample_and_has_no_exemplars() {
        let open_metrics = "# HELP a_seconds Time # HELP.\n# TYPE a_seconds gauge\n# UNIT a_seconds seconds\na_seconds 1\n\
                            # HELP b Requests.\n# TYPE b counter\nb_total{of=\"# x\"} 2\n\
                            c_bucket{le=\"1.0\",of=\" # {trace_id=\\\"\"} 3 # {trace_id=\"4bf9\"} 0.5\n# EOF\n";
        assert_eq!(OpenMetrics.render(open_metrics.to_owned()), open_metrics);
        assert_eq!(
            PrometheusText.render(open_metrics.to_owned()),
            "# HELP a_seconds Time # HELP.\n# TYPE a_seconds gauge\na_seconds 1\n\
             # HELP b_total Requests.\n# TYPE b_total counter\nb_total{of=\"# x\"} 2\n\
             c_bucket{le=\"1.0\",of=\" # {trace_id=\\\"\"} 3\n"
        );
    }
}
