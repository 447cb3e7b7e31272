//! The command line of the load generator: `load run` loads and audits a service, `load check` checks a recorded
//! history; `load floor`, `load search` and `load compare` measure what it stands beside. Exit 0: the figures count; 1: the audit or the check failed; 2: it could not be run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use vouchsafe_load::audit::{audit, wallets};
use vouchsafe_load::check::check;
use vouchsafe_load::client::DEFAULT_TIMEOUT;
use vouchsafe_load::compare::command::{
    CompareArgs, FloorArgs, SearchArgs, run_compare, run_floor, run_search,
};
use vouchsafe_load::database::Database;
use vouchsafe_load::history::History;
use vouchsafe_load::partner::PartnerClient;
use vouchsafe_load::partner_file::PartnerFile;
use vouchsafe_load::report::{Figures, Report, Setup};
use vouchsafe_load::run::{Length, Plan, run};
use vouchsafe_load::workload::Workload;

/// Loads a Vouchsafe service over its wire and audits what it acknowledged.
#[derive(Parser)]
#[command(name = "load", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Orders in a closed loop, reports, and audits.
    Run(RunArgs),
    /// Checks a recorded history (one JSON event a line).
    Check {
        /// The file.
        history: PathBuf,
    },
    /// Measures what the database takes at all: plain batch inserts, at the best size of batch.
    Floor(FloorArgs),
    /// Looks for the best peer: every shape with every size of pool.
    Search(SearchArgs),
    /// Compares the service with a peer and a floor, in turns on one server.
    Compare(CompareArgs),
}

#[derive(Args)]
struct RunArgs {
    /// Base URL of the partner API.
    #[arg(long, default_value = "http://127.0.0.1:8080/api/v1")]
    url: String,
    /// JSON file with partner_id, api_key and api_secret.
    #[arg(long)]
    credentials: PathBuf,
    /// Connections, each with one order open at a time.
    #[arg(long, default_value_t = 256, value_parser = at_least_one)]
    connections: usize,
    /// Generator threads; it shares the machine with the service.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    threads: usize,
    /// Length of the measured part.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Send this many measured orders instead of going by time.
    #[arg(long, conflicts_with = "seconds")]
    orders: Option<u64>,
    /// Seconds before anything is measured.
    #[arg(long, default_value_t = 2)]
    warmup: u64,
    /// Product to order.
    #[arg(long, default_value = "sbx-instant")]
    product: String,
    /// Denomination to order, as written in the request.
    #[arg(long, default_value = "25")]
    denomination: String,
    /// Vouchers per order.
    #[arg(long, default_value_t = 1)]
    quantity: u32,
    /// Acknowledged orders that the audit reads back and replays, at most.
    #[arg(long, default_value_t = 100)]
    audit_sample: usize,
    /// Others spend from the partner's wallets meanwhile: leave the balances out of the audit.
    #[arg(long)]
    shared_wallet: bool,
    /// Database of the service: report its settings and table sizes.
    #[arg(long)]
    database: Option<String>,
    /// Write the report as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => run_command(&args),
        Command::Check { history } => check_command(&history),
        Command::Floor(args) => run_floor(args),
        Command::Search(args) => run_search(&args),
        Command::Compare(args) => run_compare(args),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // Nothing is left to do if the terminal is gone.
            let _ = writeln!(std::io::stderr(), "load: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run_command(args: &RunArgs) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let credentials = PartnerFile::read(&args.credentials)?.credentials;
    let plan = Plan {
        base_url: args.url.clone(),
        credentials: credentials.clone(),
        workload: Workload::one_sku(&args.product, &args.denomination, args.quantity)?,
        connections: args.connections,
        threads: args.threads,
        warm_up: Duration::from_secs(args.warmup),
        length: args
            .orders
            .map_or(Length::Time(Duration::from_secs(args.seconds)), Length::Orders),
        timeout: DEFAULT_TIMEOUT,
        samples: args.audit_sample,
    };
    let mut auditor = PartnerClient::new(&args.url, credentials)?;
    let mut database = match &args.database {
        Some(url) => Some(
            runtime
                .block_on(Database::connect(url))
                .context("connecting to the database")?,
        ),
        None => None,
    };
    let opening = match args.shared_wallet {
        true => None,
        false => Some(
            runtime
                .block_on(wallets(&mut auditor))
                .map_err(anyhow::Error::msg)?,
        ),
    };
    let ran = run(plan)?;
    let figures = Figures::of(setup(args), &ran);
    let audit = runtime.block_on(audit(&mut auditor, ran.tally.books, opening));
    let facts = match &mut database {
        Some(database) => Some(
            runtime
                .block_on(database.facts())
                .context("reading the database")?,
        ),
        None => None,
    };
    let report = Report {
        figures,
        audit,
        database: facts,
    };
    publish(&report, args.json.as_deref())?;
    Ok(report.audit.passed())
}

fn setup(args: &RunArgs) -> Setup {
    Setup {
        url: args.url.clone(),
        order: format!("{} × {} at {}", args.quantity, args.product, args.denomination),
        connections: args.connections,
        threads: args.threads,
        warm_up_s: args.warmup,
    }
}

fn publish(report: &Report, json: Option<&Path>) -> anyhow::Result<()> {
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_vec_pretty(report)?).context("writing the JSON report")?;
    }
    write!(std::io::stdout().lock(), "{report}")?;
    Ok(())
}

fn check_command(path: &Path) -> anyhow::Result<bool> {
    let history = History::read(path)?;
    let mut out = std::io::stdout().lock();
    match check(&history) {
        Ok(summary) => {
            writeln!(out, "{}", serde_json::to_string(&summary)?)?;
            Ok(true)
        }
        Err(violation) => {
            writeln!(out, "VIOLATION: {violation}")?;
            Ok(false)
        }
    }
}
