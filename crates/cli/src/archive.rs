//! `vouchsafe archive`: writes past months of logs to files and removes them from the database; checks
//! archives without one.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;
use vouchsafe_archive::{ArchiveError, ArchivedMonth, Log, Policy, Removal, check_archive, list_archives};
use vouchsafe_domain::error_chain::describe_chain;
use vouchsafe_kms::WrappingKeyArgs;
use vouchsafe_store::keyring::KeyringError;
use vouchsafe_wire::column::{Column, col};

use super::database::DatabaseArgs;
use super::examples::examples;
use super::exit::UsageError;
use super::output::format_field_table;
use super::verify::load_mac_keys;
use super::{CommandOutput, LocalService, print_error};

const COLUMNS: [Column; 7] = [
    col("Log", "log"),
    col("Month", "month"),
    col("Rows", "rows"),
    col("Bytes", "bytes"),
    col("Archived", "archived_at"),
    col("Removed", "removed_at"),
    col("Manifest", "manifest"),
];

/// Actions on archives.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Archive the months of each log that are past its policy. A log without a policy stays as it is.
    #[command(after_help = examples![
        "vouchsafe archive write --to /var/lib/vouchsafe/archive --keep-delivery-attempts 1",
        "vouchsafe archive write --to /var/lib/vouchsafe/archive --keep-events 3 --remove",
    ])]
    Write(WriteArgs),
    /// List the months that this database has archived, and removed.
    #[command(after_help = examples!["vouchsafe archive list"])]
    List(ListArgs),
    /// Check archives without a database: their manifests, hashes and numbers of rows.
    #[command(after_help = examples!["vouchsafe archive verify /var/lib/vouchsafe/archive"])]
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
pub struct WriteArgs {
    /// Directory of the archives, each in a directory of its own.
    #[arg(long, env = "VOUCHSAFE_ARCHIVE_DIR", value_name = "DIR")]
    to: PathBuf,

    /// Remove from the database what is archived, once its files are read back and have the recorded hashes.
    #[arg(long)]
    remove: bool,

    /// Months of delivery attempts to keep in the database, besides the current one.
    #[arg(long, env = "VOUCHSAFE_KEEP_DELIVERY_ATTEMPTS", value_name = "MONTHS", value_parser = clap::value_parser!(u16).range(1..=1_200))]
    keep_delivery_attempts: Option<u16>,

    /// Months of events to keep in the database, besides the current one.
    #[arg(long, env = "VOUCHSAFE_KEEP_EVENTS", value_name = "MONTHS", value_parser = clap::value_parser!(u16).range(2..=1_200))]
    keep_events: Option<u16>,

    /// Months of the audit log whose reads of codes are kept in the database, besides the current one.
    #[arg(long, env = "VOUCHSAFE_KEEP_AUDIT_LOG", value_name = "MONTHS", value_parser = clap::value_parser!(u16).range(2..=1_200))]
    keep_audit_log: Option<u16>,

    /// Months of reconciliation to keep in the database, besides the current one.
    #[arg(long, env = "VOUCHSAFE_KEEP_RECONCILIATION", value_name = "MONTHS", value_parser = clap::value_parser!(u16).range(2..=1_200))]
    keep_reconciliation: Option<u16>,

    /// Keys with which the HMACs of what stays of the audit log are written.
    #[command(flatten)]
    keys: WrappingKeyArgs,

    #[command(flatten)]
    database: DatabaseArgs,
}

impl WriteArgs {
    fn policies(&self) -> Vec<Policy> {
        let policies = Log::ALL.map(|log| {
            let months = match log {
                Log::DeliveryAttempts => self.keep_delivery_attempts,
                Log::Events => self.keep_events,
                Log::AuditLog => self.keep_audit_log,
                Log::Reconciliation => self.keep_reconciliation,
            };
            Some(Policy { log, months: months? })
        });
        policies.into_iter().flatten().collect()
    }
}

#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// An archive, or the directory of several.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// An archive that was checked.
#[derive(Serialize)]
struct Checked {
    directory: PathBuf,
    holds: bool,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    /// SHA-256 of the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    manifest: Option<String>,
}

pub(super) async fn run(
    action: Action,
    json: bool,
    local_service: &LocalService,
) -> anyhow::Result<CommandOutput> {
    match action {
        Action::Write(args) => write(args, json, local_service).await,
        Action::List(args) => list(args, json, local_service).await,
        Action::Verify(args) => verify(&args, json),
    }
}

