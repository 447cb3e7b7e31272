//! `load run`: how fast does a service that runs already take one partner's orders, and does it keep them?

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::runtime::Runtime;
use vouchsafe_load::arrivals::Spacing;
use vouchsafe_load::audit::{AuditedPartner, audit_all};
use vouchsafe_load::client::DEFAULT_TIMEOUT;
use vouchsafe_load::database::DatabaseInspector;
use vouchsafe_load::load_run::{LoadPlan, run_load};
use vouchsafe_load::run_history::RunHistory;
use vouchsafe_load::machine::Machine;
use vouchsafe_load::partner::PartnerClient;
use vouchsafe_load::partner_file::PartnerFile;
use vouchsafe_load::progress::{RunProgressBar, Progress};
use vouchsafe_load::report::{FollowUp, RunMetrics, Report, Setup};
use vouchsafe_load::run::RunLength;
use vouchsafe_load::scenario::Pace;
use vouchsafe_load::signer::Credentials;
use vouchsafe_load::traffic::Traffic;
use vouchsafe_load::resource_monitor::ResourceUsage;
use vouchsafe_load::workload::Workload;

use super::{CommonArgs, parse_positive};

/// Arguments of `load run`.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// Base URL of the partner API.
    #[arg(long, default_value = "http://127.0.0.1:8080/api/v1")]
    url: String,
    /// JSON file with partner_id, api_key and api_secret.
    #[arg(long)]
    credentials: PathBuf,
    /// Connections, each with one order open at a time.
    #[arg(long, default_value_t = 256, value_parser = parse_positive)]
    connections: usize,
    /// Open loop: so many orders a second are due, whatever became of those before. Without it, a closed loop.
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// How the orders of an open loop are spread.
    #[arg(long, default_value_t = Spacing::Poisson, value_enum, requires = "rate")]
    spacing: Spacing,
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
    /// Others order as the same partner meanwhile: leave balances and the list of orders out of the audit.
    #[arg(long)]
    shared_wallet: bool,
    /// Database of the service: report its settings and table sizes.
    #[arg(long)]
    database: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Loads, reports and audits; says whether the audit passed.
pub(crate) fn command(args: &RunArgs) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let credentials = PartnerFile::read(&args.credentials)?.credentials;
    let plan = plan(args, credentials.clone())?;
    let mut database = match &args.database {
        Some(url) => Some(
            runtime
                .block_on(DatabaseInspector::connect(url))
                .context("connecting to the database")?,
        ),
        None => None,
    };
    let account = account(args, &runtime, credentials)?;
    let machine = Machine::observe_before();
    let progress = Progress::default();
    let bar = RunProgressBar::show(&progress, time(args));
    let ran = run_load(plan, &progress)?;
    drop(bar);
    let figures = RunMetrics::from_run(setup(args), &ran);
    let (audit, _) = runtime.block_on(audit_all(&mut [account], ran.tally.acknowledgements));
    let facts = match &mut database {
        Some(database) => Some(
            runtime
                .block_on(database.read_facts())
                .context("reading the database")?,
        ),
        None => None,
    };
    let report = Report {
        scenario: None,
        metrics: figures,
        follow_up: FollowUp::default(),
        usage: ResourceUsage::default(),
        audit,
        machine: machine.observe_after(),
        database: facts,
    };
    args.common.publish(&report)?;
    Ok(report.audit.has_passed())
}

fn plan(args: &RunArgs, credentials: Credentials) -> anyhow::Result<LoadPlan> {
    let workload = Workload::one_sku(&args.product, &args.denomination, args.quantity)?;
    Ok(LoadPlan {
        base_url: args.url.clone(),
        partners: vec![credentials],
        traffic: Traffic::single(workload),
        pace: pace(args),
        signing: args.common.signing(),
        seed: args.common.seed,
        threads: args.common.threads,
        warm_up: Duration::from_secs(args.warmup),
        length: args
            .orders
            .map_or(RunLength::Time(Duration::from_secs(args.seconds)), RunLength::Orders),
        timeout: DEFAULT_TIMEOUT,
        samples: args.common.audit_sample,
        history: RunHistory::default(),
    })
}

fn pace(args: &RunArgs) -> Pace {
    match args.rate {
        None => Pace::Closed {
            connections: args.connections,
        },
        Some(per_second) => Pace::Open {
            connections: args.connections,
            per_second,
            spacing: args.spacing,
        },
    }
}

/// How long the run is to take, for the bar; of one by count, the default length.
fn time(args: &RunArgs) -> Duration {
    Duration::from_secs(args.warmup + args.seconds)
}

fn account(args: &RunArgs, runtime: &Runtime, credentials: Credentials) -> anyhow::Result<AuditedPartner> {
    let client = PartnerClient::new(&args.url, credentials)?;
    if args.shared_wallet {
        return Ok(AuditedPartner::without_order_check(client, None));
    }
    runtime
        .block_on(AuditedPartner::with_baseline(client))
        .map_err(anyhow::Error::msg)
}

fn setup(args: &RunArgs) -> Setup {
    Setup {
        url: args.url.clone(),
        order: format!("{} × {} at {}", args.quantity, args.product, args.denomination),
        pace: pace(args).to_string(),
        signing: args.common.signing().description(),
        seed: args.common.seed,
        forms: Vec::new(),
        threads: args.common.threads,
        warm_up_s: args.warmup,
    }
}
