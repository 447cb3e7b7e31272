//! Where are partners and operators served? On a listener each, with limits on what a connection may hold up.

use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use anyhow::Context as _;
use vouchsafe_actors::supervisor::Arbiters;

use crate::service::Service;
use crate::settings::ServeSettings;
use crate::{admin, http, trace};

/// Threads that serve partners, unless it is said: the other half of the cores is the database's.
pub(crate) fn default_workers() -> u16 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u16::try_from(cores / 2).unwrap_or(u16::MAX).clamp(1, 256)
}

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

/// Serves partners. Each thread that does joins the actors' threads when it starts.
pub(super) fn partners(
    settings: &ServeSettings,
    service: &web::Data<Service>,
    actors: &Arc<Arbiters>,
) -> anyhow::Result<ServerHandle> {
    let (service, actors) = (service.clone(), Arc::clone(actors));
    // Called once by each thread.
    let app = move || {
        actors.join(actix_rt::Arbiter::current());
        let app = App::new().app_data(service.clone()).configure(http::routes);
        // The last one is the first that a request comes to.
        app.wrap(from_fn(http::partner_gate))
            .wrap(from_fn(trace::traced))
            .wrap(from_fn(http::admission))
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

/// Serves operators.
pub(super) fn operators(
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
