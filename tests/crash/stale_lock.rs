//! Does a start cope with what killed processes left behind, when a pid in it is somebody else's by now?
//!
//! In a container that is no rarity: pids are small and come again, and nobody may reap what was orphaned.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use crate::program::{Program, test_directory};
use crate::{lock_test_turn, run};

/// A start without `initdb`, on a machine that does other things too.
const STARTS_WITHIN: Duration = Duration::from_secs(8);

#[test]
fn a_socket_whose_lock_names_a_stranger_is_taken_over() {
    let _turn = lock_test_turn();
    run(async {
        let directory = test_directory();
        let mut program = Program::new(&directory.path().join("data"), &[]);
        program.start().await;
        assert!(program.stop(), "{}", program.log_tail());

        let cluster = program.data_dir().join("postgres/data");
        let owner = fs::metadata(&cluster).unwrap();
        let mut stranger = Command::new("sleep");
        stranger.arg("60");
        if rustix::process::geteuid().is_root() {
            stranger.uid(owner.uid()).gid(owner.gid());
        }
        let mut stranger = stranger.spawn().unwrap();
        let lock = program.data_dir().join("postgres/run/.s.PGSQL.5432.lock");
        let left = format!(
            "{}\n{}\n1700000000\n5432\n{}\n",
            stranger.id(),
            cluster.display(),
            lock.display()
        );
        fs::write(&lock, left).unwrap();
        fs::set_permissions(&lock, Permissions::from_mode(0o600)).unwrap();
        chown(&lock, Some(owner.uid()), Some(owner.gid())).unwrap();

        let took = program.start().await;
        println!(
            "started {} ms after a stranger's pid was left in the socket's lock",
            took.as_millis()
        );
        assert!(took < STARTS_WITHIN, "{took:?}");
        assert!(program.stop(), "{}", program.log_tail());
        assert!(
            stranger.try_wait().unwrap().is_none(),
            "the stranger was left alone"
        );
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    });
}
