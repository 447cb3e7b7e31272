//! Settings of the private Postgres.
//!
//! Passed on the command line, which overrides `postgresql.conf` and `ALTER SYSTEM`: nothing in the cluster
//! can disable durable commits or write voucher data to the log.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::socket::PORT;

/// Whether commits survive a crash of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Commits are on disk. Required for a service.
    Durable,
    /// No fsync; a crash of the machine loses the cluster. For tests that do not concern durability.
    ForTests,
}

/// Two nodes with 39 connections each (`store::connection_class`), the operator and a few spare ones. Each
/// costs memory.
const MAX_CONNECTIONS: u32 = 100;

/// Several tests at once start two services each on one server.
const MAX_CONNECTIONS_OF_TESTS: u32 = 400;

/// Memory from which [`LARGE_BUFFERS`] are used. KiB.
const LARGE_MACHINE_KIB: u64 = 2 * 1024 * 1024;

/// Shared buffers on an ordinary machine: the hot part of stock, wallets and keys.
const LARGE_BUFFERS: &str = "256MB";

/// Shared buffers on a small machine, and in tests.
const SMALL_BUFFERS: &str = "64MB";

const FIXED_SETTINGS: [(&str, &str); 20] = [
    // Unix socket only.
    ("listen_addresses", ""),
    ("unix_socket_permissions", "0700"),
    ("password_encryption", "scram-sha-256"),
    // Group commit writes in bursts: fewer forced checkpoints, and fewer full-page writes after one.
    ("max_wal_size", "2GB"),
    // Keeps segments for the next burst: creating one delays every commit by 20 to 50 ms.
    ("min_wal_size", "1GB"),
    ("wal_compression", "on"),
    // Statements are short: compilation costs more than it saves.
    ("jit", "off"),
    // Errors go to the file that the guard opens and rotates.
    ("log_destination", "stderr"),
    ("logging_collector", "off"),
    ("log_line_prefix", "%m [%p] "),
    ("log_timezone", "UTC"),
    ("timezone", "UTC"),
    // No values in the log: no statements, no parameters, and no keys in error details.
    ("log_statement", "none"),
    ("log_min_duration_statement", "-1"),
    ("log_duration", "off"),
    ("log_parameter_max_length", "0"),
    ("log_parameter_max_length_on_error", "0"),
    ("log_error_verbosity", "terse"),
    ("debug_print_parse", "off"),
    ("debug_print_plan", "off"),
];

/// The settings that make commits durable.
const DURABLE_SETTINGS: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];

const SOCKET_SETTING: &str = "unix_socket_directories";

/// The server's arguments, after its data directory.
pub(super) fn server_arguments(durability: Durability, socket_directory: &Path) -> Vec<OsString> {
    let mut arguments = Vec::new();
    for (name, value) in FIXED_SETTINGS {
        push_setting(&mut arguments, name, value);
    }
    let (buffers, max_connections, on_or_off) = match durability {
        Durability::Durable => (buffers(), MAX_CONNECTIONS, "on"),
        Durability::ForTests => (SMALL_BUFFERS, MAX_CONNECTIONS_OF_TESTS, "off"),
    };
    push_setting(&mut arguments, "port", &PORT.to_string());
    push_setting(&mut arguments, "max_connections", &max_connections.to_string());
    push_setting(&mut arguments, "shared_buffers", buffers);
    for name in DURABLE_SETTINGS {
        push_setting(&mut arguments, name, on_or_off);
    }
    // Quoted, because the setting is a comma-separated list.
    let quoted = socket_directory.to_string_lossy().replace('"', "\"\"");
    push_setting(&mut arguments, SOCKET_SETTING, &format!("\"{quoted}\""));
    arguments
}

/// The socket's directory according to these arguments.
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
    fn only_test_settings_disable_durability() {
        let durable = server_arguments(Durability::Durable, Path::new("/s"));
        let for_tests = server_arguments(Durability::ForTests, Path::new("/s"));
        for name in DURABLE_SETTINGS {
            assert_eq!(value_of(&durable, name).as_deref(), Some("on"), "{name}");
            assert_eq!(value_of(&for_tests, name).as_deref(), Some("off"), "{name}");
        }
    }

    #[test]
    fn socket_directory_with_commas_and_quotes_is_quoted() {
        let arguments = server_arguments(Durability::Durable, Path::new("/a,b \"c\""));
        assert_eq!(
            value_of(&arguments, "unix_socket_directories").as_deref(),
            Some(r#""/a,b ""c""""#)
        );
        assert_eq!(socket_directory(&arguments), Some("/a,b \"c\"".into()));
    }

    #[test]
    fn total_memory_is_parsed_in_kib() {
        assert_eq!(
            total_kib("MemFree: 1 kB\nMemTotal:       24684140 kB\n"),
            Some(24_684_140)
        );
        assert_eq!(total_kib(""), None);
    }
}
