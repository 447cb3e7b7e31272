//! Export to a file of this node, in order and without gaps. The last checkpoint in it is the position.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use tokio::task::spawn_blocking;
use vouchsafe_domain::audit_export::{CheckpointRecord, ExportLine, to_ndjson};
use vouchsafe_store::{AuditLog, ExportContent};

use super::ExportOutcome;

/// First read of the end of the file; doubled until it has a checkpoint and an entry.
const TAIL_BYTES: u64 = 64 * 1024;

/// Longer than any batch.
const MAX_TAIL_BYTES: u64 = 256 * 1024 * 1024;

/// The file may be renamed between opening and locking it.
const OPEN_ATTEMPTS: u32 = 3;

/// How an entry begins.
const ENTRY_START: &[u8] = br#"{"type":"audit_entry","#;

/// How each line begins. A line that a crash left unfinished is removed only if it begins like that, too.
const LINE_START: &[u8] = br#"{"type":"audit_"#;

#[derive(Debug)]
pub(crate) struct FileExport {
    audit_log: AuditLog,
    path: PathBuf,
    content: ExportContent,
}

impl FileExport {
    pub(crate) fn new(audit_log: AuditLog, path: PathBuf, content: ExportContent) -> Self {
        Self {
            audit_log,
            path,
            content,
        }
    }

    pub(crate) const fn content(&self) -> ExportContent {
        self.content
    }

