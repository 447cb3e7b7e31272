//! `vouchsafe verify`: checks every invariant in the database.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde::Serialize;
use sqlx::Connection as _;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_kms::WrappingKeyArgs;
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;
use vouchsafe_security::vault::grant_key::GrantKey;
use vouchsafe_security::vault::wrapping_key::WrappingKeys;
use vouchsafe_store::ExportContent;
use vouchsafe_store::StoreError;
use vouchsafe_store::keyring::{self, KeyringError};
use vouchsafe_verify::{self as verify, Finding, VerifyProgress, VerifyRun, VerifyState};

use super::database::{DatabaseArgs, ServerRole};
use super::examples::examples;
use super::verify_checkpoints::{self, ExportedFile};
use super::verify_grants;
use super::{CommandOutput, LocalService};

/// How often the progress is printed and the position saved. A check that is resumed repeats no more than
/// this.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe verify --resume verify.json",
    "vouchsafe verify --checkpoints checkpoints.ndjson",
    "vouchsafe verify --audit-export audit.ndjson",
])]
pub struct VerifyArgs {
    /// Print the invariants that hold, too.
    #[arg(long)]
    verbose: bool,

    /// File for the position: continue the check of this file, or begin one. Removed when the check is
    /// complete.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,

    /// File of checkpoints that the service exported: compare the audit checkpoints with it.
    #[arg(long, value_name = "FILE")]
    checkpoints: Option<PathBuf>,

    /// File of audit entries and checkpoints that the service exported: check its entries, and compare the
    /// checkpoints with it.
    #[arg(long, value_name = "FILE", conflicts_with = "checkpoints")]
    audit_export: Option<PathBuf>,

    /// DATABASE_URL names a standby: check what it has replayed, and leave the primary alone.
    #[arg(long, requires = "database_url")]
    standby: bool,

    /// Keys with which the HMACs of audit checkpoints and of rows that grant access are checked.
    #[command(flatten)]
    keys: WrappingKeyArgs,

    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Serialize)]
struct VerifyReport<'a> {
    holds: bool,
    invariants: &'a [Finding],
}

pub(super) async fn run(
    args: VerifyArgs,
    json: bool,
    local_service: &LocalService,
) -> anyhow::Result<CommandOutput> {
    let wrapping = args.database.load_wrapping_keys(&args.keys, local_service)?;
    if wrapping.is_none() {
        // Standard error may be closed.
        drop(writeln!(
            io::stderr(),
            "verify: the HMACs of audit checkpoints and of rows that grant access are not checked: VOUCHSAFE_MASTER_KEY is not set"
        ));
    }
    let resume = args.resume.as_deref();
    let exported = match (&args.checkpoints, &args.audit_export) {
        (Some(path), _) => Some(ExportedFile {
            path,
            content: ExportContent::Checkpoints,
        }),
        (None, Some(path)) => Some(ExportedFile {
            path,
            content: ExportContent::Entries,
        }),
        (None, None) => None,
    };
    let check = async |options| {
        // A key of another database is an error at once, and not after the hours of a check.
        let keys = match &wrapping {
            None => None,
            Some(wrapping) => match load_mac_keys(&options, wrapping).await {
                Ok(keys) => keys,
                Err(KeyringError::Store(error)) => return Err(error),
                Err(error) => return Ok(Err(error.into())),
            },
        };
        if args.standby
            && let Err(error) = report_replayed(&options).await?
        {
            return Ok(Err(error));
        }
        let mut findings = match check(&options, resume).await? {
            Ok(findings) => findings,
            Err(error) => return Ok(Err(error)),
        };
        let mut connection = verify::connect(&options).await?;
        let (checkpoint_key, grant_key) = keys.unzip();
        let checked = verify_checkpoints::check(&mut connection, checkpoint_key, exported).await;
        if let Some(key) = grant_key {
            findings.push(verify_grants::check(&mut connection, &key).await?);
        }
        connection.close().await?;
        Ok(checked.map(|checked| {
            findings.extend(checked);
            findings
        }))
    };
    let role = if args.standby {
        ServerRole::Standby
    } else {
        ServerRole::Primary
    };
    let findings = args
        .database
        .run_on(role, local_service, "check", check)
        .await??;
    let holds = findings.iter().all(|finding| finding.holds);
    let text = if json {
        serde_json::to_string(&VerifyReport {
            holds,
            invariants: &findings,
        })?
    } else {
        format_findings(&findings, args.verbose)
    };
    Ok(CommandOutput {
        text,
        succeeded: holds,
    })
}

