//! Process metrics with the names that Prometheus client libraries use, read from `/proc`.

use std::fmt;
use std::time::Duration;

use procfs::process::{LimitValue, Process};
use procfs::{ProcResult, WithCurrentSystemInfo as _};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// CPU time, memory, open files and start, on systems with `/proc`.
#[derive(Debug)]
pub(super) struct ProcessMetrics;

struct Reading {
    cpu_s: f64,
    started_at_s: f64,
    resident_bytes: u64,
    virtual_bytes: u64,
    threads: i64,
    open_files: usize,
    max_open_files: u64,
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Ok(reading) = read() else {
            return Ok(());
        };
        let mut encode = |name: &str, help: &str, unit: Option<Unit>, metric: &dyn Encode| {
            metric.encode_into(&mut encoder, name, help, unit.as_ref())
        };
        let (cpu, start) = (reading.cpu_s, reading.started_at_s);
        encode(
            "process_cpu",
            "CPU time of the process.",
            Some(Unit::Seconds),
            &ConstCounter::new(cpu),
        )?;
        let help = "Start of the process, in Unix time.";
        encode(
            "process_start_time",
            help,
            Some(Unit::Seconds),
            &ConstGauge::new(start),
        )?;
        for (name, help, bytes) in [
            (
                "process_resident_memory",
                "Resident memory of the process.",
                reading.resident_bytes,
            ),
            (
                "process_virtual_memory",
                "Virtual memory of the process.",
                reading.virtual_bytes,
            ),
        ] {
            encode(name, help, Some(Unit::Bytes), &ConstGauge::new(saturating(bytes)))?;
        }
        for (name, help, count) in [
            (
                "process_open_fds",
                "Open file descriptors.",
                saturating(reading.open_files),
            ),
            (
                "process_max_fds",
                "Limit of open file descriptors.",
                saturating(reading.max_open_files),
            ),
            ("process_threads", "Threads of the process.", reading.threads),
        ] {
            encode(name, help, None, &ConstGauge::new(count))?;
        }
        Ok(())
    }
}

/// A metric that can be encoded, whatever its type.
trait Encode {
    fn encode_into(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
    ) -> fmt::Result;
}

impl<M: EncodeMetric> Encode for M {
    fn encode_into(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
    ) -> fmt::Result {
        let kind = self.metric_type();
        self.encode(encoder.encode_descriptor(name, help, unit, kind)?)
    }
}

pub(super) fn saturating(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}

fn read() -> ProcResult<Reading> {
    let process = Process::myself()?;
    let stat = process.stat()?;
    let ticks = |count: u64| Duration::from_millis(count.saturating_mul(1_000) / procfs::ticks_per_second());
    let boot = procfs::boot_time_secs()?;
    let max_open_files = match process.limits()?.max_open_files.soft_limit {
        LimitValue::Value(limit) => limit,
        LimitValue::Unlimited => u64::MAX,
    };
    Ok(Reading {
        cpu_s: ticks(stat.utime + stat.stime).as_secs_f64(),
        started_at_s: (Duration::from_secs(boot) + ticks(stat.starttime)).as_secs_f64(),
        resident_bytes: stat.rss_bytes().get(),
        virtual_bytes: stat.vsize,
        threads: stat.num_threads,
        open_files: process.fd_count()?,
        max_open_files,
    })
}
