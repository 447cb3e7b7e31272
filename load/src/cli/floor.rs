//! `load floor`: how many orders a second does the database take at all?

use std::path::PathBuf;

use clap::Args;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_load::floor::floor;
use vouchsafe_load::peer::postgres::{Durability, Server};
use vouchsafe_load::peer::schema::make_database;

use super::turns::{FloorSizes, publish, runtime, say};

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
    runtime()?.block_on(async {
        let search = args.sizes.search(args.rounds);
        let report = match &args.database {
            Some(database) => floor(database, &search, &mut say).await?,
            None => {
                let server = Server::start(Durability::Durable).await?;
                let database = make_database(&server.options(), "floor").await?;
                floor(&database, &search, &mut say).await?
            }
        };
        publish(&report, args.json.as_deref())?;
        Ok(report.rows.passed)
    })
}
