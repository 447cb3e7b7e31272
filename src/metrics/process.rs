//! Process metrics: resident memory, read from `/proc`.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// Resident memory, on systems with `/proc`.
#[derive(Debug)]
pub(super) struct ResidentMemory;

impl Collector for ResidentMemory {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let Some(bytes) = resident_bytes(&status) else {
            return Ok(());
        };
        let gauge = ConstGauge::new(bytes);
        let help = "Resident memory of the process.";
        let bytes = Some(&Unit::Bytes);
        gauge.encode(encoder.encode_descriptor(
            "process_resident_memory",
            help,
            bytes,
            gauge.metric_type(),
        )?)
    }
}

fn resident_bytes(status: &str) -> Option<i64> {
    let kib = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?
            .trim()
            .strip_suffix(" kB")?
            .parse::<i64>()
            .ok()
    })?;
    kib.checked_mul(1024)
}
