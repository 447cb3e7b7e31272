//! From settings to a running service, and back to nothing.
//!
//! | step | what is there after it |
//! |---|---|
//! | the data directory is locked | no second service on it |
//! | Postgres answers | the schema is up to date, this start has its incarnation |
//! | keys are unlocked | codes can be sealed and opened |
//! | the engine starts | what a predecessor left under way is shut out |
//! | the listeners are bound | partners and operators are served |
//! | a signal: the gate closes, the journal empties | every answer was given, every record has its verdict |
//! | Postgres stops | nothing of ours runs |

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use actix_rt::ArbiterHandle;
use actix_web::dev::ServerHandle;
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use anyhow::{Context as _, bail};
use sqlx::postgres::PgConnectOptions;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};
use vouchsafe_actors::domain::catalogue::Catalogue;
use vouchsafe_actors::domain::clock::{Clock, SystemClock};
use vouchsafe_actors::engine::{Engine, Parts};
use vouchsafe_actors::supervisor::Spawner;

use crate::access::environment::Environment;
use crate::access::register::Register;
use crate::http::Gate;
use crate::keyring::Keyring;
use crate::metrics::Metrics;
use crate::postgres::{DataDir, Durability, PrivatePostgres};
use crate::service::{CurrentCatalogue, Service};
use crate::settings::ServeSettings;
use crate::store::{LEASE_S, PgStore};
use crate::{admin, http, sandbox, secrets, trace};

/// How long a shutdown may take before what is open is left to the next start (contract §11).
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// How often the lease is renewed: three times before it would run out.
const RENEW_EVERY: Duration = Duration::from_secs(LEASE_S.cast_unsigned() as u64 / 3);

/// How often answers whose time is over are cleared away.
const PURGE_EVERY: Duration = Duration::from_secs(60);

/// Threads of the runtime that the database's work lives on: the lanes wait more than they work.
const DATABASE_THREADS: usize = 2;

/// Threads that serve operators.
const ADMIN_WORKERS: usize = 1;

/// Most connections a worker keeps open; beyond it clients wait to be accepted.
const MAX_CONNECTIONS: usize = 10_000;

/// How long the head of a request may take.
const HEAD_DEADLINE: Duration = Duration::from_secs(5);

/// How long connections are kept after the last answer was given, so that its bytes are sent. Seconds.
const LINGER_S: u64 = 1;

