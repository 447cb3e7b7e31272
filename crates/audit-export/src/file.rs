//! Export to a file of this node, in order and without gaps. The last checkpoint in it is the position.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use tokio::task::spawn_blocking;
use vouchsafe_domain::audit_export::{CheckpointRecord, ExportLine, to_ndjson};
use vouchsafe_store::{AuditLog, ExportContent};

use super::ExportState;

/// First read of the end of the file; doubled until it has a checkpoint.
const TAIL_BYTES: u64 = 64 * 1024;

/// How each line begins. A line that a crash left unfinished is removed only if it begins like that, too.
const LINE_START: &[u8] = br#"{"type":"audit_"#;

#[derive(Debug)]
pub(crate) struct FileExport {
    audit_log: AuditLog,
    path: PathBuf,
    content: ExportContent,
}

impl FileExport {
    pub(crate) fn new(audit_log: AuditLog, path: &Path, content: ExportContent) -> Self {
        Self {
            audit_log,
            path: path.to_owned(),
            content,
        }
    }

    pub(crate) const fn content(&self) -> ExportContent {
        self.content
    }

    /// Appends what the file lacks.
    ///
    /// # Errors
    /// If the file or the database fails, another process exports to the file, or the database has another checkpoint than the last one of
    /// the file.
    pub(crate) async fn export(&self) -> anyhow::Result<ExportState> {
        let path = self.path.clone();
        let file = Arc::new(spawn_blocking(move || open(&path)).await??);
        loop {
            let last = self.on_file(&file, read_last).await?;
            if let Some(last) = &last {
                self.check_last(last).await?;
            }
            let position = last.map_or(0, |last| last.number);
            let lines = self.audit_log.read_export_batch(position, self.content).await?;
            if lines.is_empty() {
                return Ok(ExportState::Complete);
            }
            self.on_file(&file, move |file| append(file, &lines)).await?;
        }
    }

    /// Runs `work` on a thread that may block.
    async fn on_file<T: Send + 'static>(
        &self,
        file: &Arc<File>,
        work: impl FnOnce(&File) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let file = Arc::clone(file);
        let done = spawn_blocking(move || work(&file)).await?;
        done.with_context(|| format!("export to {}", self.path.display()))
    }

    async fn check_last(&self, last: &CheckpointRecord) -> anyhow::Result<()> {
        let stored = self.audit_log.read_checkpoints(last.number, 1).await?;
        if stored.first() == Some(last) {
            return Ok(());
        }
        let option = match self.content {
            ExportContent::Checkpoints => "--checkpoints",
            ExportContent::Entries => "--audit-export",
        };
        bail!(
            "checkpoint {} in {file} is not that of the database: run `vouchsafe verify {option} {file}`; after a restore, begin a new \
             file",
            last.number,
            file = self.path.display()
        );
    }
}

/// Opens and locks the file: two processes would write the same lines.
fn open(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).append(true).create(true).open(path);
    let file = file.with_context(|| format!("open {}", path.display()))?;
    file.try_lock().with_context(|| {
        let path = path.display();
        format!("lock {path}: does another node export to it? Each node needs a file of its own")
    })?;
    Ok(file)
}

/// Reads the last checkpoint, and removes what a crash left after it. `None` if the file is empty.
fn read_last(mut file: &File) -> anyhow::Result<Option<CheckpointRecord>> {
    let length = file.metadata()?.len();
    let mut wanted = TAIL_BYTES;
    loop {
        let start = length.saturating_sub(wanted);
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail)?;
        match find_last(&tail, start == 0)? {
            Some((kept, last)) => {
                file.set_len(start + kept as u64)?;
                return Ok(Some(last));
            }
            None if start == 0 => {
                file.set_len(0)?;
                return Ok(None);
            }
            None => wanted *= 2,
        }
    }
}

