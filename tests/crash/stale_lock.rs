//! Start after a kill, with a stale socket lock whose pid was reused by another process.
//!
//! Containers reuse small pids often, and may not reap orphans.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::fixtures::{crash_instance, test_directory};
use crate::{lock_test_turn, run};

#[test]
fn start_with_reused_pid_in_socket_lock_succeeds() {
    let _turn = lock_test_turn();
    run(async {
        let directory = test_directory();
        let mut program = crash_instance(&directory.path().join("data"), &[]);
        program.restart();
        assert_eq!(program.stop(), Some(0), "{}", program.log_tail());

        let cluster = program.data_dir().join("postgres/data");
        let owner = fs::metadata(&cluster).unwrap();
        let mut unrelated = Command::new("cat");
        unrelated.stdin(Stdio::piped());
        if rustix::process::geteuid().is_root() {
            unrelated.uid(owner.uid()).gid(owner.gid());
        }
        let mut unrelated = unrelated.spawn().unwrap();
        let lock = program.data_dir().join("postgres/run/.s.PGSQL.5432.lock");
        let stale_lock = format!(
            "{}\n{}\n1700000000\n5432\n{}\n",
            unrelated.id(),
            cluster.display(),
            lock.display()
        );
        fs::write(&lock, stale_lock).unwrap();
        fs::set_permissions(&lock, Permissions::from_mode(0o600)).unwrap();
        chown(&lock, Some(owner.uid()), Some(owner.gid())).unwrap();

        let start_time = program.restart();
        println!(
            "started in {} ms with a reused pid in the socket lock",
            start_time.as_millis()
        );
        assert_eq!(program.stop(), Some(0), "{}", program.log_tail());
        assert!(
            unrelated.try_wait().unwrap().is_none(),
            "the unrelated process must stay alive"
        );
        unrelated.kill().unwrap();
        unrelated.wait().unwrap();
    });
}
