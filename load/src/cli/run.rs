//! `load run`: load and audit of a running service with one partner.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use sqlx::postgres::PgConnectOptions;
use tokio::runtime::Runtime;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::partner_file::PartnerFile;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_load::audit::{AuditedPartner, audit_all};
use vouchsafe_load::report::{RunReport, Verdict};
use vouchsafe_load::resources::conditions::Conditions;
use vouchsafe_load::resources::database::DatabaseSettings;
use vouchsafe_load::resources::other_work::OtherWork;
use vouchsafe_load::run::driver::{LoadPlan, run_load};
use vouchsafe_load::run::metrics::{RunMetrics, Setup};
use vouchsafe_load::run::progress::Progress;
use vouchsafe_load::run::resource_monitor::ResourceUsage;
use vouchsafe_load::traffic::pace::{DEFAULT_DRAIN_S, Pace, RunLength, Spacing};
use vouchsafe_load::traffic::workload::Workload;

use super::{GeneratorArgs, ReportArgs, parse_positive};

#[derive(Args)]
pub(crate) struct RunArgs {
    /// Base URL of the partner API
    #[arg(long, default_value = "http://127.0.0.1:8080/api/v1")]
    url: String,
    /// JSON file with partner_id, api_key and api_secret
    #[arg(long)]
    credentials: PathBuf,
    /// Connections, each with one order in flight
    #[arg(long, default_value_t = 256, value_parser = parse_positive)]
    connections: usize,
    /// Rate of an open loop in orders per second [default: closed loop]
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// Arrival distribution of the open loop
    #[arg(long, default_value_t = Spacing::Poisson, value_enum, requires = "rate")]
    spacing: Spacing,
    /// Measured seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Number of measured orders, instead of --seconds
    #[arg(long, conflicts_with = "seconds")]
    orders: Option<u64>,
    /// Warm-up seconds
    #[arg(long, default_value_t = 2)]
    warmup: u64,
    /// Product to order
    #[arg(long, default_value = "sbx-instant")]
    product: String,
    /// Denomination, as written in the request
    #[arg(long, default_value = "25")]
    denomination: String,
    /// Vouchers per order
    #[arg(long, default_value_t = 1)]
    quantity: u32,
    /// Skip the audit of balances and order list, for partners with other concurrent orders
    #[arg(long)]
    shared_wallet: bool,
    /// Database URL of the service, to report its durability settings
    #[arg(long)]
    database: Option<PgConnectOptions>,
    #[command(flatten)]
    generator: GeneratorArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Runs load and audit.
pub(crate) fn command(args: &RunArgs) -> anyhow::Result<Verdict> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let file = &args.credentials;
    let partner = PartnerFile::read(file).with_context(|| format!("`{}`", file.display()))?;
    let credentials = partner.credentials;
    let plan = plan(args, credentials.clone())?;
    // Before the run, so that a wrong URL or baseline does not waste one.
    let baseline = args.report.check_files(&[None])?;
    let database = match &args.database {
        Some(database) => Some(
            runtime
                .block_on(DatabaseSettings::read(database))
                .context("cannot read the database")?,
        ),
        None => None,
    };
    let audited_partner = audited_partner(args, &runtime, credentials)?;
    let conditions = Conditions::observe(None, None);
    let (result, other_work) = OtherWork::during(|| run_load(plan, &Progress::default()));
    let result = result?;
    let usage = ResourceUsage {
        other_work,
        ..ResourceUsage::default()
    };
    let metrics = RunMetrics::from_run(setup(args), &result);
    let (audit, _) = runtime.block_on(audit_all(&mut [audited_partner], result.tally.acknowledgements));
    let run = RunReport::new(conditions.completed(database), metrics, usage, audit);
    args.report.publish(vec![run], baseline.as_ref())
}

fn plan(args: &RunArgs, credentials: Credentials) -> anyhow::Result<LoadPlan> {
    let workload = Workload::one_sku(&args.product, &args.denomination, args.quantity)?;
    Ok(LoadPlan {
        seed: args.generator.seed,
        threads: args.generator.threads,
        warm_up: Duration::from_secs(args.warmup),
        drain: Duration::from_secs(args.generator.drain.unwrap_or(DEFAULT_DRAIN_S)),
        samples: args.generator.audit_sample,
        ..LoadPlan::single_partner(args.url.clone(), credentials, workload, pace(args), length(args))
    })
}

fn length(args: &RunArgs) -> RunLength {
    args.orders.map_or(
        RunLength::Time(Duration::from_secs(args.seconds)),
        RunLength::Orders,
    )
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

fn audited_partner(
    args: &RunArgs,
    runtime: &Runtime,
    credentials: Credentials,
) -> anyhow::Result<AuditedPartner> {
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
        seed: args.generator.seed,
        forms: Vec::new(),
        threads: args.generator.threads,
        warm_up_s: args.warmup,
        length: length(args).to_string(),
    }
}
