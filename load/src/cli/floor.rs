//! `load floor`: Postgres floor benchmark.

use std::path::PathBuf;

use clap::Args;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_load::compare::floor::run_floor_benchmark;
use vouchsafe_peer::postgres::{Durability, TemporaryPostgres};
use vouchsafe_peer::schema::create_database;

use super::turns::{FloorSizes, create_runtime, print_progress, publish};

#[derive(Args)]
pub(crate) struct FloorArgs {
    /// Empty database to write to [default: a temporary Postgres]
    #[arg(long, value_name = "URL")]
    database: Option<PgConnectOptions>,
    #[command(flatten)]
    sizes: FloorSizes,
    /// Measurements per batch size
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the benchmark; returns whether the row counts are correct.
pub(crate) fn command(args: FloorArgs) -> anyhow::Result<bool> {
    create_runtime()?.block_on(async {
        let plan = args.sizes.plan(args.rounds);
        let report = match &args.database {
            Some(database) => run_floor_benchmark(database, &plan, &mut print_progress).await?,
            None => {
                let server = TemporaryPostgres::start(Durability::Durable).await?;
                let database = create_database(&server.options(), "floor").await?;
                run_floor_benchmark(&database, &plan, &mut print_progress).await?
            }
        };
        publish(&report, args.json.as_deref())?;
        Ok(report.rows.passed)
    })
}
