//! Check of archives without a database: manifest, hashes, numbers of rows.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use serde::de::IgnoredAny;
use sha2::{Digest as _, Sha256};

use crate::manifest::{ArchivedFile, FILE_NAME, FORMAT, Manifest, PARTIAL};
use crate::{ArchiveError, Log, at, audit_log, damaged};

/// An archive whose files are as its manifest says.
#[derive(Debug)]
pub struct CheckedArchive {
    pub manifest: Manifest,
    /// SHA-256 of the manifest, as `log_archives` has it.
    pub digest: [u8; 32],
}

impl CheckedArchive {
    /// SHA-256 of the manifest in hexadecimal digits.
    #[must_use]
    pub fn sha256(&self) -> String {
        hex::encode(self.digest)
    }
}

/// Lists the archives in a directory, which may be one itself, by their names.
///
/// # Errors
/// [`ArchiveError::File`] when the directory cannot be read.
pub fn list_archives(directory: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    if directory.join(FILE_NAME).exists() {
        return Ok(vec![directory.to_owned()]);
    }
    let list = || {
        let entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
        io::Result::Ok(entries.into_iter().map(|entry| entry.path()))
    };
    let is_archive =
        |path: &PathBuf| path.is_dir() && path.extension().is_none_or(|extension| extension != PARTIAL);
    let mut archives: Vec<_> = list().map_err(at(directory))?.filter(is_archive).collect();
    archives.sort();
    Ok(archives)
}

/// Reads an archive to its end and compares it with its manifest.
///
/// # Errors
/// [`ArchiveError::Damaged`] names the first difference; [`ArchiveError::File`] a file that is missing or
/// cannot be read.
pub fn check_archive(directory: &Path) -> Result<CheckedArchive, ArchiveError> {
    let path = directory.join(FILE_NAME);
    let text = fs::read(&path).map_err(at(&path))?;
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| damaged(&path, format!("no manifest: {error}")))?;
    if manifest.format != FORMAT {
        let reason = format!(
            "the format is {}, and this program reads {FORMAT}",
            manifest.format
        );
        return Err(damaged(&path, reason));
    }
    let mut names = BTreeSet::from([FILE_NAME]);
    for file in &manifest.files {
        let is_name = Path::new(&file.name)
            .file_name()
            .is_some_and(|name| name == file.name.as_str());
        if !is_name || !names.insert(&file.name) {
            return Err(damaged(
                &path,
                format!("{} is no name of a file, or is twice there", file.name),
            ));
        }
        check_file(&directory.join(&file.name), file)?;
    }
    for entry in fs::read_dir(directory).map_err(at(directory))? {
        let entry = entry.map_err(at(directory))?;
        if entry
            .file_name()
            .to_str()
            .is_none_or(|name| !names.contains(name))
        {
            return Err(damaged(
                &entry.path(),
                "the manifest does not have this file".to_owned(),
            ));
        }
    }
    if manifest.log == Log::AuditLog.name() {
        audit_log::check(directory)?;
    }
    Ok(CheckedArchive {
        manifest,
        digest: Sha256::digest(&text).into(),
    })
}

fn check_file(path: &Path, expected: &ArchivedFile) -> Result<(), ArchiveError> {
    let (bytes, sha256) = hash_file(path).map_err(at(path))?;
    if (bytes, &sha256) != (expected.bytes, &expected.sha256) {
        return Err(damaged(path, "its hash is not that of the manifest".to_owned()));
    }
    let file = File::open(path).map_err(at(path))?;
    let mut rows = 0;
    for line in BufReader::new(MultiGzDecoder::new(BufReader::new(file))).lines() {
        let line = line.map_err(at(path))?;
        rows += 1;
        if let Err(error) = serde_json::from_str::<IgnoredAny>(&line) {
            return Err(damaged(path, format!("row {rows} is no JSON: {error}")));
        }
    }
    if rows != expected.rows {
        return Err(damaged(
            path,
            format!("{rows} rows, and {} in the manifest", expected.rows),
        ));
    }
    Ok(())
}

fn hash_file(path: &Path) -> io::Result<(u64, String)> {
    let mut file = BufReader::new(File::open(path)?);
    let mut hash = Sha256::new();
    let mut bytes = 0;
    loop {
        let chunk = file.fill_buf()?;
        if chunk.is_empty() {
            return Ok((bytes, hex::encode(hash.finalize())));
        }
        hash.update(chunk);
        let length = chunk.len();
        bytes += length as u64;
        file.consume(length);
    }
}