/// How long a connection without a request is kept.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Serves until it is told to stop.
pub fn serve(settings: &ServeSettings, data_dir: &Path) -> ExitCode {
    match run(settings, data_dir) {
        Ok(code) => code,
        Err(error) => {
            error!("the service cannot run: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(settings: &ServeSettings, data_dir: &Path) -> anyhow::Result<ExitCode> {
    check_production(settings)?;
    let directory = DataDir::open(data_dir)?;
    let (options, private) = database(settings, &directory)?;
    let database = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(DATABASE_THREADS)
        .thread_name("database")
        .enable_all()
        .build()
        .context("start the database's runtime")?;
    let system = actix_web::rt::System::new();
    let arbiter = actix_rt::Arbiter::new();
    let served = system.block_on(serve_on(
        settings,
        &directory,
        options,
        &database,
        arbiter.handle(),
    ));
    // Actors end before the database's runtime, so that none of them asks a store that is gone.
    arbiter.stop();
    arbiter
        .join()
        .map_err(|_| anyhow::anyhow!("the actors' thread panicked"))?;
    database.shutdown_timeout(Duration::from_secs(1));
    if let Some(private) = private {
        private.stop().context("stop the private Postgres")?;
    }
    served
}

/// What production refuses to start without (contract §1).
fn check_production(settings: &ServeSettings) -> anyhow::Result<()> {
    if settings.environment == Environment::Sandbox {
        return Ok(());
    }
    if settings.master_key.is_none() {
        bail!("production needs VOUCHSAFE_MASTER_KEY: 64 hex digits or base64 of 32 random bytes");
    }
    if settings.database_url.is_none() {
        bail!("production needs DATABASE_URL: the Postgres that holds its orders");
    }
    if settings.operator_token.is_none() {
        bail!("production needs VOUCHSAFE_OPERATOR_TOKEN: at least 32 random characters");
    }
    for (name, address) in [
        ("VOUCHSAFE_HTTP_ADDR", settings.http_addr),
        ("VOUCHSAFE_ADMIN_ADDR", settings.admin_addr),
    ] {
        if !address.ip().is_loopback() {
            bail!(
                "production serves on loopback behind a proxy that speaks TLS: set {name} to a loopback address"
            );
        }
    }
    Ok(())
}

fn database(
    settings: &ServeSettings,
    directory: &DataDir,
) -> anyhow::Result<(PgConnectOptions, Option<PrivatePostgres>)> {
    if let Some(url) = &settings.database_url {
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
    database: &Runtime,
    actors: ArbiterHandle,
) -> anyhow::Result<ExitCode> {
    let service = web::Data::new(assemble(settings, directory, options, database, actors).await?);
    if settings.environment == Environment::Sandbox {
        sandbox::seed_if_new(&service, directory.path())
            .await
            .context("fill the sandbox")?;
    }
    let listeners = [
        listen(settings, &service)?,
        listen_to_operators(settings, &service)?,
    ];
    sandbox::greet(settings, directory.path());
    let superseded = tokio::select! {
        name = told_to_stop() => {
            info!(signal = name?, "going down: no new requests, open ones finish");
            false
        }
        () = service.engine.superseded() => true,
        () = keep_house(&service) => true,
    };
    if superseded {
        error!("a later start of this node has taken over; this process ends");
        return Ok(ExitCode::FAILURE);
    }
    let drained = tokio::time::timeout(DRAIN_DEADLINE, drain(&service, &listeners))
        .await
        .is_ok();
    if !drained {
        warn!(
            "not everything finished within {} s; what is open is settled at the next start",
            DRAIN_DEADLINE.as_secs()
        );
    }
    Ok(if drained {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn assemble(
    settings: &ServeSettings,
    directory: &DataDir,
    options: PgConnectOptions,
    database: &Runtime,
    actors: ArbiterHandle,
) -> anyhow::Result<Service> {
    let node = secrets::node_name(directory.path())?;
    let store = PgStore::open(options, database.handle().clone(), node)
        .await
        .context("open the database")?;
    store.stamp_environment(settings.environment).await?;
    let master_key = secrets::master_key(settings, directory.path())?;
    let keyring = Keyring::open(store.clone(), master_key)
        .await
        .context("unlock the data keys")?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let metrics = Metrics::new();
    let engine = start_engine(settings, &store, &clock, &metrics, database, actors).await?;
    Ok(Service {
        environment: settings.environment,
        gate: Arc::new(Gate::default()),
        engine,
        register: load_register(settings.environment, &store).await?,
        catalogue: load_catalogue(&store).await?,
        keyring,
        operator_token: secrets::operator_token(settings, directory.path())?,
        clock,
        metrics,
        store,
    })
}

async fn start_engine(
    settings: &ServeSettings,
    store: &PgStore,
    clock: &Arc<dyn Clock>,
    metrics: &Metrics,
    database: &Runtime,
    actors: ArbiterHandle,
) -> anyhow::Result<Engine> {
    let handle = database.handle().clone();
    #[allow(clippy::disallowed_methods)] // lanes live on the database's runtime
    let spawn = move |lane| drop(handle.spawn(lane));
    let parts = Parts {
        store: Arc::new(store.clone()),
        clock: Arc::clone(clock),
        spawner: Spawner::Arbiters(vec![actors]),
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

fn listen(settings: &ServeSettings, service: &web::Data<Service>) -> anyhow::Result<ServerHandle> {
    let service = service.clone();
    let app = move || {
        let app = App::new().app_data(service.clone()).configure(http::routes);
        app.wrap(from_fn(http::partner_gate)).wrap(from_fn(trace::traced))
    };
    let server = HttpServer::new(app).workers(usize::from(settings.http_workers));
    let server = server
        .max_connections(MAX_CONNECTIONS)
        .shutdown_timeout(LINGER_S)
        .client_request_timeout(HEAD_DEADLINE)
        .keep_alive(KEEP_ALIVE);
    let bound = server.disable_signals().bind(settings.http_addr);
    Ok(start(
        bound
            .with_context(|| format!("serve partners on {}", settings.http_addr))?
            .run(),
    ))
}

fn listen_to_operators(
    settings: &ServeSettings,
    service: &web::Data<Service>,
) -> anyhow::Result<ServerHandle> {
    let service = service.clone();
    let app = move || {
        let app = App::new().app_data(service.clone()).configure(admin::listener);
        app.wrap(from_fn(http::operator_gate))
            .wrap(from_fn(trace::traced))
    };
    let server = HttpServer::new(app).workers(ADMIN_WORKERS);
    let server = server
        .shutdown_timeout(LINGER_S)
        .client_request_timeout(HEAD_DEADLINE)
        .keep_alive(KEEP_ALIVE);
    let bound = server.disable_signals().bind(settings.admin_addr);
    Ok(start(
        bound
            .with_context(|| format!("serve operators on {}", settings.admin_addr))?
            .run(),
    ))
}

#[allow(clippy::disallowed_methods)] // a listener is a task that ends with its handle
fn start(server: actix_web::dev::Server) -> ServerHandle {
    let handle = server.handle();
    drop(actix_web::rt::spawn(server));
    handle
}

async fn told_to_stop() -> anyhow::Result<&'static str> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}

/// Renews the lease and clears old answers away, until a later start of this node has taken over.
async fn keep_house(service: &Service) {
    let mut renew = tokio::time::interval(RENEW_EVERY);
    let mut purge = tokio::time::interval(PURGE_EVERY);
    loop {
        tokio::select! {
            _ = renew.tick() => match service.store.renew_lease().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => warn!(%error, "the lease cannot be renewed now"),
            },
            _ = purge.tick() => {
                if let Err(error) = service.store.purge_expired_keys().await {
                    warn!(%error, "old answers cannot be cleared away now");
                }
            }
        }
    }
}

/// Who waits for an order to change is answered at once. The gate turns new requests away, open ones finish, the journal empties. The listeners stay up meanwhile, so that who
/// comes is told to come again instead of being reset.
async fn drain(service: &Service, listeners: &[ServerHandle; 2]) {
    service.engine.watch.close();
    service.gate.drain().await;
    service.engine.drain().await;
    for listener in listeners {
        listener.stop(true).await;
    }
}
