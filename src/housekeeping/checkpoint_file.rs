//! Export of audit checkpoints to a file outside the database, with which `vouchsafe verify --checkpoints` compares them.
//!
//! A line of JSON per checkpoint, in order and without gaps. The last line is the position: a restarted service continues after it.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use actix_web::web;
use anyhow::{Context as _, bail};
use vouchsafe_store::{CheckpointRecord, PgStore};

/// Checkpoints per read, and per write of the file.
const PAGE: usize = 1_000;

/// Longer than a line.
const MAX_LINE_BYTES: u64 = 4_096;

/// Appends the checkpoints that the file lacks.
///
/// # Errors
/// If the file or the database fails, or the database has another checkpoint than the last one of the file.
pub(super) async fn export(store: &PgStore, path: &Path) -> anyhow::Result<()> {
    loop {
        let file = path.to_owned();
        let last = web::block(move || read_last(&file)).await??;
        let first = last.as_ref().map_or(1, |last| last.number);
        let mut records = store.audit_log.read_checkpoints(first, PAGE).await?;
        let is_complete = records.len() < PAGE;
        if let Some(last) = last {
            if records.first() != Some(&last) {
                bail!(
                    "checkpoint {} in {file} is not that of the database: run `vouchsafe verify --checkpoints {file}`; after a \
                     restore, begin a new file",
                    last.number,
                    file = path.display()
                );
            }
            records.remove(0);
        }
        if !records.is_empty() {
            let file = path.to_owned();
            web::block(move || append(&file, &records)).await??;
        }
        if is_complete {
            return Ok(());
        }
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).append(true).create(true).open(path);
    file.with_context(|| format!("open {}", path.display()))
}

/// Reads the last line, and removes one that a crash left incomplete.
fn read_last(path: &Path) -> anyhow::Result<Option<CheckpointRecord>> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(MAX_LINE_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let complete = tail
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    if complete == 0 && start > 0 {
        bail!("{} has a line that is too long", path.display());
    }
    file.set_len(start + complete as u64)?;
    let lines = tail[..complete].trim_ascii_end();
    let Some(line) = lines
        .rsplit(|byte| *byte == b'\n')
        .next()
        .filter(|line| !line.is_empty())
    else {
        return Ok(None);
    };
    let record = serde_json::from_slice(line);
    record
        .map(Some)
        .with_context(|| format!("read the last line of {}", path.display()))
}

fn append(path: &Path, records: &[CheckpointRecord]) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for record in records {
        serde_json::to_writer(&mut lines, record)?;
        lines.push(b'\n');
    }
    let mut file = open(path)?;
    let written = file.write_all(&lines).and_then(|()| file.sync_data());
    written.with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;

    use super::*;

    fn record(number: i64) -> CheckpointRecord {
        CheckpointRecord {
            number,
            at: OffsetDateTime::UNIX_EPOCH,
            hash: "ab".repeat(32),
            mac: Some("cd".repeat(32)),
        }
    }

    #[test]
    fn export_continues_after_the_last_complete_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("checkpoints");
        assert_eq!(read_last(&path).unwrap(), None);
        append(&path, &(1..=40).map(record).collect::<Vec<_>>()).unwrap();
        assert_eq!(read_last(&path).unwrap(), Some(record(40)));
        let complete = std::fs::read(&path).unwrap();
        open(&path).unwrap().write_all(b"{\"number\":41,").unwrap();
        assert_eq!(read_last(&path).unwrap(), Some(record(40)));
        assert_eq!(
            std::fs::read(&path).unwrap(),
            complete,
            "the torn line is removed"
        );
        open(&path).unwrap().write_all(b"nonsense\n").unwrap();
        assert!(read_last(&path).is_err());
    }
}
