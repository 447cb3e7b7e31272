//! Unix socket directory of the private Postgres, which only its account can enter.
//!
//! The kernel limits the length of a socket path. If the data directory is nested too deeply, a short
//! directory below the temporary directory is used instead.

use std::path::{Path, PathBuf};
use std::{env, fs};

use super::account::Account;
use super::cluster_home::{ClusterHome, create_private_dir, short_name};
use super::error::PostgresError;

/// Only part of the socket's file name.
pub(super) const PORT: u16 = 5432;

/// The server's lock file of the socket.
pub(super) const LOCK_FILE: &str = ".s.PGSQL.5432.lock";

/// Longest usable socket path: 103 bytes on macOS, 107 on Linux.
const MAX_PATH_BYTES: usize = 103;

/// Length of the name that Postgres appends: `/.s.PGSQL.5432`.
const FILE_NAME_BYTES: usize = "/.s.PGSQL.5432".len();

/// Chooses and creates the directory of the socket, the same one at every start.
///
/// # Errors
/// [`PostgresError::Unusable`] if no directory is both short enough and safe.
pub(super) fn create_directory(home: &ClusterHome) -> Result<PathBuf, PostgresError> {
    let directory = home.path.join("run");
    if is_usable(&directory) {
        create_private_dir(&directory, home.account)?;
        return Ok(directory);
    }
    for base in [env::temp_dir(), PathBuf::from("/tmp")] {
        let Some(directory) = short_directory(&base, &home.path, home.account)? else {
            continue;
        };
        create_private_dir(&directory, home.account)?;
        return Ok(directory);
    }
    let reason = "its path and that of the temporary directory are too long for a socket; choose a shorter \
        data directory"
        .to_owned();
    Err(PostgresError::Unusable {
        path: home.path.clone(),
        reason,
    })
}

fn short_directory(base: &Path, home: &Path, account: Account) -> Result<Option<PathBuf>, PostgresError> {
    let Ok(base) = fs::canonicalize(base) else {
        return Ok(None);
    };
    let directory = base.join(format!("vouchsafe-{}", short_name(home)));
    Ok(if is_usable(&directory) && account.can_enter(&base)? {
        Some(directory)
    } else {
        None
    })
}

/// Short enough, and UTF-8: the client library accepts no other path.
fn is_usable(directory: &Path) -> bool {
    directory
        .to_str()
        .is_some_and(|path| path.len() + FILE_NAME_BYTES <= MAX_PATH_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_over_the_limit_is_not_usable() {
        let longest = MAX_PATH_BYTES - FILE_NAME_BYTES;
        assert!(is_usable(Path::new(&format!("/{}", "x".repeat(longest - 1)))));
        assert!(!is_usable(Path::new(&format!("/{}", "x".repeat(longest)))));
    }

    #[test]
    fn deep_home_gets_a_short_socket_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d".repeat(MAX_PATH_BYTES));
        let home = ClusterHome {
            path,
            account: Account::current(),
        };
        let socket = create_directory(&home).unwrap();
        assert!(is_usable(&socket));
        assert_eq!(socket, create_directory(&home).unwrap());
        fs::remove_dir(socket).unwrap();
    }
}
