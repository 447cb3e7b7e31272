//! HTTP listeners for partners and operators, with connection limits and timeouts.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::{Extensions, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use anyhow::Context as _;
use vouchsafe_actors::supervisor::Arbiters;
use vouchsafe_security::environment::Environment;

use crate::api::middleware::listener_peers::{self, ListenerPeers};
use crate::api::middleware::listeners::{serve_operator, serve_partner};
use crate::api::middleware::response_delivery;
use crate::api::middleware::security_headers::StrictTransport;
use crate::api::{console, operator, partner};
use crate::service::Service;
use crate::settings::ServeSettings;
use crate::tls::ListenerTls;

const ADMIN_WORKERS: usize = 1;

/// Per worker; above it, connections wait in the accept queue.
const MAX_CONNECTIONS: usize = 10_000;

/// Time limit for the head of a request.
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Seconds to flush the last responses at shutdown.
const LINGER_S: u64 = 1;

/// Idle timeout of a connection.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Each worker thread also runs actors.
pub(super) fn start_partner_listener(
    settings: &ServeSettings,
    service: &web::Data<Service>,
    actors: &Arc<Arbiters>,
    tls: Option<&ListenerTls>,
) -> anyhow::Result<ServerHandle> {
    let (service, actors) = (service.clone(), Arc::clone(actors));
    let listener = settings.partner_listener();
    let proxies = settings.trusted_proxies.clone();
    let peers = ListenerPeers::new(proxies, settings.environment, listener.transport);
    // Clients of production use https: of the listener, or of its proxy.
    let strict = StrictTransport(settings.environment == Environment::Production);
    // actix calls this once per worker thread.
    let app = move || {
        actors.add(actix_rt::Arbiter::current());
        service.metrics.runtimes().add_current("partner_listener");
        App::new()
            .app_data(service.clone())
            .app_data(peers.clone())
            .app_data(strict)
            .configure(partner::routes)
            .wrap(from_fn(serve_partner))
    };
    let server = HttpServer::new(app).workers(usize::from(settings.http_workers));
    let server = server
        .max_connections(MAX_CONNECTIONS)
        .shutdown_timeout(LINGER_S)
        .client_request_timeout(REQUEST_HEAD_TIMEOUT)
        .on_connect(on_connect(settings))
        .keep_alive(KEEP_ALIVE)
        .disable_signals();
    let bound = match tls {
        Some(tls) => server.bind_rustls_0_23(listener.address, tls.server_config()?),
        None => server.bind(listener.address),
    };
    let bound = bound.with_context(|| format!("serve partners on {}", listener.address))?;
    Ok(spawn_server(bound.run()))
}

pub(super) fn start_operator_listener(
    settings: &ServeSettings,
    service: &web::Data<Service>,
    tls: Option<&ListenerTls>,
) -> anyhow::Result<ServerHandle> {
    let service = service.clone();
    let listener = settings.operator_listener();
    let proxies = settings.admin_trusted_proxies.clone();
    let peers = ListenerPeers::new(proxies, settings.environment, listener.transport);
    let strict = StrictTransport(service.console_url.requires_strict_transport());
    let app = move || {
        service.metrics.runtimes().add_current("operator_listener");
        App::new()
            .app_data(service.clone())
            .app_data(peers.clone())
            .app_data(strict)
            .configure(operator::configure_listener)
            .configure(console::configure)
            .wrap(from_fn(serve_operator))
    };
    let server = HttpServer::new(app).workers(ADMIN_WORKERS);
    let server = server
        .shutdown_timeout(LINGER_S)
        .client_request_timeout(REQUEST_HEAD_TIMEOUT)
        .on_connect(on_connect(settings))
        .keep_alive(KEEP_ALIVE)
        .disable_signals();
    let bound = match tls {
        Some(tls) => server.bind_rustls_0_23(listener.address, tls.server_config()?),
        None => server.bind(listener.address),
    };
    let bound = bound.with_context(|| format!("serve operators on {}", listener.address))?;
    Ok(spawn_server(bound.run()))
}

/// Attaches the data that middleware needs to a connection.
fn on_connect(settings: &ServeSettings) -> impl Fn(&dyn Any, &mut Extensions) + Send + Sync + 'static {
    let deadline = Duration::from_secs(settings.limits.response_deadline.into());
    move |connection, data| {
        listener_peers::record_local_address(connection, data);
        response_delivery::watch_connection(connection, data, deadline);
    }
}

#[allow(clippy::disallowed_methods)] // the task ends with its handle
fn spawn_server(server: actix_web::dev::Server) -> ServerHandle {
    let handle = server.handle();
    drop(actix_web::rt::spawn(server));
    handle
}
