//! Password of the private Postgres, in `DATA_DIR/postgres-password` with mode 0600.
//!
//! A second barrier against other users of the machine, besides the mode of the socket's directory. The file
//! is written before `initdb` runs, so that no crash leaves a cluster without a known password.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::error::{PostgresError, io_at};

/// Random bytes.
const PASSWORD_BYTES: usize = 24;

const SECRET_MODE: u32 = 0o600;

/// The password of the cluster's roles. It has no `Debug`, so that it cannot be logged by accident.
#[derive(Clone)]
pub(super) struct Password(Zeroizing<String>);

impl Password {
    /// Reads the password of an existing cluster.
    ///
    /// # Errors
    /// [`PostgresError::PasswordMissing`] if the file is missing or empty.
    pub(super) fn read(data_dir: &Path) -> Result<Self, PostgresError> {
        let path = file_path(data_dir);
        match fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => Ok(Self(Zeroizing::new(text.trim().to_owned()))),
            Ok(_) => Err(PostgresError::PasswordMissing(path)),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(PostgresError::PasswordMissing(path)),
            Err(error) => Err(io_at("read", &path)(error)),
        }
    }

    /// The password for a new cluster: one of an interrupted start, or a new one.
    ///
    /// # Errors
    /// [`PostgresError::Io`] if the file cannot be written or the system provides no random bytes.
    pub(super) fn read_or_create(data_dir: &Path) -> Result<Self, PostgresError> {
        match Self::read(data_dir) {
            Err(PostgresError::PasswordMissing(path)) => {
                Self::create(data_dir, &path).map_err(io_at("write", &path))
            }
            found => found,
        }
    }

    /// The password in clear text.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// Writes the password to a new file that only its owner can read.
    ///
    /// # Errors
    /// Those of the file system, also if the file exists.
    pub(super) fn write_new(&self, path: &Path) -> io::Result<File> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(SECRET_MODE)
            .open(path)?;
        file.write_all(self.0.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        Ok(file)
    }

    fn create(data_dir: &Path, path: &Path) -> io::Result<Self> {
        let mut bytes = Zeroizing::new([0_u8; PASSWORD_BYTES]);
        getrandom::fill(bytes.as_mut_slice()).map_err(io::Error::other)?;
        let password = Self(Zeroizing::new(hex::encode(bytes.as_slice())));
        let temporary = data_dir.join("postgres-password.new");
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        password.write_new(&temporary)?;
        fs::rename(&temporary, path)?;
        File::open(data_dir)?.sync_all()?;
        Ok(password)
    }
}

fn file_path(data_dir: &Path) -> PathBuf {
    data_dir.join("postgres-password")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn password_is_created_once_and_private() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(
            Password::read(dir.path()),
            Err(PostgresError::PasswordMissing(_))
        ));
        let created = Password::read_or_create(dir.path()).unwrap();
        assert_eq!(created.reveal().len(), 2 * PASSWORD_BYTES);
        assert_eq!(
            Password::read_or_create(dir.path()).unwrap().reveal(),
            created.reveal()
        );
        let mode = fs::metadata(file_path(dir.path())).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, SECRET_MODE);
    }
}
