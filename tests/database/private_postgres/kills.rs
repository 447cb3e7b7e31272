//! Kills of service, server and guard, alone and combined.

use std::fs;

use rustix::process::Signal;
use vouchsafe_private_postgres::{Durability, GuardStatus};
use vouchsafe_test_harness::{WAIT_TIMEOUT, send_signal};

use super::harness::{
    Holder, TestDataDir, execute, is_answering, processes_of, query_text, start, wait_until,
};

#[test]
fn killed_service_stops_its_server() {
    let data_dir = TestDataDir::new();
    let holder = Holder::start(&data_dir);
    assert!(!processes_of(&data_dir).is_empty());
    holder.kill();
    wait_until("guard and server to exit", || processes_of(&data_dir).is_empty());
    // The next service starts normally.
    data_dir.start().stop().unwrap();
}

#[test]
fn dropped_service_stops_its_server() {
    let data_dir = TestDataDir::new();
    drop(data_dir.start());
    wait_until("guard and server to exit", || processes_of(&data_dir).is_empty());
}

#[test]
fn start_within_grace_adopts_guard_and_server() {
    let data_dir = TestDataDir::new();
    // On a slow machine the grace period may end before the start.
    let (postgres, server, guard) = vouchsafe_test_harness::wait_until("adoption", WAIT_TIMEOUT, || {
        let holder = Holder::start(&data_dir);
        let server = read_pid(&data_dir, "postgres/data/postmaster.pid");
        let guard = read_pid(&data_dir, "guard.lock");
        holder.kill();
        let postgres = data_dir.start();
        if (postgres.postmaster_pid(), postgres.guard_pid()) == (Some(server), Some(guard)) {
            return Some((postgres, server, guard));
        }
        postgres.stop().unwrap();
        None
    });
    // The guard restarts a server only for a service that it has noticed.
    send_signal(server, Signal::KILL);
    wait_until("another server to respond", || {
        postgres.postmaster_pid().is_some_and(|pid| pid != server) && is_answering(&postgres)
    });
    assert_eq!(postgres.guard_pid(), Some(guard));
    postgres.stop().unwrap();
    assert_eq!(processes_of(&data_dir), Vec::<String>::new());
}

#[test]
fn start_while_guard_stops_waits_and_restarts() {
    let data_dir = TestDataDir::new();
    let holder = Holder::start(&data_dir);
    holder.kill();
    let lock = data_dir.path().join("guard.lock");
    wait_until("the guard to stop", || {
        fs::read_to_string(&lock).unwrap().contains("stopping")
    });
    let postgres = data_dir.start();
    assert!(is_answering(&postgres));
    postgres.stop().unwrap();
}

#[test]
fn changed_settings_replace_running_server() {
    let data_dir = TestDataDir::new();
    let holder = Holder::start(&data_dir);
    holder.kill();
    let postgres = start(&data_dir.open(), Durability::Durable);
    assert_eq!(
        query_text(&postgres.connect_options(), "SELECT current_setting('fsync')").unwrap(),
        "on"
    );
    postgres.stop().unwrap();
}

#[test]
fn killed_server_is_restarted() {
    let data_dir = TestDataDir::new();
    let postgres = data_dir.start();
    for _ in 0..3 {
        let before = postgres.postmaster_pid().unwrap();
        send_signal(before, Signal::KILL);
        wait_until("another server to respond", || {
            postgres.postmaster_pid().is_some_and(|pid| pid != before) && is_answering(&postgres)
        });
    }
    postgres.stop().unwrap();
    assert_eq!(processes_of(&data_dir), Vec::<String>::new());
}

#[test]
fn killed_guard_is_replaced_for_same_server() {
    let data_dir = TestDataDir::new();
    let postgres = data_dir.start();
    let (server, guard) = (postgres.postmaster_pid().unwrap(), postgres.guard_pid().unwrap());
    send_signal(guard, Signal::KILL);
    wait_until("another guard to run", || {
        postgres.guard_pid().is_some_and(|pid| pid != guard)
    });
    wait_until("the guard to serve", || {
        postgres.ensure_guard().unwrap() == GuardStatus::Serving
    });
    assert_eq!(postgres.postmaster_pid(), Some(server));
    // The new guard is not the server's parent and must still restart it.
    send_signal(server, Signal::KILL);
    wait_until("another server to respond", || {
        postgres.postmaster_pid().is_some_and(|pid| pid != server) && is_answering(&postgres)
    });
    postgres.stop().unwrap();
    assert_eq!(processes_of(&data_dir), Vec::<String>::new());
}

#[test]
fn stop_after_killed_guard_leaves_no_process() {
    let data_dir = TestDataDir::new();
    let postgres = data_dir.start();
    send_signal(postgres.guard_pid().unwrap(), Signal::KILL);
    postgres.stop().unwrap();
    assert_eq!(processes_of(&data_dir), Vec::<String>::new());
}

#[test]
fn start_after_killed_service_and_guard_succeeds() {
    let data_dir = TestDataDir::new();
    let holder = Holder::start(&data_dir);
    let guard = read_pid(&data_dir, "guard.lock");
    send_signal(guard, Signal::KILL);
    holder.kill();
    let postgres = data_dir.start();
    assert_ne!(postgres.guard_pid(), Some(guard));
    assert!(is_answering(&postgres));
    postgres.stop().unwrap();
    assert_eq!(processes_of(&data_dir), Vec::<String>::new());
}

#[test]
fn commit_survives_kill_of_all_processes() {
    let data_dir = TestDataDir::new();
    let postgres = data_dir.start();
    execute(
        &postgres.connect_options(),
        "CREATE TABLE kept AS SELECT 'yes'::text AS value",
    )
    .unwrap();
    postgres.stop().unwrap();
    for killed in ["server", "server and guard"] {
        let holder = Holder::start(&data_dir);
        if killed == "server and guard" {
            send_signal(read_pid(&data_dir, "guard.lock"), Signal::KILL);
        }
        send_signal(read_pid(&data_dir, "postgres/data/postmaster.pid"), Signal::KILL);
        holder.kill();
        let postgres = data_dir.start();
        let response = query_text(&postgres.connect_options(), "SELECT value FROM kept");
        assert_eq!(response.unwrap(), "yes", "after a kill of service, {killed}");
        postgres.stop().unwrap();
        assert_eq!(processes_of(&data_dir), Vec::<String>::new());
    }
}

fn read_pid(data_dir: &TestDataDir, file: &str) -> u32 {
    let text = fs::read_to_string(data_dir.path().join(file)).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}
