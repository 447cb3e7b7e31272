//! Process metrics: resident memory, read from `/proc`.

use std::fmt::Write as _;

/// Inserts the resident memory before the closing `# EOF`, on systems with `/proc`.
pub(super) fn append_resident_memory(text: &mut String) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?
            .trim()
            .strip_suffix(" kB")?
            .parse::<u64>()
            .ok()
    });
    let Some(kib) = kib else { return };
    let end = text.rfind("# EOF").unwrap_or(text.len());
    text.truncate(end);
    // Writing into a string does not fail.
    let _ = writeln!(
        text,
        "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes {}\n# EOF",
        kib * 1024
    );
}
