//! Startup and graceful shutdown of the service.
//!
//! | step | state after it |
//! |---|---|
//! | lock the data directory | no second service can use it |
//! | connect to Postgres | the schema is migrated, this start has its incarnation |
//! | unlock the data keys | codes can be encrypted and decrypted |
//! | start the engine | records in flight of an earlier start are fenced off |
//! | bind the listeners | wallets and shelves have threads; requests get 503 |
//! | open the readiness gate | partners and operators are served |
//! | on a signal: close the gate, drain the journal | every request has its response, every record its verdict |
//! | stop the private Postgres | no process is left |

mod database;
mod http_server;
mod jobs;
mod listeners;
mod open_files;
mod operators;
mod production;
mod shutdown;
mod signals;
mod tls;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use actix_rt::ArbiterHandle;
use actix_web::web;
use anyhow::Context as _;
use tokio::runtime::Runtime;
use tracing::{error, info, warn};
use vouchsafe_actors::delivery::Deliveries;
use vouchsafe_actors::delivery::outbox::AttemptLog;
use vouchsafe_actors::engine::{Engine, EngineParts};
use vouchsafe_actors::procurement::Procurement;
use vouchsafe_actors::supervisor::{Arbiters, Spawner};
use vouchsafe_audit_export::AuditExport;
use vouchsafe_domain::clock::{Clock, SystemClock};
use vouchsafe_domain::error_chain::describe_chain;
use vouchsafe_private_postgres::{DataDir, Durability, PrivatePostgres};
use vouchsafe_procurement::ProcurementService;
use vouchsafe_security::concurrency_limit::ConcurrencyLimit;
use vouchsafe_security::environment::Environment;
use vouchsafe_store::keyring::Keyring;
use vouchsafe_store::{ConnectionMetrics, EndedRegistration, PgNode, PgStore, Replica, Servers};
use vouchsafe_webhooks::{AttemptLogWriter, HttpSender, SenderConfig, UrlPolicy, build_context};

use self::open_files::MaxConnections;
use self::shutdown::ShutdownOutcome;
use self::tls::Certificates;
use crate::housekeeping::{renew_lease, run_housekeeping};
use crate::live::Live;
use crate::metrics::Metrics;
use crate::readiness::ReadinessGate;
use crate::service::{JobState, Service};
use crate::settings::ServeSettings;
use crate::{sandbox, secrets, service_manager};
use vouchsafe_certification::Observer;
use vouchsafe_certification::observed_sender::observe_deliveries;
use vouchsafe_cli::{ExitStatus, invalid_setting};
use vouchsafe_telemetry::Telemetry;
use vouchsafe_telemetry::refusal_counts::RefusalCounts;
use vouchsafe_telemetry::refusal_log::RefusalLog;
use vouchsafe_telemetry::security_events::SecurityEvents;

/// Time limit for the threads that serve partners to start.
const LISTENERS_TIMEOUT: Duration = Duration::from_secs(10);

/// Threads of the database runtime: lanes mostly wait.
const DATABASE_THREADS: usize = 2;

/// Threads that sign and send webhooks, about 100 µs each.
const OUTGOING_THREADS: usize = 2;

/// Niceness of the webhook threads, relative to the process: on a saturated machine orders go first, and a
/// webhook thread still gets a quarter of the CPU time of a serving thread.
const WEBHOOK_NICENESS: i32 = 6;

/// Runs the service until a signal stops it.
pub fn serve(settings: &ServeSettings, data_dir: &Path, telemetry: &Telemetry) -> ExitCode {
    match run(settings, data_dir, telemetry) {
        Ok(code) => code,
        Err(error) => {
            error!("service failed: {}", describe_chain(&*error));
            ExitStatus::of(&error).into()
        }
    }
}

