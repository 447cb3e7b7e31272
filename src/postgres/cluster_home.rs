//! Where does the cluster live?
//!
//! In `DATA_DIR/postgres`, a directory of mode 0700 that belongs to the account Postgres runs as. When the service runs
//! as root and that account cannot reach the data directory (below `/root`, say), the cluster goes to `/var/lib/vouchsafe`
//! and `DATA_DIR/postgres` is a symbolic link to it. The link alone says which cluster belongs to a data directory: one
//! that was removed and made again starts with a new cluster, and the old one is left to be looked at.

use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::account::Account;
use super::error::{PostgresError, io_at};

/// Where clusters go that cannot live in their data directory.
const SHARED_HOME: &str = "/var/lib/vouchsafe";

/// Mode of [`SHARED_HOME`]: to be passed through, not listed.
const SHARED_MODE: u32 = 0o711;

/// Mode of everything that holds a cluster or its socket.
const PRIVATE_MODE: u32 = 0o700;

/// Bytes of a path's hash that go into a name: short for socket paths, and still without collisions on one machine.
const HASH_BYTES: usize = 6;

/// How many clusters whose data directories have gone may lie under one name before a start gives up.
const MAX_ORPHANS: u32 = 1_000;

/// The directory of a cluster, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClusterHome {
    /// Absolute, without symbolic links.
    pub(super) path: PathBuf,
    /// The account that Postgres runs as.
    pub(super) account: Account,
}

impl ClusterHome {
    /// The home of a data directory's cluster, if it has one.
    ///
    /// # Errors
    /// [`PostgresError::Unusable`] if there is one that this process may not use.
    pub(super) fn find(data_dir: &Path) -> Result<Option<Self>, PostgresError> {
        let entry = entry_path(data_dir);
        if let Err(error) = fs::symlink_metadata(&entry) {
            return if error.kind() == ErrorKind::NotFound {
                Ok(None)
            } else {
                Err(io_at("look at", &entry)(error))
            };
        }
        let path = fs::canonicalize(&entry).map_err(io_at("follow", &entry))?;
        let account = Account::owner_of(&path)?;
        Ok(Some(Self { path, account }))
    }

    /// Makes a home for a data directory that has none.
    ///
    /// # Errors
    /// [`PostgresError::NoAccount`], [`PostgresError::Unusable`] or what the file system says.
    pub(super) fn create(data_dir: &Path) -> Result<Self, PostgresError> {
        let account = Account::for_new_cluster()?;
        let entry = entry_path(data_dir);
        if account.can_enter(data_dir)? {
            // Made aside and moved, so that no crash leaves a home that belongs to root.
            let unfinished = data_dir.join("postgres.new");
            create_private_dir(&unfinished, account)?;
            fs::rename(&unfinished, &entry).map_err(io_at("create", &entry))?;
            return Ok(Self { path: entry, account });
        }
        let path = create_shared_dir(data_dir, account)?;
        symlink(&path, &entry).map_err(io_at("create", &entry))?;
        tracing::warn!(
            data_dir = %data_dir.display(),
            cluster = %path.display(),
            "the user of Postgres cannot enter the data directory; the database is kept elsewhere, and linked"
        );
        Ok(Self { path, account })
    }

    /// Postgres' own data directory.
    pub(super) fn pgdata(&self) -> PathBuf {
        self.path.join("data")
    }
}

/// Makes a directory that only `account` can use, or accepts one that is exactly so already.
///
/// # Errors
/// [`PostgresError::Unusable`] if something else lies there: in a directory that everybody can write to, whoever was
/// first could read what is sent through our socket.
pub(super) fn create_private_dir(path: &Path, account: Account) -> Result<(), PostgresError> {
    match DirBuilder::new().mode(PRIVATE_MODE).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => made.map_err(io_at("create", path))?,
    }
    let found = fs::symlink_metadata(path).map_err(io_at("look at", path))?;
    let is_ours = found.uid() == account.uid || found.uid() == Account::current().uid;
    if !found.is_dir() || !is_ours || found.mode() & 0o777 != PRIVATE_MODE {
        let reason = "it is no directory of our own with mode 0700; remove it".to_owned();
        return Err(PostgresError::Unusable {
            path: path.to_path_buf(),
            reason,
        });
    }
    if found.uid() == account.uid {
        Ok(())
    } else {
        account.chown(path).map_err(io_at("give away", path))
    }
}

/// A short name for a path, the same at every start.
pub(super) fn short_name(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    hex::encode(&digest[..HASH_BYTES])
}

fn entry_path(data_dir: &Path) -> PathBuf {
    data_dir.join("postgres")
}

fn create_shared_dir(data_dir: &Path, account: Account) -> Result<PathBuf, PostgresError> {
    let shared = Path::new(SHARED_HOME);
    if !shared.exists() {
        fs::create_dir_all(shared).map_err(io_at("create", shared))?;
        let mode = Permissions::from_mode(SHARED_MODE);
        fs::set_permissions(shared, mode).map_err(io_at("open up", shared))?;
    }
    let owner = fs::symlink_metadata(shared)
        .map_err(io_at("look at", shared))?
        .uid();
    if owner != Account::current().uid || !account.can_enter(shared)? {
        let reason = "it must belong to root, and the user of Postgres must be able to enter it".to_owned();
        return Err(PostgresError::Unusable {
            path: shared.to_path_buf(),
            reason,
        });
    }
    let name = short_name(data_dir);
    for attempt in 0..MAX_ORPHANS {
        let path = if attempt == 0 {
            shared.join(&name)
        } else {
            shared.join(format!("{name}-{attempt}"))
        };
        if fs::symlink_metadata(&path).is_ok() {
            tracing::warn!(cluster = %path.display(), "left alone: a database whose data directory was removed");
            continue;
        }
        create_private_dir(&path, account)?;
        return Ok(path);
    }
    let reason = format!("it holds {MAX_ORPHANS} databases whose data directory was removed; remove those");
    Err(PostgresError::Unusable {
        path: shared.to_path_buf(),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_else_could_use_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let account = Account::current();
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(
            create_private_dir(&open, account),
            Err(PostgresError::Unusable { .. })
        ));

        let link = dir.path().join("link");
        symlink(dir.path(), &link).unwrap();
        assert!(matches!(
            create_private_dir(&link, account),
            Err(PostgresError::Unusable { .. })
        ));

        let ours = dir.path().join("ours");
        create_private_dir(&ours, account).unwrap();
        create_private_dir(&ours, account).unwrap();
    }

    #[test]
    fn a_name_is_short_and_stays_the_same() {
        let name = short_name(Path::new("/srv/vouchsafe"));
        assert_eq!(name.len(), 2 * HASH_BYTES);
        assert_eq!(name, short_name(Path::new("/srv/vouchsafe")));
        assert_ne!(name, short_name(Path::new("/srv/vouchsafe2")));
    }
}
