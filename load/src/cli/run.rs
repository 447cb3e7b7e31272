//! `load run`: load and audit of a running service with one partner.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::partner_file::PartnerFile;
use vouchsafe_load::audit::{AuditedPartner, audit_all};
use vouchsafe_load::report::{RunReport, Verdict};
use vouchsafe_load::resources::MonitorTarget;
use vouchsafe_load::resources::conditions::Conditions;
use vouchsafe_load::resources::database::DatabaseSettings;
use vouchsafe_load::resources::proc::find_listener;
use vouchsafe_load::resources::server::MonitoredServer;
use vouchsafe_load::run::driver::LoadPlan;
use vouchsafe_load::run::measurement::measure;
use vouchsafe_load::runtime::new_runtime;
use vouchsafe_load::traffic::generator::Traffic;
use vouchsafe_load::traffic::pace::{DEFAULT_DRAIN_S, Pace, RunLength, Spacing};
use vouchsafe_load::traffic::workload::one_sku;

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
    /// Products to order with equal shares, separated by commas
    #[arg(
        long = "product",
        value_name = "PRODUCT",
        value_delimiter = ',',
        default_value = "sbx-instant"
    )]
    products: Vec<String>,
    /// Denomination, as written in the request
    #[arg(long, default_value = "25")]
    denomination: String,
    /// Vouchers per order
    #[arg(long, default_value_t = 1)]
    quantity: u32,
    /// Skip the audit of balances and order list, for partners with other concurrent orders
    #[arg(long)]
    shared_wallet: bool,
    /// Database URL of the service, to report its settings and, on this machine, WAL, commits and CPU time
    #[arg(long)]
    database: Option<PgConnectOptions>,
    #[command(flatten)]
    generator: GeneratorArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Runs load and audit.
pub(crate) fn command(args: &RunArgs) -> anyhow::Result<Verdict> {
    let runtime = new_runtime()?;
    let file = &args.credentials;
    let partner = PartnerFile::read(file).with_context(|| format!("`{}`", file.display()))?;
    let client = PartnerClient::new(&args.url, partner.credentials.clone())?;
    let plan = plan(args, partner)?;
    // Before the run, so that a wrong URL or baseline does not waste one.
    let baseline = args.report.check_files(&[None])?;
    let settings = args.database.as_ref().map(DatabaseSettings::read);
    let settings = settings.map(|reading| runtime.block_on(reading)).transpose();
    let settings = settings.context("cannot read the database")?;
    let audited_partner = if args.shared_wallet {
        AuditedPartner::without_order_check(client, None)
    } else {
        let reading = AuditedPartner::with_baseline(client);
        runtime.block_on(reading).map_err(anyhow::Error::msg)?
    };
    let conditions = Conditions::observe(None, None);
    let (quantity, products) = (args.quantity, args.products.join(", "));
    let order = format!("{quantity} × {products} at {}", args.denomination);
    let run = measure(plan, order, Vec::new(), monitor_target(args)?)?;
    let (audit, _) = runtime.block_on(audit_all(
        &mut [audited_partner],
        run.result.tally.acknowledgements,
    ));
    let run = RunReport::new(conditions.completed(settings), run.metrics, run.usage, audit);
    args.report.publish(vec![run], baseline.as_ref())
}

fn plan(args: &RunArgs, partner: PartnerFile) -> anyhow::Result<LoadPlan> {
    let body = |product: &String| one_sku(product, &args.denomination, args.quantity);
    let bodies = args.products.iter().map(body).collect::<anyhow::Result<_>>()?;
    let connections = args.connections;
    let pace = args
        .rate
        .map_or(Pace::Closed { connections }, |per_second| Pace::Open {
            connections,
            per_second,
            spacing: args.spacing,
        });
    let time = RunLength::Time(Duration::from_secs(args.seconds));
    let length = args.orders.map_or(time, RunLength::Orders);
    let traffic = Traffic::fixed(bodies);
    Ok(LoadPlan {
        seed: args.generator.seed,
        threads: args.generator.threads,
        warm_up: Duration::from_secs(args.warmup),
        drain: Duration::from_secs(args.generator.drain.unwrap_or(DEFAULT_DRAIN_S)),
        samples: args.generator.audit_sample,
        ..LoadPlan::single_partner(args.url.clone(), partner.credentials, traffic, pace, length)
    })
}

/// The service and its database, if they are on this machine: the processes of another one have other
/// numbers.
fn monitor_target(args: &RunArgs) -> anyhow::Result<MonitorTarget> {
    let is_local = |host: &str| ["localhost", "127.0.0.1", "::1"].contains(&host) || host.starts_with('/');
    let origin = Origin::parse(&args.url)?;
    let (host, port) = origin.address();
    let service = Some(port).filter(|_| is_local(host)).and_then(find_listener);
    let database = args.database.as_ref();
    let database = database.filter(|options| options.get_socket().is_some() || is_local(options.get_host()));
    Ok(MonitorTarget {
        pids: service.into_iter().collect(),
        server: database.map(|options| MonitoredServer {
            superuser: options.clone(),
            database: options
                .get_database()
                .unwrap_or(options.get_username())
                .to_owned(),
        }),
        admin_url: None,
    })
}
