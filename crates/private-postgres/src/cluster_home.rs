//! Directory of the Postgres cluster.
//!
//! The cluster lives in `DATA_DIR/postgres`, mode 0700, owned by the Postgres account. If the service runs as
//! root and that account cannot reach the data directory (below `/root`, for example), the cluster lives in
//! `/var/lib/vouchsafe` and `DATA_DIR/postgres` is a symbolic link to it. Only the link associates a cluster
//! with a data directory: a data directory that was deleted and recreated gets a new cluster, and the old one
//! is kept for inspection.

use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::account::Account;
use super::error::{PostgresError, io_at};

/// Parent of clusters that cannot live in their data directory.
const SHARED_HOME: &str = "/var/lib/vouchsafe";

/// Allows to traverse [`SHARED_HOME`], not to list it.
const SHARED_MODE: u32 = 0o711;

/// Mode of directories that contain a cluster or its socket.
const PRIVATE_MODE: u32 = 0o700;

/// Bytes of a path's hash in a name: short for socket paths, and without collisions on one machine.
const HASH_BYTES: usize = 6;

/// Clusters of deleted data directories under one name before a start fails.
const MAX_ORPHANS: u32 = 1_000;

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
    /// [`PostgresError::Unusable`] if this process cannot use it.
    pub(super) fn find(data_dir: &Path) -> Result<Option<Self>, PostgresError> {
        let entry = entry_path(data_dir);
        if let Err(error) = fs::symlink_metadata(&entry) {
            return if error.kind() == ErrorKind::NotFound {
                Ok(None)
            } else {
                Err(io_at("inspect", &entry)(error))
            };
        }
        let path = fs::canonicalize(&entry).map_err(io_at("follow", &entry))?;
        let account = Account::owner_of(&path)?;
        Ok(Some(Self { path, account }))
    }

    /// Creates a home for a data directory that has none.
    ///
    /// # Errors
    /// [`PostgresError::NoAccount`], [`PostgresError::Unusable`] or those of the file system.
    pub(super) fn create(data_dir: &Path) -> Result<Self, PostgresError> {
        let account = Account::for_new_cluster()?;
        let entry = entry_path(data_dir);
        if account.can_enter(data_dir)? {
            // Created under a temporary name and renamed, so that no crash leaves a home owned by root.
            let temporary = data_dir.join("postgres.new");
            create_private_dir(&temporary, account)?;
            fs::rename(&temporary, &entry).map_err(io_at("create", &entry))?;
            return Ok(Self { path: entry, account });
        }
        let path = create_shared_dir(data_dir, account)?;
        symlink(&path, &entry).map_err(io_at("create", &entry))?;
        tracing::warn!(
            data_dir = %data_dir.display(),
            cluster = %path.display(),
            "the Postgres account cannot enter the data directory; cluster created outside of it and linked"
        );
        Ok(Self { path, account })
    }

    /// Postgres' own data directory.
    pub(super) fn pgdata(&self) -> PathBuf {
        self.path.join("data")
    }
}

/// Creates a directory that only `account` can use, or accepts an existing one of that kind.
///
/// # Errors
/// [`PostgresError::Unusable`] if something else exists there: in a world-writable parent another user could
/// have created the directory first, and could read what is sent through the socket.
pub(super) fn create_private_dir(path: &Path, account: Account) -> Result<(), PostgresError> {
    match DirBuilder::new().mode(PRIVATE_MODE).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        created => created.map_err(io_at("create", path))?,
    }
    let found = fs::symlink_metadata(path).map_err(io_at("inspect", path))?;
    let is_ours = found.uid() == account.uid || found.uid() == Account::current().uid;
    if !found.is_dir() || !is_ours || found.mode() & 0o777 != PRIVATE_MODE {
        let reason = "it is not a directory with mode 0700 owned by the service; remove it".to_owned();
        return Err(PostgresError::Unusable {
            path: path.to_path_buf(),
            reason,
        });
    }
    if found.uid() == account.uid {
        Ok(())
    } else {
        account.chown(path).map_err(io_at("change the owner of", path))
    }
}

/// A short name for a path, stable across starts.
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
        fs::set_permissions(shared, mode).map_err(io_at("set the mode of", shared))?;
    }
    let owner = fs::symlink_metadata(shared)
        .map_err(io_at("inspect", shared))?
        .uid();
    if owner != Account::current().uid || !account.can_enter(shared)? {
        let reason = "it must be owned by root, and the Postgres account must be able to enter it".to_owned();
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
            tracing::warn!(cluster = %path.display(), "keeping the database of a deleted data directory");
            continue;
        }
        create_private_dir(&path, account)?;
        return Ok(path);
    }
    let reason = format!("it contains {MAX_ORPHANS} databases of deleted data directories; remove them");
    Err(PostgresError::Unusable {
        path: shared.to_path_buf(),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_accessible_to_others_is_refused() {
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

        let private = dir.path().join("private");
        create_private_dir(&private, account).unwrap();
        create_private_dir(&private, account).unwrap();
    }

    #[test]
    fn short_name_is_stable() {
        let name = short_name(Path::new("/srv/vouchsafe"));
        assert_eq!(name.len(), 2 * HASH_BYTES);
        assert_eq!(name, short_name(Path::new("/srv/vouchsafe")));
        assert_ne!(name, short_name(Path::new("/srv/vouchsafe2")));
    }
}
