//! `vouchsafe verify`: does the database keep every invariant?
//!
//! | The database | How it is reached |
//! |---|---|
//! | `DATABASE_URL` is set | there |
//! | the service runs on the data directory | beside it, through the server that it runs |
//! | nothing runs there | the private Postgres is started for this, and stopped again |

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use secrecy::SecretString;
use serde::Serialize;
use sqlx::postgres::PgConnectOptions;

use super::Outcome;
use super::examples::examples;
use super::exit::{Misuse, Unreachable};
use crate::postgres::{self, DataDir, DataDirError, Durability, PrivatePostgres};
use crate::secrets::expose;
use crate::store::verify::{Finding, verify};

/// Arguments of `vouchsafe verify`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe verify", "vouchsafe verify --data-dir .vouchsafe --json"])]
pub struct VerifyArgs {
    /// The Postgres to check. Unset: the private one in the data directory.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<SecretString>,

    /// Show the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    holds: bool,
    invariants: &'a [Finding],
}

/// Runs `vouchsafe verify`.
pub(super) async fn run(args: VerifyArgs, data_dir: &Path) -> anyhow::Result<Outcome> {
    let findings = match &args.database_url {
        Some(url) => {
            // The reason is left out: it may quote the URL with its password.
            let options: Option<PgConnectOptions> = expose(url).parse().ok();
            let options = options.ok_or_else(|| {
                Misuse("DATABASE_URL is no Postgres URL such as postgres://user@host/database".to_owned())
            })?;
            verify(&options).await.context(
                "the database at DATABASE_URL cannot be checked (does its server run, and is it a database of this service?)",
            )?
        }
        None => check_private(data_dir).await?,
    };
    let holds = findings.iter().all(|finding| finding.holds);
    let text = if args.json {
        serde_json::to_string(&Report {
            holds,
            invariants: &findings,
        })?
    } else {
        for_people(&findings)
    };
    Ok(Outcome { text, done: holds })
}

async fn check_private(data_dir: &Path) -> anyhow::Result<Vec<Finding>> {
    if !data_dir.is_dir() {
        let missing = format!(
            "there is no data directory {}; name it with --data-dir, or set DATABASE_URL",
            data_dir.display()
        );
        return Err(Unreachable(missing).into());
    }
    // A server that was killed has left its address behind; then it is started like one that was stopped.
    let beside = match postgres::running(data_dir) {
        Ok(options) => verify(&options).await,
        Err(_) => return check_stopped(data_dir.to_owned()).await,
    };
    match beside {
        Err(sqlx::Error::Io(_)) => check_stopped(data_dir.to_owned()).await,
        findings => findings.context("check the database of the running service"),
    }
}

/// Starts the private Postgres, as the only one on the data directory.
async fn check_stopped(data_dir: PathBuf) -> anyhow::Result<Vec<Finding>> {
    let started = tokio::task::spawn_blocking(move || start(&data_dir))
        .await
        .context("start Postgres")?
        .map_err(|error| Unreachable(format!("{error:#}")))?;
    let findings = verify(&started.connect_options())
        .await
        .context("check the database");
    tokio::task::spawn_blocking(move || started.stop())
        .await
        .context("stop Postgres")??;
    findings
}

fn start(data_dir: &Path) -> anyhow::Result<PrivatePostgres> {
    let directory = DataDir::open(data_dir).map_err(|error| match error {
        DataDirError::InUse { .. } => {
            anyhow::anyhow!(
                "a service runs on {} and its database cannot be reached; is it just starting?",
                data_dir.display()
            )
        }
        other => other.into(),
    })?;
    let executable = std::env::current_exe().context("find this program's own file")?;
    Ok(PrivatePostgres::start(
        &directory,
        &executable,
        Durability::Durable,
    )?)
}

fn for_people(findings: &[Finding]) -> String {
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
