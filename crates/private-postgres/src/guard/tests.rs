//! Tests of the guard's exit decisions. `tests/database/private_postgres` covers a real server.

use std::path::Path;

use super::*;
use crate::data_dir::DataDir;
use crate::guard_lock::GuardPresence;
use crate::plan::tests::plan;

/// A guard whose server program does not exist, so that it starts none.
fn guard_in(dir: &Path) -> Guard {
    let plan = ServerPlan {
        data_dir: dir.to_path_buf(),
        program: dir.join("no-such-program"),
        ..plan()
    };
    let lock = guard_lock::acquire(dir).unwrap().expect("no other guard");
    Guard::new(plan, lock)
}

fn state_of(dir: &Path) -> GuardState {
    match guard_lock::probe(dir).unwrap() {
        GuardPresence::Alive(Some(note)) => note.state,
        other => panic!("{other:?}"),
    }
}

#[test]
fn guard_commits_to_exit_only_while_the_service_lock_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let service = DataDir::open(dir.path()).unwrap();
    let guard = guard_in(service.path());
    assert!(!guard.commit_to_exit(), "the service is alive");
    assert_eq!(state_of(service.path()), GuardState::Starting);
    let path = service.path().to_path_buf();
    drop(service);
    assert!(guard.commit_to_exit());
    assert_eq!(state_of(&path), GuardState::Stopping);
}

#[test]
fn guard_exits_when_its_directory_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let service = DataDir::open(dir.path()).unwrap();
    let mut guard = guard_in(service.path());
    assert_eq!(guard.step().unwrap(), None);
    fs::remove_file(service.path().join("guard.lock")).unwrap();
    assert_eq!(guard.step().unwrap(), Some(ExitReason::DirectoryGone));
}

#[test]
fn guard_without_a_service_starts_no_server() {
    let dir = tempfile::tempdir().unwrap();
    let mut guard = guard_in(dir.path());
    assert_eq!(guard.step().unwrap(), None);
    assert!(matches!(guard.server, Server::RestartAt(_)));
    assert_eq!(
        guard.next_delay(),
        POLL_INTERVAL,
        "it polls at the normal interval"
    );
}

#[test]
fn full_log_is_rotated() {
    let dir = tempfile::tempdir().unwrap();
    let guard = guard_in(dir.path());
    let log = dir.path().join("postgres.log");
    let file = fs::File::create(&log).unwrap();
    file.set_len(LOG_LIMIT_BYTES).unwrap();
    guard.rotate_log();
    assert_eq!(file.metadata().unwrap().len(), LOG_LIMIT_BYTES, "not yet");
    file.set_len(LOG_LIMIT_BYTES + 1).unwrap();
    guard.rotate_log();
    assert_eq!(file.metadata().unwrap().len(), 0);
    assert_eq!(
        fs::metadata(dir.path().join("postgres.log.1")).unwrap().len(),
        LOG_LIMIT_BYTES + 1
    );
}
