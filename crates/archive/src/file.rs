//! Files of an archive: compressed lines that are hashed while they are written, and synced; reading them.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use futures_util::{Stream, StreamExt as _};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::manifest::ArchivedFile;
use crate::{ArchiveError, at};

/// Archives have what partners have written: nobody but the owner of the files reads them.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// A file of lines that is being written.
pub(crate) struct LineWriter {
    name: String,
    path: PathBuf,
    lines: GzEncoder<HashingWriter>,
    rows: u64,
}

impl LineWriter {
    pub(crate) fn create(directory: &Path, name: &str) -> Result<Self, ArchiveError> {
        let path = directory.join(name);
        let file = create_file(&path).map_err(at(&path))?;
        let hashing = HashingWriter {
            file: BufWriter::new(file),
            hash: Sha256::new(),
            bytes: 0,
        };
        Ok(Self {
            name: name.to_owned(),
            path,
            lines: GzEncoder::new(hashing, Compression::default()),
            rows: 0,
        })
    }

    /// Appends a line. JSON has no line feed in it.
    pub(crate) fn push(&mut self, line: &str) -> Result<(), ArchiveError> {
        self.rows += 1;
        writeln!(self.lines, "{line}").map_err(at(&self.path))
    }

    /// Ends the file. It is on disk then.
    pub(crate) fn finish(self) -> Result<ArchivedFile, ArchiveError> {
        let Self {
            name,
            path,
            lines,
            rows,
        } = self;
        let end = || {
            let HashingWriter { file, hash, bytes } = lines.finish()?;
            file.into_inner()?.sync_all()?;
            io::Result::Ok((hash, bytes))
        };
        let (hash, bytes) = end().map_err(at(&path))?;
        Ok(ArchivedFile {
            name,
            rows,
            bytes,
            sha256: hex::encode(hash.finalize()),
        })
    }
}

/// Writes lines to a file and ends it.
pub(crate) async fn copy_lines(
    mut lines: impl Stream<Item = Result<String, sqlx::Error>> + Unpin,
    mut file: LineWriter,
) -> Result<ArchivedFile, ArchiveError> {
    while let Some(line) = lines.next().await {
        file.push(&line?)?;
    }
    file.finish()
}

struct HashingWriter {
    file: BufWriter<File>,
    hash: Sha256,
    bytes: u64,
}

impl Write for HashingWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.file.write(buffer)?;
        self.hash.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Reads the rows of a small file of an archive that was checked.
pub(crate) fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, ArchiveError> {
    let read = || {
        let file = BufReader::new(File::open(path)?);
        let lines = BufReader::new(MultiGzDecoder::new(file)).lines();
        lines
            .map(|line| Ok(serde_json::from_str(&line?)?))
            .collect::<io::Result<_>>()
    };
    read().map_err(at(path))
}

/// Writes a small file. It is on disk then.
pub(crate) fn write_synced(path: &Path, content: &[u8]) -> Result<(), ArchiveError> {
    let write = || {
        let mut file = create_file(path)?;
        file.write_all(content)?;
        file.sync_all()
    };
    write().map_err(at(path))
}

fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)
}

/// Creates a directory and those above it. Their names are on disk then.
pub(crate) fn create_directory(path: &Path) -> Result<(), ArchiveError> {
    let above = path.ancestors().filter(|part| !part.as_os_str().is_empty());
    let missing: Vec<_> = above.take_while(|part| !part.exists()).collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(DIRECTORY_MODE);
    builder.create(path).map_err(at(path))?;
    let parents = missing.into_iter().filter_map(Path::parent);
    parents
        .map(|parent| {
            if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            }
        })
        .try_for_each(sync_directory)
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), ArchiveError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(at(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_above_are_created_and_one_that_exists_stays() {
        let above = tempfile::tempdir().unwrap();
        let directory = above.path().join("a/b");
        create_directory(&directory).unwrap();
        create_directory(&directory).unwrap();
        assert!(directory.is_dir());
    }
}
