//! Does a guard go for the right reasons, and say so in time? (What it does to a real server is in
//! `tests/private_postgres`.)

use std::path::Path;

use super::*;
use crate::postgres::data_dir::DataDir;
use crate::postgres::guard_lock::GuardPresence;
use crate::postgres::plan::tests::plan;

/// A guard of a server that it must not start: there is no such program.
fn guard_in(dir: &Path) -> Guard {
    let plan = ServerPlan {
        data_dir: dir.to_path_buf(),
        program: dir.join("no-such-program"),
        ..plan()
    };
    let lock = guard_lock::acquire(dir).unwrap().expect("no other guard");
    Guard::new(plan, lock)
}

fn doing(dir: &Path) -> GuardState {
    match guard_lock::probe(dir).unwrap() {
        GuardPresence::Alive(Some(note)) => note.state,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_decides_to_go_only_while_nobody_has_the_services_lock_and_says_so_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let service = DataDir::open(dir.path()).unwrap();
    let guard = guard_in(service.path());
    assert!(!guard.commit_to_exit(), "the service is there");
    assert_eq!(doing(service.path()), GuardState::Starting);
    let path = service.path().to_path_buf();
    drop(service);
    assert!(guard.commit_to_exit());
    assert_eq!(doing(&path), GuardState::Stopping);
}

#[test]
fn it_goes_when_its_directory_has_gone() {
    let dir = tempfile::tempdir().unwrap();
    let service = DataDir::open(dir.path()).unwrap();
    let mut guard = guard_in(service.path());
    assert_eq!(guard.step().unwrap(), None);
    fs::remove_file(service.path().join("guard.lock")).unwrap();
    assert_eq!(guard.step().unwrap(), Some(ExitReason::DirectoryGone));
}

#[test]
fn it_starts_no_server_without_a_service() {
    let dir = tempfile::tempdir().unwrap();
    let mut guard = guard_in(dir.path());
    assert_eq!(guard.step().unwrap(), None);
    assert!(matches!(guard.server, Server::RestartAt(_)));
    assert_eq!(guard.next_delay(), POLL_INTERVAL, "it looks again like anybody, without haste");
}

#[test]
fn a_log_that_is_full_is_put_aside() {
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
