//! From settings to a running service, and back to nothing.
//!
//! | step | what is there after it |
//! |---|---|
//! | the data directory is locked | no second service on it |
//! | Postgres answers | the schema is up to date, this start has its incarnation |
//! | keys are unlocked | codes can be sealed and opened |
//! | the engine starts | what a predecessor left under way is shut out |
//! | the listeners are bound | wallets and shelves have threads; who comes is told to come again |
//! | the gate opens | partners and operators are served |
//! | a signal: the gate closes, the journal empties | every answer was given, every record has its verdict |
//! | Postgres stops | nothing of ours runs |

pub(crate) mod listeners;
mod production;
mod stop;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_rt::ArbiterHandle;
use actix_web::dev::ServerHandle;
use actix_web::web;
use anyhow::Context as _;
use sqlx::postgres::PgConnectOptions;
use tokio::runtime::Runtime;
use tracing::{error, info, warn};
use vouchsafe_actors::delivery::Deliveries;
use vouchsafe_actors::domain::catalogue::Catalogue;
use vouchsafe_actors::domain::clock::{Clock, SystemClock};
use vouchsafe_actors::engine::{Engine, Parts};
use vouchsafe_actors::procurement::Procurement;
use vouchsafe_actors::supervisor::{Arbiters, Spawner};

use crate::access::environment::Environment;
use crate::access::rate_limits::RateLimits;
use crate::access::register::Register;
use crate::certification::{Watch, keeper};
use crate::cli::Exit;
use crate::delivery::{Grounds, HttpSender, SenderParts, equip, keep_delivering};
use crate::housekeeping::{keep_house, keep_lease};
use crate::http::Gate;
use crate::keyring::Keyring;
use crate::metrics::Metrics;
use crate::postgres::{DataDir, Durability, PrivatePostgres};
use crate::procurement::Purchasing;
use crate::reconciliation::job::keep_reconciling;
use crate::service::{CurrentCatalogue, Service};
use crate::settings::ServeSettings;
use crate::store::{PgNode, PgStore};
use crate::telemetry::Telemetry;
use crate::{sandbox, secrets};

/// How long a shutdown may take before what is open is left to the next start (contract §11).
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// How long a start waits for a database that is starting, too.
const DATABASE_PATIENCE: Duration = Duration::from_secs(60);

/// How long the threads that serve partners may take to start.
const LISTENERS_PATIENCE: Duration = Duration::from_secs(10);

/// The pause between two attempts.
const DATABASE_PAUSE: Duration = Duration::from_secs(1);

/// Threads of the runtime that the database's work lives on: the lanes wait more than they work.
const DATABASE_THREADS: usize = 2;

/// Threads that speak to receivers of webhooks: signing and sending, some 100 µs each.
const OUTGOING_THREADS: usize = 2;

/// By how much the threads of deliveries are nicer than the process: where a core is wanted by others, too, orders are answered
/// first, and a delivery thread still has a quarter of the time of a serving one. Only a machine that is busy to the brim shows it.
const DELIVERIES_STAND_BACK: i32 = 6;

/// Serves until it is told to stop.
pub fn serve(settings: &ServeSettings, data_dir: &Path, telemetry: &Telemetry) -> ExitCode {
    match run(settings, data_dir, telemetry) {
        Ok(code) => code,
        Err(error) => {
            error!("the service cannot run: {error:#}");
            Exit::of(&error).into()
        }
    }
}