    /// Appends the missing lines.
    ///
    /// # Errors
    /// If the file or the database fails, or another process exports to the file.
    pub(crate) async fn export(&self) -> anyhow::Result<ExportOutcome> {
        let (path, content) = (self.path.clone(), self.content);
        let file = Arc::new(spawn_blocking(move || open(&path)).await??);
        loop {
            let last = self.on_file(&file, move |file| read_last(file, content)).await?;
            if let Some(last) = &last
                && let Some(mismatch) = self.find_mismatch(last).await?
            {
                return Ok(ExportOutcome::Mismatch(mismatch));
            }
            let position = last.map_or(0, |last| last.number);
            let lines = self.audit_log.read_export_batch(position, content).await?;
            if lines.is_empty() {
                return Ok(ExportOutcome::Complete);
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

    /// Compares the last checkpoint of the file with the database; returns what is wrong.
    async fn find_mismatch(&self, last: &CheckpointRecord) -> anyhow::Result<Option<String>> {
        let stored = self.audit_log.read_checkpoints(last.number, 1).await?;
        if stored.first() == Some(last) {
            return Ok(None);
        }
        let option = match self.content {
            ExportContent::Checkpoints => "--checkpoints",
            ExportContent::Entries => "--audit-export",
        };
        Ok(Some(format!(
            "checkpoint {} in {file} is not that of the database: run `vouchsafe verify {option} {file}`; \
             after a restore, begin a new file",
            last.number,
            file = self.path.display()
        )))
    }
}

/// Opens and locks the file: two processes would write the same lines.
fn open(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).append(true).create(true).mode(0o600);
    for _ in 0..OPEN_ATTEMPTS {
        let file = options
            .open(path)
            .with_context(|| format!("open {}", path.display()))?;
        file.try_lock().with_context(|| {
            let path = path.display();
            format!("lock {path}: does another node export to it? Each node needs a file of its own")
        })?;
        // Before the lock, the file may have been renamed, to begin the next one of a series.
        let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let named = std::fs::metadata(path).map(identity).ok();
        if named == Some(identity(file.metadata()?)) {
            return Ok(file);
        }
    }
    bail!("{} is another file each time it is opened", path.display())
}

/// Reads the last checkpoint, and removes what a crash left after it. `None` if the file has no checkpoint.
fn read_last(mut file: &File, content: ExportContent) -> anyhow::Result<Option<CheckpointRecord>> {
    let length = file.metadata()?.len();
    let mut wanted = TAIL_BYTES;
    loop {
        let start = length.saturating_sub(wanted);
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail)?;
        let (kept, last) = match find_last(&tail, start == 0, content)? {
            TailContent::Checkpoint(kept, last) => (kept, Some(last)),
            TailContent::Unfinished => (0, None),
            TailContent::Unknown if wanted < MAX_TAIL_BYTES => {
                wanted *= 2;
                continue;
            }
            TailContent::Unknown => {
                bail!("the last {MAX_TAIL_BYTES} bytes of the file have no checkpoint with entries before it")
            }
        };
        if kept < tail.len() {
            file.set_len(start + kept as u64)?;
        }
        return Ok(last);
    }
}

/// The end of a file.
enum TailContent {
    /// The last checkpoint, and the position after it.
    Checkpoint(usize, CheckpointRecord),
    /// The whole file is the beginning of the first batch, or empty.
    Unfinished,
    /// More of the file is needed.
    Unknown,
}

/// Finds the last checkpoint. `is_whole`: the tail is the whole file.
///
/// # Errors
/// If a line is not one of an export, or the file is that of the other export.
fn find_last(tail: &[u8], is_whole: bool, content: ExportContent) -> anyhow::Result<TailContent> {
    let mut lines: Vec<&[u8]> = tail.split_inclusive(|byte| *byte == b'\n').collect();
    if !is_whole && !lines.is_empty() {
        // Its beginning may be missing.
        lines.remove(0);
    }
    let mut end = tail.len();
    while let Some(line) = lines.pop() {
        if line.ends_with(b"\n") {
            let record = ExportLine::parse(line).context("a line is not that of an export")?;
            if let ExportLine::AuditCheckpoint(checkpoint) = record {
                let has_entry = lines.iter().any(|line| line.starts_with(ENTRY_START));
                let shows_content = has_entry || (content == ExportContent::Checkpoints && !lines.is_empty());
                if !is_whole && !shows_content {
                    return Ok(TailContent::Unknown);
                }
                check_content(lines.is_empty(), has_entry, content)?;
                return Ok(TailContent::Checkpoint(end, checkpoint));
            }
        } else if !is_torn(line) {
            bail!("the last line is not that of an export");
        }
        end -= line.len();
    }
    Ok(if is_whole {
        TailContent::Unfinished
    } else {
        TailContent::Unknown
    })
}

/// Whether a crash may have left this line: after a power failure, some file systems have zeros at the end of
/// a file.
fn is_torn(line: &[u8]) -> bool {
    line.starts_with(LINE_START) || LINE_START.starts_with(line) || line.iter().all(|byte| *byte == 0)
}

/// Checks the lines before the last checkpoint: one export must not continue the file of the other. A file of
/// entries may have single checkpoints without any, whose entries were removed from the database.
fn check_content(is_first: bool, has_entry: bool, content: ExportContent) -> anyhow::Result<()> {
    match content {
        ExportContent::Entries if !is_first && !has_entry => bail!(
            "the file has checkpoints without their entries: VOUCHSAFE_CHECKPOINT_FILE writes such files; name another one"
        ),
        ExportContent::Checkpoints if has_entry => {
            bail!("the file has entries: VOUCHSAFE_AUDIT_EXPORT_FILE writes such files; name another one")
        }
        _ => Ok(()),
    }
}

/// Appends the lines, or removes what was written of them: after a failed sync, the next one does not report
/// the loss.
fn append(mut file: &File, lines: &[ExportLine]) -> anyhow::Result<()> {
    let length = file.metadata()?.len();
    let written = file.write_all(&to_ndjson(lines)?).and_then(|()| file.sync_data());
    if let Err(error) = written {
        file.set_len(length)
            .with_context(|| format!("remove the lines that were not written: {error}"))?;
        return Err(error.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use vouchsafe_domain::audit_log::AuditRow;
    use vouchsafe_domain::fixtures::{NOW, audit_entry};

    use super::*;

    fn checkpoint(number: i64) -> CheckpointRecord {
        CheckpointRecord {
            number,
            at: NOW,
            hash: "ab".repeat(32),
            mac: "cd".repeat(32),
        }
    }

    fn checkpoint_line(number: i64) -> ExportLine {
        ExportLine::AuditCheckpoint(checkpoint(number))
    }

    fn entry_line(audit_id: i64) -> ExportLine {
        ExportLine::AuditEntry(AuditRow {
            subject: "x".repeat(1_000),
            ..audit_entry(audit_id)
        })
    }

    fn read_for(path: &Path, content: ExportContent) -> anyhow::Result<Option<CheckpointRecord>> {
        read_last(&open(path)?, content)
    }

    fn read(path: &Path) -> anyhow::Result<Option<CheckpointRecord>> {
        read_for(path, ExportContent::Entries)
    }

    fn write(path: &Path, lines: &[ExportLine]) {
        append(&open(path).unwrap(), lines).unwrap();
    }

    #[test]
    fn export_continues_after_the_last_checkpoint() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.ndjson");
        assert_eq!(read(&path).unwrap(), None);
        write(&path, &[checkpoint_line(39), entry_line(0), checkpoint_line(40)]);
        assert_eq!(read(&path).unwrap(), Some(checkpoint(40)));
        let complete = std::fs::read(&path).unwrap();
        // A batch of 200 KB without its checkpoint, and a line that is torn or has zeros.
        let line = to_ndjson(&[entry_line(201)]).unwrap();
        for torn in [&line[..900], &[0; 70_000], &[&line[..20], &[0; 9][..]].concat()] {
            write(&path, &(1..=200).map(entry_line).collect::<Vec<_>>());
            open(&path).unwrap().write_all(torn).unwrap();
            assert_eq!(read(&path).unwrap(), Some(checkpoint(40)));
            let kept = std::fs::read(&path).unwrap();
            assert_eq!(kept, complete, "the unfinished batch is removed");
        }
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
        let long = "x".repeat(200_000) + "\n";
        for text in [
            &b"notes"[..],
            b"notes\n",
            b"{\"type\":\"other\"}\n",
            &after,
            &torn_after,
            long.as_bytes(),
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(read(&path).is_err());
            assert_eq!(std::fs::read(&path).unwrap(), text);
        }
    }

    #[test]
    fn export_does_not_continue_the_file_of_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.ndjson");
        // A file may begin with the last checkpoint of another one.
        write(&path, &[checkpoint_line(1)]);
        for content in [ExportContent::Entries, ExportContent::Checkpoints] {
            assert_eq!(read_for(&path, content).unwrap(), Some(checkpoint(1)));
        }
        write(&path, &(2..=2_000).map(checkpoint_line).collect::<Vec<_>>());
        assert_eq!(
            read_for(&path, ExportContent::Checkpoints).unwrap(),
            Some(checkpoint(2_000))
        );
        let error = read(&path).unwrap_err();
        assert!(
            format!("{error:#}").contains("without their entries"),
            "{error:#}"
        );
        let mut long = entry_line(1);
        if let ExportLine::AuditEntry(entry) = &mut long {
            entry.subject = "x".repeat(100_000);
        }
        write(&path, &[long, checkpoint_line(2_001)]);
        assert!(read_for(&path, ExportContent::Checkpoints).is_err());
        // Its entries were removed from the database.
        write(&path, &[checkpoint_line(2_002)]);
        assert_eq!(read(&path).unwrap(), Some(checkpoint(2_002)));
    }

    #[test]
    fn file_is_private_and_of_one_process() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.ndjson");
        let file = open(&path).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let error = open(&path).unwrap_err();
        assert!(format!("{error:#}").contains("Each node needs a file of its own"));
        drop(file);
        open(&path).unwrap();
    }
}