/// The last checkpoint in the end of a file, and the position after it. `None` if it has only entries of an unfinished batch.
///
/// # Errors
/// If a line is not one of an export. `is_whole`: the end begins with the file.
fn find_last(tail: &[u8], is_whole: bool) -> anyhow::Result<Option<(usize, CheckpointRecord)>> {
    let lines: Vec<&[u8]> = tail.split_inclusive(|byte| *byte == b'\n').collect();
    let mut end = tail.len();
    for (index, line) in lines.iter().enumerate().rev() {
        let start = end - line.len();
        if index == 0 && !is_whole {
            // The beginning of the line may be missing.
            return Ok(None);
        }
        if line.ends_with(b"\n") {
            let record = ExportLine::parse(line).context("a line is not that of an export")?;
            if let ExportLine::AuditCheckpoint(checkpoint) = record {
                return Ok(Some((end, checkpoint)));
            }
        } else if !line.starts_with(LINE_START) && !LINE_START.starts_with(line) {
            bail!("the last line is not that of an export");
        }
        end = start;
    }
    Ok(None)
}

fn append(mut file: &File, lines: &[ExportLine]) -> anyhow::Result<()> {
    file.write_all(&to_ndjson(lines)?)?;
    Ok(file.sync_data()?)
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;
    use vouchsafe_domain::audit_log::AuditRow;

    use super::*;

    fn checkpoint(number: i64) -> CheckpointRecord {
        CheckpointRecord {
            number,
            at: OffsetDateTime::UNIX_EPOCH,
            hash: "ab".repeat(32),
            mac: Some("cd".repeat(32)),
        }
    }

    fn checkpoint_line(number: i64) -> ExportLine {
        ExportLine::AuditCheckpoint(checkpoint(number))
    }

    fn entry_line(audit_id: i64) -> ExportLine {
        ExportLine::AuditEntry(AuditRow {
            audit_id,
            at: OffsetDateTime::UNIX_EPOCH,
            operator: "admin".to_owned(),
            action: "partner.change".to_owned(),
            subject: "x".to_owned(),
            before: None,
            after: Some(format!("{{\"a\": \"{}\"}}", "x".repeat(1_000))),
            trace_id: None,
            partner_id: None,
        })
    }

    fn read(path: &Path) -> anyhow::Result<Option<CheckpointRecord>> {
        read_last(&open(path)?)
    }

    fn write(path: &Path, lines: &[ExportLine]) {
        append(&open(path).unwrap(), lines).unwrap();
    }

    #[test]
    fn export_continues_after_the_last_checkpoint() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.ndjson");
        assert_eq!(read(&path).unwrap(), None);
        write(&path, &(1..=40).map(checkpoint_line).collect::<Vec<_>>());
        assert_eq!(read(&path).unwrap(), Some(checkpoint(40)));
        let complete = std::fs::read(&path).unwrap();
        // A batch of 200 KB without its checkpoint, and a torn line.
        write(&path, &(1..=200).map(entry_line).collect::<Vec<_>>());
        let line = to_ndjson(&[entry_line(201)]).unwrap();
        open(&path).unwrap().write_all(&line[..900]).unwrap();
        assert_eq!(read(&path).unwrap(), Some(checkpoint(40)));
        let kept = std::fs::read(&path).unwrap();
        assert_eq!(kept, complete, "the unfinished batch is removed");
        write(&path, &[entry_line(1), checkpoint_line(41)]);
        assert_eq!(read(&path).unwrap(), Some(checkpoint(41)));
    }

    #[test]
    fn unfinished_first_batch_is_removed() {
        let whole = to_ndjson(&[entry_line(1), entry_line(2), checkpoint_line(1)]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.ndjson");
        for length in [0, 1, 10, 500, 1_200, 2_400, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(read(&path).unwrap(), None, "{length}");
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        }
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(read(&path).unwrap(), Some(checkpoint(1)));
    }

    #[test]
    fn other_file_is_refused_and_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes");
        let whole = to_ndjson(&[checkpoint_line(1)]).unwrap();
        let after = [&whole[..], b"nonsense\n"].concat();
        let torn_after = [&whole[..], b"nonsense"].concat();
        for text in [
            &b"notes"[..],
            b"notes\n",
            b"{\"type\":\"other\"}\n",
            &after,
            &torn_after,
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(read(&path).is_err());
            assert_eq!(std::fs::read(&path).unwrap(), text);
        }
    }

    #[test]
    fn file_of_another_node_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.ndjson");
        let file = open(&path).unwrap();
        let error = open(&path).unwrap_err();
        assert!(format!("{error:#}").contains("Each node needs a file of its own"));
        drop(file);
        open(&path).unwrap();
    }
}
