//! Instead of the exporter, where the program is built without the feature `otlp`: whoever wants one is refused.

#![cfg_attr(
    feature = "otlp",
    allow(dead_code, reason = "with the feature, for the test alone")
)]

use std::convert::Infallible;

use prometheus_client::registry::Registry as Figures;
use tracing::Span;

use super::{CollectorUrl, TelemetryError, Tells};
use crate::access::environment::Environment;
use crate::trace::Traceparent;

/// There is none.
pub(super) struct Export(Infallible);

impl Export {
    /// Says how a program is built that has one.
    pub(super) fn to(_: &CollectorUrl, _: Environment) -> Result<Self, TelemetryError> {
        Err(TelemetryError::BuiltWithout)
    }

    pub(super) fn layer(&self) -> Tells {
        match self.0 {}
    }

    pub(super) fn register(&self, _: &mut Figures) {
        match self.0 {}
    }

    pub(super) fn finish(self) {
        match self.0 {}
    }
}

pub(super) fn begin(_: &Span, _: &str, _: Option<Traceparent<'_>>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_an_exporter_is_told_how_to_build_one() {
        let collector = "http://127.0.0.1:4318".parse().unwrap();
        let refused = Export::to(&collector, Environment::Sandbox)
            .err()
            .unwrap()
            .to_string();
        assert!(refused.starts_with("VOUCHSAFE_OTLP_ENDPOINT is set"), "{refused}");
        assert!(refused.contains("--features otlp"), "{refused}");
    }
}
