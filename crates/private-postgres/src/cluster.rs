//! Preparation of the private Postgres: programs, directories, password, and a cluster made by `initdb`.
//!
//! Each step reuses the result of an earlier start. The cluster is initialized in a temporary directory and
//! renamed, so that an interrupted `initdb` leaves no cluster behind.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::fchown;
use std::path::{Path, PathBuf};

use super::cluster_home::ClusterHome;
use super::connection::{ConnectionInfo, SUPERUSER};
use super::error::{PostgresError, io_at};
use super::password::Password;
use super::plan::ServerPlan;
use super::programs::{self, ServerPrograms};
use super::settings::{self, Durability};
use super::socket;

/// Creates missing files and directories; returns the commands that run the server and its connection
/// settings.
///
/// # Errors
/// A [`PostgresError`] that says what to do.
pub(super) fn prepare(
    data_dir: &Path,
    durability: Durability,
) -> Result<(ServerPlan, ConnectionInfo), PostgresError> {
    let home = match ClusterHome::find(data_dir)? {
        Some(home) => home,
        None => ClusterHome::create(data_dir)?,
    };
    let version = version_of(&home.pgdata())?;
    let programs = programs::find(version)?;
    let password = match version {
        Some(_) => Password::read(data_dir)?,
        None => {
            let password = Password::read_or_create(data_dir)?;
            initialize(&home, &programs, &password, durability)?;
            password
        }
    };
    let socket_directory = socket::create_directory(&home)?;
    let plan = ServerPlan {
        data_dir: data_dir.to_path_buf(),
        account: home.account,
        program: programs.postgres,
        pgdata: home.pgdata(),
        settings: settings::server_arguments(durability, &socket_directory),
    };
    Ok((
        plan,
        ConnectionInfo {
            socket_directory,
            password,
        },
    ))
}

/// The major version that created the cluster; `None` without a cluster.
fn version_of(pgdata: &Path) -> Result<Option<u32>, PostgresError> {
    let path = pgdata.join("PG_VERSION");
    match fs::read_to_string(&path) {
        Ok(text) => match programs::leading_number(text.trim()) {
            Some(version) => Ok(Some(version)),
            None => Err(PostgresError::Unusable {
                path,
                reason: "it contains no version number".to_owned(),
            }),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_at("read", &path)(error)),
    }
}

fn initialize(
    home: &ClusterHome,
    programs: &ServerPrograms,
    password: &Password,
    durability: Durability,
) -> Result<(), PostgresError> {
    let temporary = home.path.join("data.new");
    remove_if_exists(&temporary, |path| fs::remove_dir_all(path))?;
    let password_file = copy_password_file(password, home)?;
    tracing::info!(cluster = %home.path.display(), "initializing a database cluster");
    let result = run_initdb(home, programs, &temporary, &password_file, durability);
    remove_if_exists(&password_file, |path| fs::remove_file(path))?;
    result?;
    let pgdata = home.pgdata();
    fs::rename(&temporary, &pgdata).map_err(io_at("create", &pgdata))?;
    let sync = File::open(&home.path).and_then(|directory| directory.sync_all());
    sync.map_err(io_at("sync", &home.path))
}

fn run_initdb(
    home: &ClusterHome,
    programs: &ServerPrograms,
    pgdata: &Path,
    password_file: &Path,
    durability: Durability,
) -> Result<(), PostgresError> {
    let mut command = home.account.command(&programs.initdb, &home.path);
    command
        .arg("--pgdata")
        .arg(pgdata)
        .arg("--pwfile")
        .arg(password_file)
        .args([
            "--username",
            SUPERUSER,
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--data-checksums",
        ]);
    if durability == Durability::ForTests {
        command.arg("--no-sync");
    }
    let output = command.output().map_err(io_at("run", &programs.initdb))?;
    if output.status.success() {
        return Ok(());
    }
    let output_text = [
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    ]
    .concat();
    Err(PostgresError::Initdb(output_text.trim().to_owned()))
}

/// `initdb` runs as the Postgres account, which cannot read the service's password file: it gets a temporary
/// copy.
fn copy_password_file(password: &Password, home: &ClusterHome) -> Result<PathBuf, PostgresError> {
    let path = home.path.join("password.tmp");
    remove_if_exists(&path, |path| fs::remove_file(path))?;
    let file = password.write_new(&path).map_err(io_at("write", &path))?;
    fchown(&file, Some(home.account.uid), Some(home.account.gid))
        .map_err(io_at("change the owner of", &path))?;
    Ok(path)
}

fn remove_if_exists(
    path: &Path,
    remove: impl FnOnce(&Path) -> std::io::Result<()>,
) -> Result<(), PostgresError> {
    match remove(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_at("remove", path)(error)),
        _ => Ok(()),
    }
}
