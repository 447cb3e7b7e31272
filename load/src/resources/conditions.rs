//! Conditions of a measurement: time, program, machine, disk and database.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fmt, fs, io};

use procfs::{CpuInfo, Current as _, LoadAverage, Meminfo};
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::costs::format_value;
use super::database::DatabaseSettings;
use super::environment::select_environment;

/// Labels of the build.
const PROFILE: &str = "profile";
const COMMIT: &str = "commit";

/// Size of a write in the sync measurement: a page of the write-ahead log.
const PAGE_BYTES: usize = 8_192;

/// The sync measurement ends after this number of syncs or this time.
const MAX_SYNCS: usize = 100;
const SYNC_TIME: Duration = Duration::from_secs(1);

/// Conditions of a measurement. Figures of different conditions are not comparable.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Conditions {
    /// Start of the measurement in UTC, RFC 3339.
    pub started_at: String,
    /// Name and version that the service reports; `None` if the generator did not start it.
    pub program: Option<String>,
    /// Build profile that the service reports; `None` without such a report.
    pub profile: Option<String>,
    /// All that the service reports about its build, such as its commit.
    pub build: BTreeMap<String, String>,
    /// Variables that the service inherits, without secrets; `None` if the generator did not start it.
    pub environment: Option<BTreeMap<String, String>>,
    /// `None` if the kernel does not report it.
    pub cpu_model: Option<String>,
    /// Cores available to this process. Service, Postgres and generator share them.
    pub cores: usize,
    pub memory_mib: Option<u64>,
    pub kernel: Option<String>,
    /// Median time to write and sync 8 KiB, in milliseconds; `None` if the disk of the database is unknown.
    pub disk_sync_ms: Option<f64>,
    /// `None` if the database is not accessible.
    pub database: Option<DatabaseSettings>,
    /// One-minute load average before the run.
    pub load_before: Option<f64>,
    /// One-minute load average after the run, which includes the run.
    pub load_after: Option<f64>,
}

impl Conditions {
    /// Observes the conditions before a run. `program` is the service's program, `disk` a directory on the
    /// disk of its database.
    #[must_use]
    pub fn observe(program: Option<&Path>, disk: Option<&Path>) -> Self {
        Self {
            started_at: now_rfc3339(),
            program: program.and_then(read_version),
            profile: None,
            build: BTreeMap::new(),
            environment: program.map(|_| select_environment(std::env::vars())),
            cpu_model: CpuInfo::current()
                .ok()
                .and_then(|cpus| Some(cpus.model_name(0)?.to_owned())),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: Meminfo::current()
                .ok()
                .map(|memory| memory.mem_total / (1_024 * 1_024)),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .ok()
                .map(|release| format!("Linux {}", release.trim())),
            disk_sync_ms: disk.and_then(|directory| measure_disk_sync(directory).ok()),
            database: None,
            load_before: load_average(),
            load_after: None,
        }
    }

    /// Adds what the service reports about its build.
    #[must_use]
    pub fn with_build(self, build: BTreeMap<String, String>) -> Self {
        Self {
            profile: build.get(PROFILE).cloned(),
            build,
            ..self
        }
    }

    /// Adds the database and the load average after the run.
    #[must_use]
    pub fn completed(self, database: Option<DatabaseSettings>) -> Self {
        Self {
            database,
            load_after: load_average(),
            ..self
        }
    }

