//! Exemplars: the trace of a request beside the bucket of its duration, in OpenMetrics.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

/// Labels of an exemplar. Copied once per request, so they own no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ExemplarLabels {
    trace_id: TraceIdText,
}

/// 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct TraceIdText([u8; 32]);

impl ExemplarLabels {
    /// The labels of a trace; `None` if the text is no trace id.
    pub(crate) fn new(trace_id: &str) -> Option<Self> {
        let text = trace_id.as_bytes().try_into().ok()?;
        Some(Self {
            trace_id: TraceIdText(text),
        })
    }
}

impl EncodeLabelValue for TraceIdText {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        let text = std::str::from_utf8(&self.0).map_err(|_| fmt::Error)?;
        EncodeLabelValue::encode(&text, encoder)
    }
}
