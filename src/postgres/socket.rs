//! Through which socket is the private Postgres reached?
//!
//! A unix socket alone, in a directory that only its account can enter. The path of a socket must fit into a fixed field
//! of the kernel; when the data directory lies too deep, a short directory under the temporary one takes its place.

use std::path::{Path, PathBuf};
use std::{env, fs};

use super::account::Account;
use super::error::PostgresError;
use super::home::{Home, make_private, short_name};

/// The port, which only names the socket file here.
pub(super) const PORT: u16 = 5432;

/// The file by which a server says that the socket is its own.
pub(super) const LOCK_FILE: &str = ".s.PGSQL.5432.lock";

/// Bytes of the longest usable socket path: 103 on macOS, 107 on Linux.
const MAX_PATH_BYTES: usize = 103;

/// Bytes that Postgres puts behind the directory: `/.s.PGSQL.5432`.
const FILE_NAME_BYTES: usize = "/.s.PGSQL.5432".len();

/// Chooses and makes the directory of the socket; the same one at every start.
///
/// # Errors
/// [`PostgresError::Unusable`] if no directory is both short enough and safe.
pub(super) fn make_directory(home: &Home) -> Result<PathBuf, PostgresError> {
    let inside = home.path.join("run");
    if fits(&inside) {
        make_private(&inside, home.account)?;
        return Ok(inside);
    }
    for base in [env::temp_dir(), PathBuf::from("/tmp")] {
        let Some(directory) = short_directory(&base, &home.path, home.account)? else {
            continue;
        };
        make_private(&directory, home.account)?;
        return Ok(directory);
    }
    let reason = "its path is too long for a socket, and so is that of the temporary directory".to_owned();
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
    Ok(if fits(&directory) && account.can_enter(&base)? {
        Some(directory)
    } else {
        None
    })
}

/// Short enough, and text: the client library takes no other path.
fn fits(directory: &Path) -> bool {
    directory
        .to_str()
        .is_some_and(|path| path.len() + FILE_NAME_BYTES <= MAX_PATH_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_exact() {
        let longest = MAX_PATH_BYTES - FILE_NAME_BYTES;
        assert!(fits(Path::new(&format!("/{}", "x".repeat(longest - 1)))));
        assert!(!fits(Path::new(&format!("/{}", "x".repeat(longest)))));
    }

    #[test]
    fn a_deep_home_gets_a_short_directory_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d".repeat(MAX_PATH_BYTES));
        let home = Home {
            path,
            account: Account::current(),
        };
        let socket = make_directory(&home).unwrap();
        assert!(fits(&socket));
        assert_eq!(socket, make_directory(&home).unwrap());
        fs::remove_dir(socket).unwrap();
    }
}
