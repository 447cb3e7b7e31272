//! Files with secrets: their text, and a warning if other users can read or replace them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Group members must not write, others must have no access. A group that reads is common: root and the
/// service's group.
const EXPOSING_BITS: u32 = 0o027;

/// Docker and Compose mount secrets here, readable by everybody in the container.
const CONTAINER_SECRETS: &str = "/run/secrets";

/// A file with secrets that other users can read or replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedFile {
    path: PathBuf,
    mode: u32,
}

impl fmt::Display for ExposedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(
            f,
            "other users of this machine can read or replace the secrets in {path} (mode {:03o}); run: chmod 600 {path}",
            self.mode
        )
    }
}

/// Reads a text file without its byte order mark, and whether it is exposed to other users.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub fn read(path: &Path) -> io::Result<(Zeroizing<String>, Option<ExposedFile>)> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    // With capacity for the whole file: growing would leave unwiped copies in memory.
    let length = usize::try_from(metadata.len()).unwrap_or_default();
    let mut text = Zeroizing::new(String::with_capacity(length + 1));
    file.read_to_string(&mut text)?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    let mode = metadata.permissions().mode() & 0o777;
    let is_exposed = metadata.is_file() && mode & EXPOSING_BITS != 0 && !path.starts_with(CONTAINER_SECRETS);
    let exposed = is_exposed.then(|| ExposedFile {
        path: path.to_owned(),
        mode,
    });
    Ok((text, exposed))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    #[test]
    fn file_open_to_other_users_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        fs::write(&path, "text").unwrap();
        for (mode, is_exposed) in [
            (0o600, false),
            (0o400, false),
            (0o640, false),
            (0o644, true),
            (0o660, true),
            (0o602, true),
        ] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let (text, exposed) = read(&path).unwrap();
            assert_eq!(
                (text.as_str(), exposed.is_some()),
                ("text", is_exposed),
                "{mode:o}"
            );
            if let Some(exposed) = exposed {
                let mode = format!("(mode {mode:o}); run: chmod 600 {}", path.display());
                assert!(exposed.to_string().ends_with(&mode), "{exposed}");
            }
        }
    }
}
