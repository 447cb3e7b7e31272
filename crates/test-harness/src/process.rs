//! Processes of tests: the program under test, signals, addresses and directories.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Below the ephemeral range: a client that connects to a closed ephemeral port can connect to itself, and
/// the next start of a service then finds its address in use.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// File system in memory on Linux.
const MEMORY_DIRECTORY: &str = "/dev/shm";

/// Three servers, each with up to 2 GB of write-ahead log.
const MIN_FREE_MEMORY: u64 = 8 << 30;

/// Environment variable that keeps data directories for debugging.
const KEEP_VARIABLE: &str = "VOUCHSAFE_TEST_KEEP";

/// Path of the service's program, which cargo builds beside the folder of the test binaries.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<std::path::PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let program = test.ancestors().nth(2).unwrap().join("vouchsafe");
        assert!(program.exists(), "{} is not built", program.display());
        program
    })
}

pub fn send_signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// Returns the processes whose command line contains the directory.
pub fn processes_of(directory: &Path) -> Vec<String> {
    let output = Command::new("ps")
        .args(["-A", "-ww", "-o", "pid=", "-o", "command="])
        .output()
        .unwrap();
    let name = directory.display().to_string();
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = listing.lines().filter(|line| line.contains(&name));
    lines.map(str::to_owned).collect()
}

/// Creates a directory that the Postgres user can traverse, in memory where there is enough of it: copying a
/// database there takes an eighth of the time. A killed process loses as little there as on a disk.
pub fn scratch_directory() -> TempDir {
    let in_memory = Path::new(MEMORY_DIRECTORY);
    if std::env::var_os(KEEP_VARIABLE).is_none() && free_bytes(in_memory) >= MIN_FREE_MEMORY {
        create_directory(in_memory)
    } else {
        disk_directory()
    }
}

/// Creates a directory as [`scratch_directory`] does, on a disk.
pub fn disk_directory() -> TempDir {
    create_directory(&std::env::temp_dir())
}

fn create_directory(parent: &Path) -> TempDir {
    let is_kept = std::env::var_os(KEEP_VARIABLE).is_some();
    let directory = tempfile::Builder::new()
        .prefix("vs")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .disable_cleanup(is_kept)
        .tempdir_in(parent)
        .unwrap();
    if is_kept {
        eprintln!("data directory kept: {}", directory.path().display());
    }
    directory
}

/// What files in memory may occupy: both the file system and the machine's memory limit it. 0 if there is no
/// such file system.
fn free_bytes(directory: &Path) -> u64 {
    let on_file_system =
        rustix::fs::statvfs(directory).map_or(0, |fs| fs.f_bavail.saturating_mul(fs.f_frsize));
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = available.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    on_file_system.min(available.unwrap_or(0).saturating_mul(1_024))
}

/// Returns an address on which nothing listens.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Tests that start together have adjacent process ids, and each needs several ports.
    let count = u32::from(PORTS.end - PORTS.start);
    let begin = std::process::id().wrapping_mul(16) % count;
    loop {
        let offset = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u32::from(PORTS.start) + (begin + offset) % count;
        let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap()));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