fn run(settings: &ServeSettings, data_dir: &Path, telemetry: &Telemetry) -> anyhow::Result<ExitCode> {
    production::check(settings).map_err(invalid_setting)?;
    // Before the private Postgres starts, which inherits the limit.
    let max = open_files::share_out(settings).map_err(invalid_setting)?;
    let directory = DataDir::open(data_dir)?;
    let (servers, private) = open_database(settings, &directory)?;
    let database = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(DATABASE_THREADS)
        .thread_name("database")
        .enable_all()
        .build()
        .context("start the database runtime")?;
    let metrics = Metrics::new(telemetry);
    let niceness = rustix::process::getpriority_process(None).context("read the process's own niceness")?;
    let lower_priority = move || lower_thread_priority(niceness + WEBHOOK_NICENESS);
    let outgoing = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(OUTGOING_THREADS)
        .thread_name("webhooks")
        .on_thread_start(lower_priority)
        .enable_all()
        .build()
        .context("start the runtime of outgoing connections")?;
    let system = actix_web::rt::System::new();
    // Separate threads: encrypting purchased codes and sending webhooks must not delay the actors that decide
    // orders.
    let arbiters = [(); 2].map(|()| actix_rt::Arbiter::new());
    let [procurement, deliveries] = arbiters.each_ref().map(actix_rt::Arbiter::handle);
    deliveries.spawn_fn(lower_priority);
    metrics.runtimes().add("database", database.handle().clone());
    metrics.runtimes().add("webhooks", outgoing.handle().clone());
    for (name, arbiter) in [("procurement", &procurement), ("deliveries", &deliveries)] {
        let runtimes = metrics.runtimes().clone();
        arbiter.spawn_fn(move || runtimes.add_current(name));
    }
    let threads = Threads {
        database: &database,
        outgoing: &outgoing,
        actors: Arc::default(),
        procurement,
        deliveries,
    };
    let served = system.block_on(run_service(settings, &directory, servers, threads, metrics, max));
    // Actors stop before the database runtime, because they use the store.
    for arbiter in arbiters {
        arbiter.stop();
        arbiter
            .join()
            .map_err(|_| anyhow::anyhow!("an actor thread panicked"))?;
    }
    outgoing.shutdown_timeout(Duration::from_secs(1));
    database.shutdown_timeout(Duration::from_secs(1));
    match (served?, private) {
        // The guard stops the private Postgres when this process exits.
        (ShutdownOutcome::Incomplete, _) => Ok(ExitCode::FAILURE),
        (ShutdownOutcome::Drained, private) => {
            if let Some(private) = private {
                private.stop().context("stop the private Postgres")?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Sets the niceness of the calling thread. On Linux niceness is per thread and inherited by new threads.
fn lower_thread_priority(niceness: i32) {
    if let Err(error) = rustix::process::setpriority_process(None, niceness) {
        warn!(error.message = %error, "cannot lower the priority of the webhook threads; deliveries compete with orders for CPU");
    }
}

/// Threads of work outside the listeners.
struct Threads<'a> {
    database: &'a Runtime,
    outgoing: &'a Runtime,
    /// Wallets and shelves live on the threads that serve partners: a request and the actor that decides it
    /// mostly share a thread, which saves a wakeup per message.
    actors: Arc<Arbiters>,
    procurement: ArbiterHandle,
    deliveries: ArbiterHandle,
}

fn open_database(
    settings: &ServeSettings,
    directory: &DataDir,
) -> anyhow::Result<(Servers, Option<PrivatePostgres>)> {
    if let Some(servers) = settings
        .database
        .servers(settings.environment)
        .map_err(invalid_setting)?
    {
        return Ok((servers, None));
    }
    let executable = std::env::current_exe().context("find the path of this program")?;
    let private = PrivatePostgres::start(directory, &executable, Durability::Durable)?;
    Ok((private.connect_options().into(), Some(private)))
}

async fn run_service(
    settings: &ServeSettings,
    directory: &DataDir,
    servers: Servers,
    threads: Threads<'_>,
    metrics: Metrics,
    max: MaxConnections,
) -> anyhow::Result<ShutdownOutcome> {
    metrics.runtimes().add_current("main");
    let certificates = Certificates::load(settings)?;
    let (service, store) = build_service(settings, directory, servers, &threads, metrics, max).await?;
    let service = web::Data::new(service);
    let listeners = [
        listeners::start_partner_listener(settings, &service, &store, &threads.actors, &certificates, max)?,
        listeners::start_operator_listener(settings, &service, &store, &certificates, max)?,
    ];
    let service = Arc::new(JobState::new(service.into_inner(), store));
    let serving = threads.actors.wait_for(usize::from(settings.http_workers));
    let serving = tokio::time::timeout(LISTENERS_TIMEOUT, serving).await;
    serving.context("start the threads that serve partners")?;
    if settings.environment == Environment::Sandbox {
        sandbox::seed_if_new(&service, directory.path())
            .await
            .context("seed the sandbox")?;
    }
    database::join_other_nodes(&service).await?;
    service.gate.open();
    service_manager::notify_ready(settings);
    sandbox::print_banner(settings, directory.path());
    let (reconciliation, poller) = (jobs::reconciliation(&service), jobs::endpoint_poller(&service));
    let superseded = tokio::select! {
        name = signals::wait_for_signal() => {
            info!(signal = name?, "shutting down: rejecting new requests, finishing those in flight");
            false
        }
        () = service.engine.wait_until_superseded() => true,
        () = renew_lease(&service) => true,
        never = run_housekeeping(&service) => match never {},
        never = certificates.follow_files(&service.metrics) => match never {},
        never = service.procurement.run() => match never {},
        never = reconciliation.run() => match never {},
        never = poller.run() => match never {},
    };
    if superseded {
        report_end(&service).await;
        return Ok(ShutdownOutcome::Incomplete);
    }
    Ok(shutdown::shut_down(&service, &listeners).await)
}

/// This process must not write under its name any more, whatever the reason.
async fn report_end(service: &Service) {
    match service.node.find_end().await {
        Ok(EndedRegistration::Superseded) => error!("a later start of this node has taken over; exiting"),
        Ok(EndedRegistration::Lost) => error!(
            "the database has lost the registration of this node, as after a failover to a standby that did not have it yet; \
             exiting: the next start registers the node again"
        ),
        Err(error) => error!(
            error.message = %error,
            "this start of the node is not registered any more, and the database does not tell why; exiting"
        ),
    }
}

async fn build_service(
    settings: &ServeSettings,
    directory: &DataDir,
    servers: Servers,
    threads: &Threads<'_>,
    metrics: Metrics,
    max: MaxConnections,
) -> anyhow::Result<(Service, PgStore)> {
    // Invalid settings fail before the wait for the database.
    let wrapping_keys = secrets::wrapping_keys(settings, directory.path()).map_err(invalid_setting)?;
    let operator_token = secrets::operator_token(settings).map_err(invalid_setting)?;
    let identity_provider = operators::identity_provider(settings).map_err(invalid_setting)?;
    let metrics_access = settings.metrics_access().map_err(invalid_setting)?;
    let export_targets = settings.audit_export.targets().map_err(invalid_setting)?;
    let replica = settings.database.replica(settings.environment);
    let replica = replica.map_err(invalid_setting)?;
    let name = secrets::node_name(directory.path())?;
    let runtime = threads.database.handle().clone();
    let open = |servers, metrics: &_| {
        let sizes = settings.connections.sizes();
        PgStore::open_with(servers, runtime.clone(), sizes, metrics)
    };
    let store = open(servers, &metrics.connections());
    // The metrics of connections are those to the primary.
    let replica = replica.map(|standby| {
        let reader = open(standby.clone(), &ConnectionMetrics::default());
        Replica::new(&standby, &reader, &store)
    });
    database::prepare(&store, settings.environment).await?;
    database::check_connections(&store, settings).await?;
    let keyring = Keyring::open(store.data_keys.clone(), wrapping_keys)
        .await
        .context("unlock the data keys")?;
    let keyring = Arc::new(keyring);
    store.grants.unlock(keyring.vault().grant_key());
    operators::prepare(&store, settings, directory.path()).await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let audit_export = AuditExport::new(
        export_targets,
        &store.audit_log,
        keyring.vault().fingerprints(),
        Arc::clone(&clock),
        metrics.audit_export(),
    )?;
    // Fences off a process that still runs under this name. All checks that could fail come before.
    let node = PgNode::start(&store.database, name)
        .await
        .context("take the node's next incarnation")?;
    database::report_wrapping_keys(&store, &node, &keyring).await?;
    database::warn_of_missing_connections(&store, settings).await?;
    let engine = Arc::new(start_engine(settings, &node, &clock, &metrics, threads).await?);
    let (rate_limits, shared_limits) = database::share_limits(settings, &node, &clock).await?;
    let catalogue = Arc::new(database::load_catalogue(&store).await?);
    let purchasing = Arc::new(ProcurementService::new(
        store.clone(),
        node.identity().name.clone(),
        Arc::clone(&keyring),
        Arc::clone(&catalogue),
        Arc::clone(&clock),
        metrics.vendors(),
        settings.vendor_network(),
    ));
    let procurement = Spawner::on_arbiter(threads.procurement.clone());
    let sender = HttpSender::new(SenderConfig {
        keyring: Arc::clone(&keyring),
        clock: Arc::clone(&clock),
        policy: UrlPolicy::new(
            settings.webhook_loopback(),
            &[settings.http_addr, settings.admin_addr],
        ),
        runtime: threads.outgoing.handle().clone(),
    });
    let sender = sender.context("create the webhook sender")?;
    let certification = (settings.environment == Environment::Sandbox).then(Arc::<Observer>::default);
    let event_sender = observe_deliveries(Arc::new(sender.clone()), certification.as_ref(), &clock);
    let attempt_log = (settings.delivery_log_days > 0)
        .then(|| AttemptLogWriter::start(&node, threads.database.handle(), metrics.endpoints().log()));
    let port = attempt_log.clone().map(|log| log as Arc<dyn AttemptLog>);
    let equipment = build_context(&node, event_sender, port, &clock, metrics.deliveries());
    let deliveries = Spawner::on_arbiter(threads.deliveries.clone());
    let service = Service {
        replica,
        sandbox_faults: purchasing.sandbox_faults(),
        sandbox_clocks: database::load_sandbox_clocks(settings.environment, &store).await?,
        procurement: Procurement::new(procurement, Arc::clone(&engine), Arc::clone(&purchasing) as _),
        purchasing,
        environment: settings.environment,
        durability: settings.database.durability,
        gate: Arc::new(ReadinessGate::default()),
        engine,
        registry: database::load_registry(settings.environment, &store).await?,
        rate_limits,
        shared_limits,
        rotations_per_day: settings.limits.rotations_per_day(settings.environment),
        in_flight: ConcurrencyLimit::new(usize::from(settings.limits.max_in_flight)),
        partner_clients: settings.clients.partners(max.partners),
        operator_clients: settings.clients.operators(max.operators),
        default_caps: settings.caps.caps().map(Arc::new),
        metrics_access,
        catalogue,
        keyring,
        max_data_key_age: settings.max_data_key_age(),
        deliveries: Deliveries::new(deliveries, equipment),
        attempt_log,
        delivery_log_days: settings.delivery_log_days,
        audit_export,
        sender,
        operator_token,
        console_url: settings.console_url(),
        identity_provider,
        four_eyes: settings.four_eyes(),
        vendor_network: settings.vendor_network(),
        reconciliation_preview: settings.reconciliation_preview,
        settings: settings.effective.clone(),
        clock,
        metrics,
        refusals: RefusalLog::default(),
        refusal_counts: RefusalCounts::default(),
        security_events: SecurityEvents::default(),
        live: Live::default(),
        certification,
        node,
    };
    Ok((service, store))
}

async fn start_engine(
    settings: &ServeSettings,
    node: &PgNode,
    clock: &Arc<dyn Clock>,
    metrics: &Metrics,
    threads: &Threads<'_>,
) -> anyhow::Result<Engine> {
    let handle = threads.database.handle().clone();
    #[allow(clippy::disallowed_methods)] // lanes run on the database runtime
    let spawn = move |lane| drop(handle.spawn(lane));
    let parts = EngineParts {
        store: Arc::new(node.clone()),
        clock: Arc::clone(clock),
        spawner: Spawner::Arbiters(Arc::clone(&threads.actors)),
        spawn: &spawn,
        lanes: settings.lanes,
        metrics: metrics.journal(),
    };
    Engine::start(parts).await.context("open the lanes")
}
