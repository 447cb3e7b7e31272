//! Listeners for partners and operators.

use std::sync::Arc;
use std::time::Duration;

use actix_server::ServerHandle;
use actix_web::middleware::from_fn;
use actix_web::{App, web};
use vouchsafe_actors::supervisor::Arbiters;
use vouchsafe_security::environment::Environment;
use vouchsafe_store::PgStore;

use super::http_server::{self, HttpListener};
use super::open_files::MaxConnections;
use super::tls::Certificates;
use crate::api::middleware::listener_peers::ListenerPeers;
use crate::api::middleware::listeners::{serve_operator, serve_partner};
use crate::api::middleware::security_headers::StrictTransport;
use crate::api::operator::OperatorRoutes;
use crate::api::{console, partner};
use crate::metrics::{OPERATOR_LISTENER, PARTNER_LISTENER};
use crate::service::Service;
use crate::settings::ServeSettings;

/// Two, so that one request that takes long delays only some of the others.
const OPERATOR_WORKERS: usize = 2;

/// Each worker thread also runs actors.
pub(super) fn start_partner_listener(
    settings: &ServeSettings,
    service: &web::Data<Service>,
    store: &PgStore,
    actors: &Arc<Arbiters>,
    certificates: &Certificates,
    max: MaxConnections,
) -> anyhow::Result<ServerHandle> {
    let (app_service, actors) = (service.clone(), Arc::clone(actors));
    let routes = partner::routes(service.clone().into_inner(), store);
    let listener = settings.partner_listener();
    let proxies = settings.trusted_proxies.clone();
    let peers = ListenerPeers::new(proxies.clone(), settings.environment, listener.transport);
    // Clients of production use https: of the listener, or of its proxy.
    let strict = StrictTransport(settings.environment == Environment::Production);
    // actix calls this once per worker thread.
    let app = move || {
        actors.add(actix_rt::Arbiter::current());
        app_service.metrics.runtimes().add_current("partner_listener");
        App::new()
            .app_data(app_service.clone())
            .app_data(peers.clone())
            .app_data(strict)
            .configure(routes.clone())
            .wrap(from_fn(serve_partner))
    };
    let listener = HttpListener {
        name: PARTNER_LISTENER,
        address: listener.address,
        workers: usize::from(settings.http_workers),
        max_connections: max.partners,
        clients: |service| &service.partner_clients,
        proxies,
        tls: certificates.partners.clone(),
        response_deadline: response_deadline(settings),
    };
    http_server::start(listener, service, app)
}

pub(super) fn start_operator_listener(
    settings: &ServeSettings,
    service: &web::Data<Service>,
    store: &PgStore,
    certificates: &Certificates,
    max: MaxConnections,
) -> anyhow::Result<ServerHandle> {
    let app_service = service.clone();
    let routes = OperatorRoutes::new(service.clone().into_inner(), store);
    let listener = settings.operator_listener();
    let proxies = settings.admin_trusted_proxies.clone();
    let peers = ListenerPeers::new(proxies.clone(), settings.environment, listener.transport);
    let strict = StrictTransport(service.console_url.requires_strict_transport());
    let app = move || {
        app_service.metrics.runtimes().add_current("operator_listener");
        App::new()
            .app_data(app_service.clone())
            .app_data(peers.clone())
            .app_data(strict)
            .configure(|config| routes.configure_listener(config))
            .configure(console::configure)
            .wrap(from_fn(serve_operator))
    };
    let listener = HttpListener {
        name: OPERATOR_LISTENER,
        address: listener.address,
        workers: OPERATOR_WORKERS,
        max_connections: max.operators,
        clients: |service| &service.operator_clients,
        proxies,
        tls: certificates.operators.clone(),
        response_deadline: response_deadline(settings),
    };
    http_server::start(listener, service, app)
}

fn response_deadline(settings: &ServeSettings) -> Duration {
    Duration::from_secs(settings.limits.response_deadline.into())
}
