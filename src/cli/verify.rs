//! `vouchsafe verify`: checks every invariant in the database.

use std::path::Path;

use clap::Args;
use serde::Serialize;
use vouchsafe_store::verify::{Finding, verify};

use super::CommandOutput;
use super::database::DatabaseArgs;
use super::examples::examples;

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe verify --verbose", "vouchsafe verify --data-dir .vouchsafe --json"])]
pub struct VerifyArgs {
    /// Print the invariants that hold, too.
    #[arg(long)]
    verbose: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Serialize)]
struct VerifyReport<'a> {
    holds: bool,
    invariants: &'a [Finding],
}

pub(super) async fn run(args: VerifyArgs, json: bool, data_dir: &Path) -> anyhow::Result<CommandOutput> {
    let check = async |options| verify(&options).await;
    let findings = args.database.run(data_dir, "check", check).await?;
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
