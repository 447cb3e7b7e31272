//! User account of the private Postgres.
//!
//! Postgres refuses to run as root. A service that runs as root runs it as `postgres`, or as `nobody` if that
//! user does not exist; any other service runs it as its own user. An existing cluster runs as its owner
//! only.

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, io};

use super::error::{PostgresError, io_at};

/// Tried in this order when the service runs as root.
const ACCOUNTS_FOR_ROOT: [&str; 2] = ["postgres", "nobody"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Account {
    /// # Errors
    /// [`PostgresError::NoAccount`] for root on a machine without either user.
    pub(super) fn for_new_cluster() -> Result<Self, PostgresError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::current());
        }
        ACCOUNTS_FOR_ROOT
            .iter()
            .find_map(|name| Self::lookup(name))
            .ok_or(PostgresError::NoAccount)
    }

    /// The account that owns an existing cluster's directory.
    ///
    /// # Errors
    /// [`PostgresError::Unusable`] if this process cannot act as the owner, or the owner is root.
    pub(super) fn owner_of(home: &Path) -> Result<Self, PostgresError> {
        let metadata = fs::metadata(home).map_err(io_at("inspect", home))?;
        let owner = Self {
            uid: metadata.uid(),
            gid: metadata.gid(),
        };
        let own_uid = Self::current().uid;
        let reason = match (own_uid, owner.uid) {
            (0, 0) => "it is owned by root, and Postgres refuses to run as root".to_owned(),
            (0, _) => return Ok(owner),
            (own, other) if own == other => return Ok(owner),
            (own, other) => format!("it is owned by user {other}, but the service runs as user {own}"),
        };
        Err(PostgresError::Unusable {
            path: home.to_path_buf(),
            reason,
        })
    }

    /// A command that runs as this account in `directory`.
    ///
    /// Its environment contains only PATH and a plain locale: the service's variables contain keys and
    /// tokens, and a privileged SQL user can read the server's environment.
    pub(super) fn command(self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("LC_ALL", "C")
            .current_dir(directory)
            .stdin(Stdio::null());
        if let Some(path) = env::var_os("PATH") {
            command.env("PATH", path);
        }
        if self.uid != Self::current().uid {
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Whether this account can enter `directory`. Tested by running a shell: access lists, mount options and
    /// security modules make the mode bits insufficient.
    ///
    /// # Errors
    /// [`PostgresError::Io`] if the shell cannot be run as this account.
    pub(super) fn can_enter(self, directory: &Path) -> Result<bool, PostgresError> {
        let shell = Path::new("/bin/sh");
        let status = self
            .command(shell, Path::new("/"))
            .args(["-c", "cd -- \"$1\"", "sh"])
            .arg(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(io_at("run as the user of Postgres", shell))?;
        Ok(status.success())
    }

    /// Changes the owner of a file or directory without following symbolic links.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn chown(self, path: &Path) -> io::Result<()> {
        lchown(path, Some(self.uid), Some(self.gid))
    }

    pub(super) fn current() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    /// Uses `id`, which consults the same sources as a login, not only `/etc/passwd`.
    fn lookup(name: &str) -> Option<Self> {
        let number = |flag: &str| -> Option<u32> {
            let output = Command::new("id")
                .args([flag, name])
                .stdin(Stdio::null())
                .output()
                .ok()?;
            if !output.status.success() {
                return None;
            }
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        Some(Self {
            uid: number("-u")?,
            gid: number("-g")?,
        })
        .filter(|account| account.uid != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_cluster_account_is_not_root() {
        assert_ne!(Account::for_new_cluster().unwrap().uid, 0);
    }

    #[test]
    fn lookup_of_unknown_user_or_root_is_none() {
        assert_eq!(Account::lookup("no-such-user-here"), None);
        assert_eq!(Account::lookup("root"), None);
    }

    #[test]
    fn missing_directory_cannot_be_entered() {
        let account = Account::for_new_cluster().unwrap();
        assert!(account.can_enter(Path::new("/")).unwrap());
        assert!(!account.can_enter(Path::new("/no/such/directory")).unwrap());
    }

    #[test]
    fn command_inherits_no_secrets() {
        let output = Account::current()
            .command("env", Path::new("/"))
            .output()
            .unwrap();
        let names: Vec<String> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .filter_map(|line| line.split_once('=').map(|(name, _)| name.to_owned()))
            .collect();
        assert!(
            names
                .iter()
                .all(|name| ["PATH", "LC_ALL", "PWD", "_"].contains(&name.as_str())),
            "{names:?}"
        );
    }
}
