//! Which settings does the private Postgres run with?
//!
//! They are given on the command line, which nothing in the cluster can override: neither `postgresql.conf` nor
//! `ALTER SYSTEM` can make it lose a commit or write a voucher's data into its log.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::socket::PORT;

/// Whether a commit survives a crash of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// What is committed is on disk. The only choice for a service.
    Durable,
    /// Nothing waits for the disk; a crash of the machine loses the cluster. For tests of something else.
    ForTests,
}

/// Connections: 12 of each node and 7 of its desks (`store::together`), its lanes, the operator and a few to look around with.
/// Each costs memory, none is free.
const MAX_CONNECTIONS: u32 = 64;

/// Memory of the machine, in KiB, from which on [`LARGE_BUFFERS`] are modest.
const LARGE_MACHINE_KIB: u64 = 2 * 1024 * 1024;

/// Shared buffers on an ordinary machine: the hot part of stock, wallets and keys.
const LARGE_BUFFERS: &str = "256MB";

/// Shared buffers on a small machine, and in tests.
const SMALL_BUFFERS: &str = "64MB";

/// Settings that never vary.
const FIXED_SETTINGS: [(&str, &str); 20] = [
    // Reached through its socket alone.
    ("listen_addresses", ""),
    ("unix_socket_permissions", "0700"),
    ("password_encryption", "scram-sha-256"),
    // Group commit writes in bursts: fewer forced checkpoints, and less of each page in the log after one.
    ("max_wal_size", "2GB"),
    // What a burst has filled is kept for the next one: to make a new segment holds every commit up, 20 to 50 ms.
    ("min_wal_size", "1GB"),
    ("wal_compression", "on"),
    // Every statement is short; compiling one costs more than it saves.
    ("jit", "off"),
    // Errors go to the file that the guard opened and bounds.
    ("log_destination", "stderr"),
    ("logging_collector", "off"),
    ("log_line_prefix", "%m [%p] "),
    ("log_timezone", "UTC"),
    ("timezone", "UTC"),
    // No value of a statement reaches the log: neither statements, nor their parameters, nor the keys in the detail
    // of an error.
    ("log_statement", "none"),
    ("log_min_duration_statement", "-1"),
    ("log_duration", "off"),
    ("log_parameter_max_length", "0"),
    ("log_parameter_max_length_on_error", "0"),
    ("log_error_verbosity", "terse"),
    ("debug_print_parse", "off"),
    ("debug_print_plan", "off"),
];

/// What decides whether a commit is on disk.
const DURABLE_SETTINGS: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];

/// Where the socket is made.
const SOCKET_SETTING: &str = "unix_socket_directories";

/// The server's arguments, after its data directory.
pub(super) fn server_arguments(durability: Durability, socket_directory: &Path) -> Vec<OsString> {
    let mut arguments = Vec::new();
    for (name, value) in FIXED_SETTINGS {
        push_setting(&mut arguments, name, value);
    }
    let (buffers, on_or_off) = match durability {
        Durability::Durable => (buffers(), "on"),
        Durability::ForTests => (SMALL_BUFFERS, "off"),
    };
    push_setting(&mut arguments, "port", &PORT.to_string());
    push_setting(&mut arguments, "max_connections", &MAX_CONNECTIONS.to_string());
    push_setting(&mut arguments, "shared_buffers", buffers);
    for name in DURABLE_SETTINGS {
        push_setting(&mut arguments, name, on_or_off);
    }
    // A list by commas, unless it is quoted.
    let quoted = socket_directory.to_string_lossy().replace('"', "\"\"");
    push_setting(&mut arguments, SOCKET_SETTING, &format!("\"{quoted}\""));
    arguments
}

/// Where the server with these arguments makes its socket.
pub(super) fn socket_directory(arguments: &[OsString]) -> Option<PathBuf> {
    let mut values = arguments
        .iter()
        .filter_map(|argument| argument.to_str()?.strip_prefix(SOCKET_SETTING));
    let quoted = values.next_back()?.strip_prefix("=\"")?.strip_suffix('"')?;
    Some(quoted.replace("\"\"", "\"").into())
}

fn push_setting(arguments: &mut Vec<OsString>, name: &str, value: &str) {
    arguments.push("-c".into());
    arguments.push(format!("{name}={value}").into());
}

fn buffers() -> &'static str {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    if total_kib(&meminfo).is_some_and(|total| total >= LARGE_MACHINE_KIB) {
        LARGE_BUFFERS
    } else {
        SMALL_BUFFERS
    }
}

fn total_kib(meminfo: &str) -> Option<u64> {
    meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value_of(arguments: &[OsString], name: &str) -> Option<String> {
        let prefix = format!("{name}=");
        arguments
            .iter()
            .find_map(|argument| argument.to_str()?.strip_prefix(&prefix).map(str::to_owned))
    }

    #[test]
    fn only_tests_go_without_the_disk() {
        let durable = server_arguments(Durability::Durable, Path::new("/s"));
        let for_tests = server_arguments(Durability::ForTests, Path::new("/s"));
        for name in DURABLE_SETTINGS {
            assert_eq!(value_of(&durable, name).as_deref(), Some("on"), "{name}");
            assert_eq!(value_of(&for_tests, name).as_deref(), Some("off"), "{name}");
        }
    }

    #[test]
    fn a_directory_with_commas_and_quotes_stays_one() {
        let arguments = server_arguments(Durability::Durable, Path::new("/a,b \"c\""));
        assert_eq!(
            value_of(&arguments, "unix_socket_directories").as_deref(),
            Some(r#""/a,b ""c""""#)
        );
        assert_eq!(socket_directory(&arguments), Some("/a,b \"c\"".into()));
    }

    #[test]
    fn memory_is_read_in_kib() {
        assert_eq!(
            total_kib("MemFree: 1 kB\nMemTotal:       24684140 kB\n"),
            Some(24_684_140)
        );
        assert_eq!(total_kib(""), None);
    }
}