/// Prints until when the standby has the commits of its primary. The inner error is that of a server that is
/// none.
async fn report_replayed(options: &PgConnectOptions) -> Result<anyhow::Result<()>, StoreError> {
    let mut connection = verify::connect(options).await?;
    let progress = verify::read_standby_progress(&mut connection).await?;
    connection.close().await?;
    if !progress.is_standby {
        return Ok(Err(anyhow!(
            "the server of DATABASE_URL is no standby: nothing was checked. Leave out --standby to check a primary"
        )));
    }
    let until = progress.replayed_until.map_or_else(
        || "has replayed no commit since its start".to_owned(),
        |at| format!("has replayed the commits until {at}"),
    );
    // Standard error may be closed.
    drop(writeln!(io::stderr(), "verify: the standby {until}"));
    Ok(Ok(()))
}

/// The keys of the HMACs in the database; `None` before its first start.
pub(super) async fn load_mac_keys(
    options: &PgConnectOptions,
    wrapping: &WrappingKeys,
) -> Result<Option<(CheckpointKey, GrantKey)>, KeyringError> {
    let mut connection = verify::connect(options).await?;
    let keys = keyring::load_mac_keys(&mut connection, wrapping).await?;
    connection.close().await?;
    Ok(keys)
}

/// The inner error concerns the file.
async fn check(
    options: &PgConnectOptions,
    file: Option<&Path>,
) -> Result<anyhow::Result<Vec<Finding>>, StoreError> {
    let saved = match file.map(load).transpose() {
        Ok(saved) => saved.flatten(),
        Err(error) => return Ok(Err(error)),
    };
    let mut connection = verify::connect(options).await?;
    let mut run = match VerifyRun::resume(&mut connection, saved).await? {
        Ok(run) => run,
        Err(error) => return Ok(Err(error.into())),
    };
    let mut report = ProgressReport::new();
    while let Some(progress) = run.step(&mut connection).await? {
        if !report.is_due(&progress) {
            continue;
        }
        report.print(&progress);
        if let Some(Err(error)) = file.map(|file| save(file, run.state())) {
            return Ok(Err(error));
        }
    }
    connection.close().await?;
    if let Some(file) = file {
        // Absent if the check took less than an interval.
        drop(fs::remove_file(file));
    }
    Ok(Ok(run.findings()))
}

fn load(file: &Path) -> anyhow::Result<Option<VerifyState>> {
    let cannot = || format!("cannot continue the check of {}", file.display());
    match fs::read(file) {
        Ok(text) => serde_json::from_slice(&text).map(Some).with_context(cannot),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(cannot),
    }
}

/// Replaces the file as a whole: an interrupted write leaves the previous position.
fn save(file: &Path, state: &VerifyState) -> anyhow::Result<()> {
    let cannot = || format!("cannot save the position to {}", file.display());
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let new_file = PathBuf::from(name);
    fs::write(&new_file, serde_json::to_vec(state)?).with_context(cannot)?;
    fs::rename(&new_file, file).with_context(cannot)
}

/// Progress lines on standard error: the scan, its rows and their rate.
struct ProgressReport {
    reported_at: Instant,
    /// The scan in progress, its start, and its rows at the start.
    scan: Option<(&'static str, Instant, u64)>,
}

impl ProgressReport {
    fn new() -> Self {
        Self {
            reported_at: Instant::now(),
            scan: None,
        }
    }

    fn is_due(&mut self, progress: &VerifyProgress) -> bool {
        if self.scan.is_none_or(|(scan, _, _)| scan != progress.scan) {
            self.scan = Some((progress.scan, Instant::now(), progress.rows));
        }
        self.reported_at.elapsed() >= REPORT_INTERVAL
    }

    fn print(&mut self, progress: &VerifyProgress) {
        self.reported_at = Instant::now();
        let mut line = format!("verify: {}", progress.scan);
        if let (Some((_, since, first)), 1..) = (self.scan, progress.expected) {
            let seconds = since.elapsed().as_secs().max(1);
            let rate = (progress.rows - first) / seconds;
            let rows = progress.rows.min(progress.expected);
            line.push_str(&format!(
                ", {rows} of about {} rows, {rate} rows/s",
                progress.expected
            ));
        }
        // Standard error may be closed.
        drop(writeln!(io::stderr(), "{line}"));
    }
}

/// Broken invariants, those that hold if `verbose`, and a summary as the last line.
fn format_findings(findings: &[Finding], verbose: bool) -> String {
    let shown = || findings.iter().filter(|finding| verbose || !finding.holds);
    let width = shown()
        .map(|finding| finding.name.len())
        .max()
        .unwrap_or_default();
    let mut lines = Vec::new();
    for Finding {
        name,
        description,
        holds,
        rows,
        has_more,
    } in shown()
    {
        lines.push(format!(
            "{}  {name:width$}  {description}",
            if *holds { "ok    " } else { "BROKEN" }
        ));
        lines.extend(rows.iter().map(|row| format!("          {row}")));
        if *has_more {
            lines.push("          … and more".to_owned());
        }
    }
    let broken = findings.iter().filter(|finding| !finding.holds).count();
    lines.push(match broken {
        0 => format!("All {} invariants hold.", findings.len()),
        _ => format!("{broken} of {} invariants are broken.", findings.len()),
    });
    lines.join("\n")
}
