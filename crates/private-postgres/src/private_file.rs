//! Private files of a data directory, and the names of those that the service writes and the commands read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Token of the built-in operator of a sandbox.
pub const OPERATOR_TOKEN_FILE: &str = "operator-token";

/// Credentials of the partner that a sandbox's first start creates.
pub const SANDBOX_PARTNER_FILE: &str = "sandbox-partner.json";

/// Writes a file atomically, readable by its owner only.
///
/// # Errors
/// If it cannot be written.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("draft");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    // The rename must be durable before a commit depends on the file.
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}
