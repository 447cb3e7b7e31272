//! A data directory after its first start: made once per build of the program, copied by each instance.
//!
//! `initdb`, the migrations and the sandbox's data take six times the rest of a start.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use crate::process::{program, scratch_directory};
use crate::wait::{WAIT_TIMEOUT, wait_until};

/// Settings that change what the first start writes. A service with one of them starts on an empty directory.
const FIRST_START_SETTINGS: [&str; 5] = [
    "DATABASE_URL",
    "VOUCHSAFE_ENVIRONMENT",
    "VOUCHSAFE_KMS",
    "VOUCHSAFE_MASTER_KEY",
    "VOUCHSAFE_OPERATOR_TOKEN",
];

/// Returns whether a service with these settings could have made the prepared directory.
pub(crate) fn fits(settings: &[(&str, &str)]) -> bool {
    settings
        .iter()
        .all(|(name, _)| !FIRST_START_SETTINGS.contains(name))
}

/// Copies the prepared directory to `data_dir`, which does not exist yet. All instances on copies have the
/// same keys, sandbox partner and operator token. `start_and_stop` runs a service on an empty directory once.
pub(crate) fn copy_to(data_dir: &Path, start_and_stop: impl FnOnce(&Path)) {
    let folder = program().with_file_name("prepared-data");
    fs::create_dir_all(&folder).unwrap();
    // Held until the copy is complete: tests of another build remove the directory.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    copy(&prepared(&folder, start_and_stop), data_dir);
}

/// The directory of this build; makes it unless there is one.
fn prepared(folder: &Path, start_and_stop: impl FnOnce(&Path)) -> PathBuf {
    let directory = folder.join(build_of(program()));
    if !directory.exists() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                fs::remove_dir_all(entry.path()).unwrap();
            }
        }
        make(&directory, start_and_stop);
    }
    directory
}

/// Name of a build: a program that is linked again has another time.
fn build_of(program: &Path) -> String {
    let file = program.metadata().unwrap();
    let linked_at = file.modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
    format!("{}-{}", linked_at.as_nanos(), file.len())
}

fn make(directory: &Path, start_and_stop: impl FnOnce(&Path)) {
    let scratch = scratch_directory();
    let made = scratch.path().join("data");
    start_and_stop(&made);
    // Postgres exits after the service: only then its files are consistent.
    wait_until("the prepared server to stop", WAIT_TIMEOUT, || {
        let is_running = made.join("postgres/data/postmaster.pid").exists();
        (!is_running).then_some(())
    });
    // Renamed when it is complete, because a killed test leaves a part.
    let part = directory.with_extension("part");
    copy(&made, &part);
    fs::rename(part, directory).unwrap();
}

/// Copies with owners, because Postgres accepts only its own files. Root runs Postgres as another user.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-pR").args([from, to]).status().unwrap();
    assert!(status.success(), "cp {}: {status}", from.display());
}
