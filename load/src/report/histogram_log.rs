//! Latency histograms in the log format of `HdrHistogram` (`.hlog`), which its plotter and
//! `HistogramLogProcessor` read: one compressed histogram per kind of request, in microseconds.
//!
//! The crate `hdrhistogram` can write it, too; that feature adds a second version of a parser and compiles
//! `sqlx` again.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use hdrhistogram::Histogram;

use super::RunReport;

/// Versions of the binary format: a histogram, and its compressed form.
const ENCODED: u32 = 0x1c84_9313;
const COMPRESSED: u32 = 0x1c84_9314;

/// The log has the largest value in milliseconds, as all reports.
const US_PER_MS: f64 = 1_000.0;

/// Histograms of all runs. A tag is `SCENARIO:KIND`.
pub(super) fn render(runs: &[RunReport]) -> anyhow::Result<String> {
    let mut log = "#[Histogram log format version 1.3]\n\
                   \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
        .to_owned();
    for run in runs {
        let name = run.name().replace([' ', ','], "-");
        for (kind, histogram) in &run.metrics.histograms {
            let (length, max) = (run.metrics.measured_s, histogram.max() as f64 / US_PER_MS);
            let encoded = STANDARD.encode(compress(&encode(histogram))?);
            log += &format!("Tag={name}:{kind},0.000,{length:.3},{max:.3},{encoded}\n");
        }
    }
    Ok(log)
}

fn compress(encoded: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(encoded)?;
    let content = encoder.finish()?;
    let head = [COMPRESSED, u32::try_from(content.len())?].map(u32::to_be_bytes);
    Ok([head.as_flattened(), &content].concat())
}

/// Header, then the counts of all buckets up to the last used one.
fn encode(histogram: &Histogram<u64>) -> Vec<u8> {
    let (mut counts, mut zeros) = (Vec::new(), 0);
    for bucket in histogram.iter_all() {
        match bucket.count_at_value() {
            0 => zeros += 1,
            count => {
                push_zeros(&mut counts, zeros);
                push_number(&mut counts, count << 1);
                zeros = 0;
            }
        }
    }
    let length = u32::try_from(counts.len()).unwrap_or(u32::MAX);
    let head = [ENCODED, length, 0, u32::from(histogram.sigfig())].map(u32::to_be_bytes);
    let bounds = [histogram.low(), histogram.high(), 1.0_f64.to_bits()].map(u64::to_be_bytes);
    [head.as_flattened(), bounds.as_flattened(), &counts].concat()
}

/// A run of empty buckets is a negative number; in the zigzag form it is odd.
fn push_zeros(counts: &mut Vec<u8>, zeros: u64) {
    match zeros {
        0 => {}
        1 => push_number(counts, 0),
        _ => push_number(counts, 2 * zeros - 1),
    }
}

/// LEB128: seven bits per byte, the lowest first.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(0x80 | number.to_le_bytes()[0]);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by the serializer of the crate `hdrhistogram` 7.6.0.
    const REFERENCE: &str = "1c8493130000000a00000000000000030000000000000001000000000fffffff3ff0000000000000000204bd3304a3f40102";

    #[test]
    fn encoded_histogram_equals_that_of_the_reference() {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000, 3).unwrap();
        histogram.auto(true);
        for value in [1, 2, 2, 5_000, 5_000, 200_000_000] {
            histogram.record(value).unwrap();
        }
        assert_eq!(hex::encode(encode(&histogram)), REFERENCE);
    }
}
