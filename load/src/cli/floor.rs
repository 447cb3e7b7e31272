//! `load floor`: how many orders a second does the database take at all?

use std::path::PathBuf;

use clap::Args;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_load::floor::run_floor_benchmark;
use vouchsafe_load::peer::postgres::{Durability, TemporaryPostgres};
use vouchsafe_load::peer::schema::create_database;

use super::turns::{FloorSizes, publish, create_runtime, print_progress};

/// Arguments of `load floor`.
#[derive(Args)]
pub(crate) struct FloorArgs {
    /// An empty database to write to; without one, a Postgres is started for it.
    #[arg(long, value_name = "URL")]
    database: Option<PgConnectOptions>,
    #[command(flatten)]
    sizes: FloorSizes,
    /// How often each size is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Write the report as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures and reports; says whether the rows were there.
pub(crate) fn command(args: FloorArgs) -> anyhow::Result<bool> {
    create_runtime()?.block_on(async {
        let search = args.sizes.plan(args.rounds);
        let report = match &args.database {
            Some(database) => run_floor_benchmark(database, &search, &mut print_progress).await?,
            None => {
                let server = TemporaryPostgres::start(Durability::Durable).await?;
                let database = create_database(&server.options(), "floor").await?;
                run_floor_benchmark(&database, &search, &mut print_progress).await?
            }
        };
        publish(&report, args.json.as_deref())?;
        Ok(report.rows.passed)
    })
}
