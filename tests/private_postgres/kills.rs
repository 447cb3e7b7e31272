//! What is left when service, server, guard, or several of them are killed?

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use vouchsafe::postgres::{Durability, GuardStatus};

use crate::harness::{EXIT_TIMEOUT, Holder, TestDataDir, WAIT_TIMEOUT, is_answering, query_text, kill, processes_of, start, execute, wait_until};

#[test]
fn a_killed_service_takes_its_server_along() {
    let place = TestDataDir::new();
    let holder = Holder::start(&place);
    assert!(!processes_of(&place).is_empty());
    holder.kill();
    let took = wait_until("guard and server have ended", EXIT_TIMEOUT, || {
        processes_of(&place).is_empty()
    });
    println!("ended {took:?} after the kill");
    // And everything is there for the next one.
    place.start().stop().unwrap();
}

#[test]
fn a_service_that_lets_go_without_stopping_does_too() {
    let place = TestDataDir::new();
    drop(place.start());
    wait_until("guard and server have ended", EXIT_TIMEOUT, || {
        processes_of(&place).is_empty()
    });
}

#[test]
fn a_start_within_the_grace_adopts_guard_and_server() {
    let place = TestDataDir::new();
    let holder = Holder::start(&place);
    let before = read_pid(&place, "postgres/data/postmaster.pid");
    holder.kill();
    // A restart that takes its time.
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        assert!(
            !processes_of(&place).is_empty(),
            "guard and server wait for the next service"
        );
    }
    let postgres = place.start();
    let (server, guard) = (postgres.postmaster_pid().unwrap(), postgres.guard_pid().unwrap());
    assert_eq!(server, before);
    // Longer than the grace: the guard has noticed that somebody is there.
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        assert!(is_answering(&postgres));
    }
    assert_eq!(
        (postgres.postmaster_pid(), postgres.guard_pid()),
        (Some(server), Some(guard))
    );
    postgres.stop().unwrap();
    assert_eq!(processes_of(&place), Vec::<String>::new());
}

#[test]
fn a_start_while_the_guard_is_leaving_waits_and_starts_afresh() {
    let place = TestDataDir::new();
    let holder = Holder::start(&place);
    holder.kill();
    let lock = place.path().join("guard.lock");
    wait_until("the guard is stopping", EXIT_TIMEOUT, || {
        fs::read_to_string(&lock).unwrap().contains("stopping")
    });
    let postgres = place.start();
    assert!(is_answering(&postgres));
    postgres.stop().unwrap();
}

#[test]
fn other_settings_replace_the_running_server() {
    let place = TestDataDir::new();
    let holder = Holder::start(&place);
    holder.kill();
    let postgres = start(&place.open(), Durability::Durable);
    assert_eq!(
        query_text(&postgres.connect_options(), "SELECT current_setting('fsync')").unwrap(),
        "on"
    );
    postgres.stop().unwrap();
}

#[test]
fn a_killed_server_comes_back() {
    let place = TestDataDir::new();
    let postgres = place.start();
    for round in 0..3 {
        let before = postgres.postmaster_pid().unwrap();
        kill(before, Signal::KILL);
        let took = wait_until("another server answers", WAIT_TIMEOUT, || {
            postgres.postmaster_pid().is_some_and(|pid| pid != before) && is_answering(&postgres)
        });
        println!("round {round}: back after {took:?}");
    }
    postgres.stop().unwrap();
    assert_eq!(processes_of(&place), Vec::<String>::new());
}

#[test]
fn a_live_service_gets_a_new_guard_for_the_same_server() {
    let place = TestDataDir::new();
    let postgres = place.start();
    let (server, guard) = (postgres.postmaster_pid().unwrap(), postgres.guard_pid().unwrap());
    kill(guard, Signal::KILL);
    wait_until("another guard lives", WAIT_TIMEOUT, || {
        postgres.guard_pid().is_some_and(|pid| pid != guard)
    });
    wait_until("it serves", WAIT_TIMEOUT, || {
        postgres.ensure_guard().unwrap() == GuardStatus::Serving
    });
    assert_eq!(postgres.postmaster_pid(), Some(server));
    // The new guard is no parent of the server, and still brings it back.
    kill(server, Signal::KILL);
    wait_until("another server answers", WAIT_TIMEOUT, || {
        postgres.postmaster_pid().is_some_and(|pid| pid != server) && is_answering(&postgres)
    });
    postgres.stop().unwrap();
    assert_eq!(processes_of(&place), Vec::<String>::new());
}

#[test]
fn stop_right_after_the_guard_was_killed_still_leaves_no_process() {
    let place = TestDataDir::new();
    let postgres = place.start();
    kill(postgres.guard_pid().unwrap(), Signal::KILL);
    postgres.stop().unwrap();
    assert_eq!(processes_of(&place), Vec::<String>::new());
}

#[test]
fn the_next_start_copes_when_service_and_guard_were_killed() {
    let place = TestDataDir::new();
    let holder = Holder::start(&place);
    let guard = read_pid(&place, "guard.lock");
    kill(guard, Signal::KILL);
    holder.kill();
    let postgres = place.start();
    assert_ne!(postgres.guard_pid(), Some(guard));
    assert!(is_answering(&postgres));
    postgres.stop().unwrap();
    assert_eq!(processes_of(&place), Vec::<String>::new());
}

/// What is committed is there, whoever was killed with the service.
#[test]
fn a_commit_outlives_a_kill_of_all_of_them() {
    let place = TestDataDir::new();
    let postgres = place.start();
    execute(
        &postgres.connect_options(),
        "CREATE TABLE kept AS SELECT 'yes'::text AS value",
    )
    .unwrap();
    postgres.stop().unwrap();
    for killed in ["server", "server and guard"] {
        let holder = Holder::start(&place);
        if killed == "server and guard" {
            kill(read_pid(&place, "guard.lock"), Signal::KILL);
        }
        kill(read_pid(&place, "postgres/data/postmaster.pid"), Signal::KILL);
        holder.kill();
        let postgres = place.start();
        let answer = query_text(&postgres.connect_options(), "SELECT value FROM kept");
        assert_eq!(answer.unwrap(), "yes", "after a kill of service, {killed}");
        postgres.stop().unwrap();
        assert_eq!(processes_of(&place), Vec::<String>::new());
    }
}

fn read_pid(place: &TestDataDir, file: &str) -> u32 {
    let text = fs::read_to_string(place.path().join(file)).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}
