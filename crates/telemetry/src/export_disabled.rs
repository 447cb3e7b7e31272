//! Replacement of the span exporter in a build without the feature `otlp`: it always fails to start.

#![cfg_attr(
    feature = "otlp",
    allow(dead_code, reason = "with the feature otlp only the test uses it")
)]

use std::collections::HashMap;
use std::convert::Infallible;

use prometheus_client::registry::Registry as MetricsRegistry;
use tracing::Span;
use vouchsafe_security::environment::Environment;

use super::{BoxedLayer, CollectorUrl, TelemetryError};
use crate::trace::Traceparent;

pub(super) struct SpanExport(Infallible);

impl SpanExport {
    /// Always fails.
    pub(super) fn start(
        _: &CollectorUrl,
        _: HashMap<String, String>,
        _: Environment,
    ) -> Result<Self, TelemetryError> {
        Err(TelemetryError::FeatureDisabled)
    }

    pub(super) fn layer(&self) -> BoxedLayer {
        match self.0 {}
    }

    pub(super) fn register(&self, _: &mut MetricsRegistry) {
        match self.0 {}
    }

    pub(super) fn finish(self) {
        match self.0 {}
    }
}

pub(super) fn start_span(_: &Span, _: &str, _: Option<Traceparent<'_>>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn export_without_the_feature_fails_with_build_advice() {
        let collector = "http://127.0.0.1:4318".parse().unwrap();
        let error = SpanExport::start(&collector, HashMap::new(), Environment::Sandbox)
            .err()
            .unwrap()
            .to_string();
        assert!(error.starts_with("VOUCHSAFE_OTLP_ENDPOINT is set"), "{error}");
        assert!(error.contains("--features otlp"), "{error}");
    }
}
