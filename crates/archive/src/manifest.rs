//! Manifest of an archive: its files with their hashes.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// Name of the manifest in its archive.
pub(crate) const FILE_NAME: &str = "manifest.json";

/// Extension of the directory of an archive that is not complete.
pub(crate) const PARTIAL: &str = "partial";

/// A reader refuses other formats.
pub(crate) const FORMAT: &str = "vouchsafe-archive-1";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    /// Version of the program.
    pub program: String,
    pub log: String,
    /// `2026-08`, UTC.
    pub month: String,
    /// Before the rows were read, by the database's clock.
    #[serde(with = "time::serde::rfc3339")]
    pub written_at: OffsetDateTime,
    /// Identity of the database.
    pub database: String,
    pub files: Vec<ArchivedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedFile {
    pub name: String,
    pub rows: u64,
    /// Compressed.
    pub bytes: u64,
    /// Of the compressed file, in hexadecimal digits.
    pub sha256: String,
}

impl Manifest {
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.rows).sum()
    }

    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}
