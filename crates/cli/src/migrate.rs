//! `vouchsafe migrate`: runs schema migrations and installs SQL functions.

use clap::Args;
use serde::Serialize;
use vouchsafe_store::schema;

use super::database::DatabaseArgs;
use super::examples::examples;
use super::{CommandOutput, LocalService, print_error};

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe migrate", "vouchsafe migrate --data-dir .vouchsafe --json"])]
pub struct MigrateArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Serialize)]
struct MigrateReport {
    migration: i64,
    functions: usize,
    deferred: Option<i64>,
}

pub(super) async fn run(
    args: MigrateArgs,
    json: bool,
    local_service: &LocalService,
) -> anyhow::Result<CommandOutput> {
    let migrate = async |options| schema::migrate(&options, report_wait).await;
    let migrated = args.database.run(local_service, "migrate", migrate).await?;
    if let Some(deferred) = &migrated.deferred {
        print_error(&format!("vouchsafe: {deferred}"));
    }
    let report = MigrateReport {
        migration: migrated.migration,
        functions: migrated.functions,
        deferred: migrated.deferred.map(|deferred| deferred.migration),
    };
    Ok(CommandOutput::from(if json {
        serde_json::to_string(&report)?
    } else {
        format!(
            "The database has migration {} and {} functions.",
            report.migration, report.functions
        )
    }))
}

fn report_wait() {
    print_error("vouchsafe: waiting for another `migrate` of this database to end");
}