    /// Names and values as shown in reports.
    #[must_use]
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let unknown = || "unknown".to_owned();
        let number = |value: Option<f64>| value.map_or_else(unknown, |value| format!("{value:.2}"));
        let program = match &self.program {
            Some(version) => {
                let profile = self.profile.as_deref().unwrap_or("unknown");
                let commit = self.build.get(COMMIT).map_or("unknown", String::as_str);
                format!("{version}, profile {profile}, commit {commit}")
            }
            None => "unknown: a running service".to_owned(),
        };
        let memory = self.memory_mib.map_or_else(unknown, |mib| format!("{mib} MiB"));
        let machine = [
            format!("{} cores", self.cores),
            self.cpu_model.clone().unwrap_or_else(unknown),
            format!("memory {memory}"),
            self.kernel.clone().unwrap_or_else(unknown),
        ];
        let disk_sync = match self.disk_sync_ms {
            Some(ms) => format!("{} ms to write and sync 8 KiB (median)", format_value(Some(ms))),
            None => unknown(),
        };
        let database = self.database.as_ref();
        let settings = database.map(|database| list(&database.settings));
        let (before, after) = (number(self.load_before), number(self.load_after));
        vec![
            ("date", self.started_at.clone()),
            ("program", program),
            ("machine", machine.join(", ")),
            ("disk", disk_sync),
            ("Postgres", database.map_or_else(unknown, ToString::to_string)),
            ("settings", settings.unwrap_or_else(unknown)),
            (
                "environment",
                self.environment.as_ref().map_or_else(unknown, list),
            ),
            ("load average", format!("{before} before, {after} after")),
        ]
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "conditions")?;
        let mut rows = self.rows().into_iter();
        rows.try_for_each(|(name, value)| writeln!(f, "  {name:<14}{value}"))
    }
}

/// `name value, name value`.
fn list(values: &BTreeMap<String, String>) -> String {
    let pairs: Vec<_> = values
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    match pairs.is_empty() {
        true => "default".to_owned(),
        false => pairs.join(", "),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a report states when it was taken; this is the only place that reads the wall clock"
)]
fn now_rfc3339() -> String {
    let now = OffsetDateTime::now_utc().replace_nanosecond(0);
    now.ok()
        .and_then(|now| now.format(&Rfc3339).ok())
        .unwrap_or_default()
}

/// What `PROGRAM --version` prints.
fn read_version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The one-minute load average; `None` if the system does not report it.
fn load_average() -> Option<f64> {
    let load = LoadAverage::current().ok()?;
    Some(f64::from(load.one))
}

/// Median time in milliseconds to overwrite a page of a file and sync it, as a commit does.
fn measure_disk_sync(directory: &Path) -> io::Result<f64> {
    let file: File = tempfile::tempfile_in(directory)?;
    let page = [0x5a; PAGE_BYTES];
    file.write_all_at(&page, 0)?;
    file.sync_all()?;
    let (started, mut times) = (Instant::now(), Vec::new());
    while times.len() < MAX_SYNCS && (times.is_empty() || started.elapsed() < SYNC_TIME) {
        let before = Instant::now();
        file.write_all_at(&page, 0)?;
        file.sync_data()?;
        times.push(before.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2].as_secs_f64() * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_conditions_are_shown_as_unknown() {
        let rows = Conditions::default().completed(None).rows();
        let text: Vec<_> = rows
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        assert_eq!(text[1], "program: unknown: a running service");
        assert_eq!(text[3..5], ["disk: unknown", "Postgres: unknown"]);
    }

    #[test]
    fn profile_is_the_one_that_the_program_reports() {
        let labels = [("profile", "release"), ("commit", "1eb9169")];
        let build = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let conditions = Conditions {
            program: Some("vouchsafe 0.2.0".to_owned()),
            ..Conditions::default()
        };
        assert_eq!(conditions.clone().with_build(BTreeMap::new()).profile, None);
        let rows = conditions.with_build(build.into()).rows();
        assert_eq!(rows[1].1, "vouchsafe 0.2.0, profile release, commit 1eb9169");
        assert_eq!(rows[6].1, "unknown");
        let inherits_nothing = Conditions {
            environment: Some(BTreeMap::new()),
            ..Conditions::default()
        };
        assert_eq!(inherits_nothing.rows()[6].1, "default");
    }

    #[test]
    fn sync_of_a_page_takes_time() {
        let directory = tempfile::tempdir().unwrap();
        let conditions = Conditions::observe(None, Some(directory.path()));
        assert!(conditions.disk_sync_ms > Some(0.0), "{conditions:?}");
        assert!(
            conditions.started_at.ends_with('Z') && conditions.cores > 0,
            "{conditions:?}"
        );
        assert!(measure_disk_sync(Path::new("/nonexistent")).is_err());
    }
}
