//! `load peer`: the peer, as a child process of a comparison.

use clap::Args;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_load::peer::PeerMode;
use vouchsafe_load::peer::process::{
    API_KEY_VARIABLE, API_SECRET_VARIABLE, DATABASE_VARIABLE, PeerCredentials,
};
use vouchsafe_load::peer::serve::{PeerSettings, serve};
use vouchsafe_load::report::Verdict;

#[derive(Args)]
pub(crate) struct PeerArgs {
    /// Processing of orders
    #[arg(long, value_enum)]
    mode: PeerMode,
    /// Database connections, shared evenly by the workers (row-locks only; the floor has two)
    #[arg(long)]
    pool: u32,
    /// Database URL; an empty database is initialized
    #[arg(long, env = DATABASE_VARIABLE, hide_env_values = true)]
    database: PgConnectOptions,
    /// API key of the only partner
    #[arg(long, env = API_KEY_VARIABLE, hide_env_values = true)]
    api_key: String,
    /// API secret of the only partner
    #[arg(long, env = API_SECRET_VARIABLE, hide_env_values = true)]
    api_secret: String,
    /// Product to sell at denomination 25
    #[arg(long)]
    product: String,
    /// Vouchers inserted into an empty database
    #[arg(long)]
    stock: i64,
}

/// Serves until standard input closes.
pub(crate) fn command(args: PeerArgs) -> anyhow::Result<Verdict> {
    serve(&PeerSettings {
        mode: args.mode,
        pool: args.pool,
        database: args.database,
        partner: PeerCredentials {
            api_key: args.api_key,
            api_secret: args.api_secret,
        },
        product_id: args.product,
        stock: args.stock,
    })?;
    Ok(Verdict::Passed)
}