async fn write(args: WriteArgs, json: bool, local_service: &LocalService) -> anyhow::Result<CommandOutput> {
    let policies = args.policies();
    if policies.is_empty() {
        return Err(UsageError(
            "no log has a policy: give --keep-delivery-attempts, --keep-events, \
            --keep-audit-log or --keep-reconciliation, or set its VOUCHSAFE_KEEP_…"
                .to_owned(),
        )
        .into());
    }
    let (to, remove) = (args.to.as_path(), args.remove);
    let wrapping = args.database.load_wrapping_keys(&args.keys, local_service)?;
    let write = async |options| {
        let removal = match (remove, wrapping.as_ref()) {
            (false, _) => None,
            (true, None) => Some(Removal::default()),
            (true, Some(wrapping)) => match load_mac_keys(&options, wrapping).await {
                Ok(keys) => Some(Removal {
                    checkpoint_key: keys.map(|(checkpoint_key, _)| checkpoint_key),
                }),
                Err(KeyringError::Store(error)) => return Err(error),
                Err(error) => return Ok(Err(error.into())),
            },
        };
        let mut report = |month: &ArchivedMonth| print_error(&format!("archive: {}", describe(month)));
        let (mut archived, mut failures) = (Vec::new(), Vec::new());
        for policy in &policies {
            // A log that cannot be archived now does not keep the others.
            match vouchsafe_archive::archive(&options, *policy, to, removal.as_ref(), &mut report).await {
                Ok(months) => archived.extend(months),
                Err(ArchiveError::Database(error)) => return Err(error),
                Err(error) => failures.push(describe_chain(&error)),
            }
        }
        Ok(anyhow::Ok((archived, failures)))
    };
    let (archived, failures) = args.database.run(local_service, "archive", write).await??;
    for failure in &failures {
        print_error(&format!("vouchsafe: {failure}"));
    }
    let succeeded = failures.is_empty();
    let text = if json {
        json!({ "archives": archived, "errors": failures }).to_string()
    } else {
        match archived.len() {
            0 if succeeded => "Nothing to archive: no month is past its policy.".to_owned(),
            _ => archived.iter().map(describe).collect::<Vec<_>>().join("\n"),
        }
    };
    Ok(CommandOutput { text, succeeded })
}

fn describe(month: &ArchivedMonth) -> String {
    let ArchivedMonth {
        log,
        month,
        rows,
        directory,
        is_removed,
        ..
    } = month;
    let place = if *is_removed {
        "removed, archived"
    } else {
        "archived"
    };
    format!("{log} {month}: {rows} rows {place} in {}", directory.display())
}

async fn list(args: ListArgs, json: bool, local_service: &LocalService) -> anyhow::Result<CommandOutput> {
    let list = async |options| vouchsafe_archive::list_recorded(&options).await;
    let recorded = args
        .database
        .run(local_service, "list the archives of", list)
        .await?;
    let body = json!({ "archives": recorded }).to_string();
    Ok(CommandOutput::from(if json {
        body
    } else {
        format_field_table(&body, "archives", &COLUMNS)?
    }))
}

fn verify(args: &VerifyArgs, json: bool) -> anyhow::Result<CommandOutput> {
    let archives = list_archives(&args.directory)?;
    let checked: Vec<_> = archives.into_iter().map(check).collect();
    let succeeded = checked.iter().all(|archive| archive.holds);
    let text = if json {
        json!({ "holds": succeeded, "archives": checked }).to_string()
    } else {
        checked.iter().map(describe_check).collect::<Vec<_>>().join("\n")
    };
    Ok(CommandOutput { text, succeeded })
}

fn check(directory: PathBuf) -> Checked {
    match check_archive(&directory) {
        Ok(archive) => Checked {
            directory,
            holds: true,
            error: None,
            rows: Some(archive.manifest.rows()),
            manifest: Some(archive.sha256()),
        },
        Err(error) => Checked {
            directory,
            holds: false,
            error: Some(describe_chain(&error)),
            rows: None,
            manifest: None,
        },
    }
}

fn describe_check(archive: &Checked) -> String {
    let Checked {
        directory,
        error,
        rows,
        manifest,
        ..
    } = archive;
    match (error, rows, manifest) {
        (None, Some(rows), Some(manifest)) => {
            format!(
                "ok      {}: {rows} rows, manifest {manifest}",
                directory.display()
            )
        }
        (error, ..) => format!(
            "BROKEN  {}: {}",
            directory.display(),
            error.as_deref().unwrap_or_default()
        ),
    }
}