fn run(settings: &ServeSettings, data_dir: &Path, telemetry: &Telemetry) -> anyhow::Result<ExitCode> {
    production::check(settings)?;
    let directory = DataDir::open(data_dir)?;
    let (options, private) = database(settings, &directory)?;
    let database = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(DATABASE_THREADS)
        .thread_name("database")
        .enable_all()
        .build()
        .context("start the database's runtime")?;
    let metrics = Metrics::new(telemetry);
    let niceness = rustix::process::getpriority_process(None).context("read the process's own niceness")?;
    let stand_back = move || stand_back(niceness + DELIVERIES_STAND_BACK);
    let outgoing = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(OUTGOING_THREADS)
        .thread_name("webhooks")
        .on_thread_start(stand_back)
        .enable_all()
        .build()
        .context("start the runtime of outgoing connections")?;
    let system = actix_web::rt::System::new();
    // Vendors' answers take their time to be read and sealed, and deliveries are many: what decides orders does not stand in
    // line with them.
    let arbiters = [(); 2].map(|()| actix_rt::Arbiter::new());
    let [buyers, deliveries] = arbiters.each_ref().map(actix_rt::Arbiter::handle);
    deliveries.spawn_fn(stand_back);
    let threads = Threads {
        database: &database,
        outgoing: &outgoing,
        actors: Arc::default(),
        buyers,
        deliveries,
    };
    let served = system.block_on(serve_on(settings, &directory, options, threads, metrics));
    // Actors end before the database's runtime, so that none of them asks a store that is gone.
    for arbiter in arbiters {
        arbiter.stop();
        arbiter
            .join()
            .map_err(|_| anyhow::anyhow!("an actors' thread panicked"))?;
    }
    outgoing.shutdown_timeout(Duration::from_secs(1));
    database.shutdown_timeout(Duration::from_secs(1));
    match (served?, private) {
        // Its guard ends it as soon as this process has gone.
        (Ended::WithOpenEnds, _) => Ok(ExitCode::FAILURE),
        (Ended::Drained, private) => {
            if let Some(private) = private {
                private.stop().context("stop the private Postgres")?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Lets the calling thread stand back: in Linux a thread has a niceness of its own, and those that it starts begin with it.
fn stand_back(niceness: i32) {
    if let Err(error) = rustix::process::setpriority_process(None, niceness) {
        warn!(%error, "deliveries take their time from orders: their threads cannot stand back");
    }
}

/// Where work runs that is not a listener's.
struct Threads<'a> {
    database: &'a Runtime,
    /// Connections to partners' endpoints.
    outgoing: &'a Runtime,
    /// Wallets and shelves: those that serve partners. Who asks a wallet or a shelf and who decides are mostly on one thread
    /// then, and nobody has to be woken for a question or its answer.
    actors: Arc<Arbiters>,
    buyers: ArbiterHandle,
    deliveries: ArbiterHandle,
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Every record has its verdict.
    Drained,
    /// What is open is settled at the next start.
    WithOpenEnds,
}

fn database(
    settings: &ServeSettings,
    directory: &DataDir,
) -> anyhow::Result<(PgConnectOptions, Option<PrivatePostgres>)> {
    if let Some(url) = settings.database_url() {
        // The reason is left out: it may quote the URL with its password.
        let options = secrets::expose(url)
            .parse()
            .map_err(|_| anyhow::anyhow!("DATABASE_URL is no Postgres URL"))?;
        return Ok((options, None));
    }
    let executable = std::env::current_exe().context("find this program's own file")?;
    let private = PrivatePostgres::start(directory, &executable, Durability::Durable)?;
    Ok((private.connect_options(), Some(private)))
}

async fn serve_on(
    settings: &ServeSettings,
    directory: &DataDir,
    options: PgConnectOptions,
    threads: Threads<'_>,
    metrics: Metrics,
) -> anyhow::Result<Ended> {
    let service = assemble(settings, directory, options, &threads, metrics).await?;
    let service = web::Data::new(service);
    let listeners = [
        listeners::partners(settings, &service, &threads.actors)?,
        listeners::operators(settings, &service)?,
    ];
    let serving = threads.actors.until(usize::from(settings.http_workers));
    let serving = tokio::time::timeout(LISTENERS_PATIENCE, serving).await;
    serving.context("start the threads that serve partners")?;
    if settings.environment == Environment::Sandbox {
        sandbox::seed_if_new(&service, directory.path())
            .await
            .context("fill the sandbox")?;
    }
    service.gate.open();
    sandbox::greet(settings, directory.path());
    let superseded = tokio::select! {
        name = stop::told_to_stop() => {
            info!(signal = name?, "going down: no new requests, open ones finish");
            false
        }
        () = service.engine.superseded() => true,
        () = keep_lease(&service) => true,
        () = keep_house(&service) => true,
        () = service.procurement.keep_looking() => true,
        () = keep_reconciling(&service) => true,
        () = keep_delivering(&service) => true,
    };
    if superseded {
        error!("a later start of this node has taken over; this process ends");
        return Ok(Ended::WithOpenEnds);
    }
    let drained = tokio::select! {
        drained = tokio::time::timeout(DRAIN_DEADLINE, drain(&service, &listeners)) => drained.is_ok(),
        () = keep_lease(&service) => false,
    };
    if !drained {
        warn!(
            "not everything finished within {} s; what is open is settled at the next start",
            DRAIN_DEADLINE.as_secs()
        );
    }
    Ok(if drained {
        Ended::Drained
    } else {
        Ended::WithOpenEnds
    })
}

async fn assemble(
    settings: &ServeSettings,
    directory: &DataDir,
    options: PgConnectOptions,
    threads: &Threads<'_>,
    metrics: Metrics,
) -> anyhow::Result<Service> {
    // What is wrong with a setting is said before a database is waited for.
    let master_key = secrets::master_key(settings, directory.path())?;
    let operator_token = secrets::operator_token(settings, directory.path())?;
    let name = secrets::node_name(directory.path())?;
    let store = PgStore::open(options, threads.database.handle().clone());
    prepare(&store, settings.environment).await?;
    let keyring = Keyring::open(store.clone(), master_key)
        .await
        .context("unlock the data keys")?;
    let keyring = Arc::new(keyring);
    // From here on a process that still runs under this name is shut out: only who can take its place gets here.
    let node = PgNode::start(store.clone(), name)
        .await
        .context("take the node's next incarnation")?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let engine = start_engine(settings, &node, &clock, &metrics, threads).await?;
    let engine = Arc::new(engine);
    let catalogue = Arc::new(load_catalogue(&store).await?);
    let purchasing = Purchasing::new(
        &node,
        Arc::clone(&keyring),
        Arc::clone(&catalogue),
        Arc::clone(&clock),
        metrics.vendors(),
    );
    let buyers = Spawner::on(threads.buyers.clone());
    let sender = HttpSender::new(SenderParts {
        keyring: Arc::clone(&keyring),
        clock: Arc::clone(&clock),
        grounds: Grounds::new(settings.environment, &[settings.http_addr, settings.admin_addr]),
        runtime: threads.outgoing.handle().clone(),
    });
    let sender = sender.context("make what delivers webhooks")?;
    let certification = (settings.environment == Environment::Sandbox).then(Arc::<Watch>::default);
    let equipment = equip(
        &node,
        &sender,
        &clock,
        metrics.deliveries(),
        certification.as_ref(),
    );
    let deliveries = Spawner::on(threads.deliveries.clone());
    Ok(Service {
        procurement: Procurement::new(buyers, Arc::clone(&engine), Arc::new(purchasing)),
        environment: settings.environment,
        gate: Arc::new(Gate::default()),
        engine,
        register: load_register(settings.environment, &store).await?,
        rate_limits: RateLimits::new(settings.limits.defaults()),
        trusted_proxies: settings.trusted_proxies.clone(),
        catalogue,
        keyring,
        deliveries: Deliveries::new(deliveries, equipment),
        sender,
        operator_token,
        reconciliation_preview: settings.reconciliation_preview,
        clock,
        metrics,
        certification,
        store,
        node,
    })
}

/// Waits for the database, and makes it ready.
async fn prepare(store: &PgStore, environment: Environment) -> anyhow::Result<()> {
    let since = Instant::now();
    loop {
        match store.prepare(environment).await {
            Err(error) if error.may_pass() && since.elapsed() < DATABASE_PATIENCE => {
                warn!(%error, "waiting for the database");
                tokio::time::sleep(DATABASE_PAUSE).await;
            }
            prepared => return prepared.context("open the database"),
        }
    }
}

async fn start_engine(
    settings: &ServeSettings,
    node: &PgNode,
    clock: &Arc<dyn Clock>,
    metrics: &Metrics,
    threads: &Threads<'_>,
) -> anyhow::Result<Engine> {
    let handle = threads.database.handle().clone();
    #[allow(clippy::disallowed_methods)] // lanes live on the database's runtime
    let spawn = move |lane| drop(handle.spawn(lane));
    let parts = Parts {
        store: Arc::new(node.clone()),
        clock: Arc::clone(clock),
        spawner: Spawner::Arbiters(Arc::clone(&threads.actors)),
        spawn: &spawn,
        lanes: settings.lanes,
        metrics: metrics.journal(),
    };
    Engine::start(parts).await.context("open the lanes")
}

async fn load_register(environment: Environment, store: &PgStore) -> anyhow::Result<Register> {
    let register = Register::new(environment);
    let (partners, credentials) = store.load_access().await?;
    partners
        .into_iter()
        .for_each(|partner| register.replace_partner(partner));
    credentials
        .into_iter()
        .for_each(|credential| register.put_credential(credential));
    Ok(register)
}

async fn load_catalogue(store: &PgStore) -> anyhow::Result<CurrentCatalogue> {
    let catalogue = CurrentCatalogue::default();
    catalogue.replace(Catalogue::new(store.load_products().await?));
    Ok(catalogue)
}

/// Who waits for an order to change is answered at once, and nothing more is bought. The gate turns new requests away, open
/// ones finish, the journal empties. The listeners stay up meanwhile, so that who comes is told to come again instead of
/// being reset.
async fn drain(service: &Service, listeners: &[ServerHandle; 2]) {
    service.engine.watch.close();
    service.procurement.rest();
    service.gate.drain().await;
    service.engine.drain().await;
    service.deliveries.drain().await;
    // Deliveries are seen up to the last.
    if let Some(watch) = &service.certification {
        keeper::write_down(service, watch).await;
    }
    for listener in listeners {
        listener.stop(true).await;
    }
}
