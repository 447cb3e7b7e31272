//! `vouchsafe verify`: checks every invariant in the database.
//!
//! | Situation | Connection |
//! |---|---|
//! | `DATABASE_URL` is set | to that server |
//! | the service runs on the data directory | to the service's private Postgres |
//! | nothing runs there | starts the private Postgres, and stops it afterwards |

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use secrecy::SecretString;
use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_private_postgres::{DataDir, DataDirError, Durability, PrivatePostgres};
use vouchsafe_security::secret::expose;
use vouchsafe_store::verify::{Finding, verify};

use super::CommandOutput;
use super::examples::examples;
use super::exit::{UnreachableError, UsageError};

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe verify", "vouchsafe verify --data-dir .vouchsafe --json"])]
pub struct VerifyArgs {
    /// URL of the database to check [default: the private Postgres in the data directory].
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<SecretString>,

    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct VerifyReport<'a> {
    holds: bool,
    invariants: &'a [Finding],
}

pub(super) async fn run(args: VerifyArgs, data_dir: &Path) -> anyhow::Result<CommandOutput> {
    let findings = match &args.database_url {
        Some(url) => {
            // Not the parser's error: it may quote the URL with its password.
            let options: Option<PgConnectOptions> = expose(url).parse().ok();
            let options = options.ok_or_else(|| {
                UsageError(
                    "DATABASE_URL is not a Postgres URL such as postgres://user@host/database".to_owned(),
                )
            })?;
            verify(&options).await.context(
                "cannot check the database at DATABASE_URL (is its server running, and is it a database of this service?)",
            )?
        }
        None => check_private(data_dir).await?,
    };
    let holds = findings.iter().all(|finding| finding.holds);
    let text = if args.json {
        serde_json::to_string(&VerifyReport {
            holds,
            invariants: &findings,
        })?
    } else {
        format_findings(&findings)
    };
    Ok(CommandOutput {
        text,
        succeeded: holds,
    })
}

async fn check_private(data_dir: &Path) -> anyhow::Result<Vec<Finding>> {
    if !data_dir.is_dir() {
        let missing = format!(
            "no data directory {}; set --data-dir or DATABASE_URL",
            data_dir.display()
        );
        return Err(UnreachableError(missing).into());
    }
    // A killed server leaves its address behind; then it is started like a stopped one.
    let findings = match vouchsafe_private_postgres::find_running(data_dir) {
        Ok(options) => verify(&options).await,
        Err(_) => return check_stopped(data_dir.to_owned()).await,
    };
    match findings {
        Err(sqlx::Error::Io(_)) => check_stopped(data_dir.to_owned()).await,
        findings => findings.context("check the database of the running service"),
    }
}

/// Starts the private Postgres, with the data directory locked.
async fn check_stopped(data_dir: PathBuf) -> anyhow::Result<Vec<Finding>> {
    let started = tokio::task::spawn_blocking(move || start_postgres(&data_dir))
        .await
        .context("start Postgres")?
        .map_err(|error| UnreachableError(format!("{error:#}")))?;
    let findings = verify(&started.connect_options())
        .await
        .context("check the database");
    tokio::task::spawn_blocking(move || started.stop())
        .await
        .context("stop Postgres")??;
    findings
}

fn start_postgres(data_dir: &Path) -> anyhow::Result<PrivatePostgres> {
    let directory = DataDir::open(data_dir).map_err(|error| match error {
        DataDirError::InUse { .. } => {
            anyhow::anyhow!(
                "a service uses {} but its database is unreachable; is it starting?",
                data_dir.display()
            )
        }
        other => other.into(),
    })?;
    let executable = std::env::current_exe().context("find the path of this program")?;
    Ok(PrivatePostgres::start(
        &directory,
        &executable,
        Durability::Durable,
    )?)
}

fn format_findings(findings: &[Finding]) -> String {
    let width = findings
        .iter()
        .map(|finding| finding.name.len())
        .max()
        .unwrap_or_default();
    let mut lines = Vec::new();
    for Finding {
        name,
        says,
        holds,
        rows,
        more,
    } in findings
    {
        lines.push(format!(
            "{}  {name:width$}  {says}",
            if *holds { "ok    " } else { "BROKEN" }
        ));
        lines.extend(rows.iter().map(|row| format!("          {row}")));
        if *more {
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
