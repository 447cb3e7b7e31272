//! HTTP/1.1 server of a listener: threads, limits of connections and timeouts.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_http::{HttpService, Request};
use actix_server::{Server, ServerHandle};
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt as _, fn_service, map_config};
use actix_web::body::MessageBody;
use actix_web::dev::{AppConfig, Extensions};
use actix_web::rt::net::TcpStream;
use actix_web::{Error, web};
use anyhow::Context as _;
use tokio_rustls::TlsAcceptor;
use vouchsafe_security::client_address::TrustedProxies;

use crate::api::middleware::{listener_peers, response_delivery};
use crate::connections::{ClientLimits, ClientStream, OpenError};
use crate::service::Service;
use crate::tls::ListenerTls;

/// Time limit for the head of a request.
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Idle timeout of a connection.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Time for the client to close its side of a connection.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Seconds to flush the last responses at shutdown.
const LINGER_S: u64 = 1;

/// A listener.
#[derive(Clone)]
pub(super) struct HttpListener {
    /// Label of its metrics.
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    pub(super) workers: usize,
    /// Connections of all workers; above it, connections wait in the accept queue.
    pub(super) max_connections: usize,
    pub(super) clients: fn(&Service) -> &ClientLimits,
    pub(super) proxies: TrustedProxies,
    pub(super) tls: Option<Arc<ListenerTls>>,
    /// Time for clients to read a response.
    pub(super) response_deadline: Duration,
}

/// Starts the threads of a listener. `app` makes the application of each.
pub(super) fn start<F, I, S, B>(
    listener: HttpListener,
    service: &web::Data<Service>,
    app: F,
) -> anyhow::Result<ServerHandle>
where
    F: Fn() -> I + Clone + Send + 'static,
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig, Error = Error> + 'static,
    S::InitError: Debug,
    S::Response: Into<actix_http::Response<B>> + 'static,
    S::Service: 'static,
    B: MessageBody + 'static,
{
    let HttpListener {
        name,
        address,
        workers,
        max_connections,
        ..
    } = listener;
    let server = Server::build()
        .workers(workers)
        .max_concurrent_connections(max_connections.div_ceil(workers))
        .shutdown_timeout(LINGER_S)
        .disable_signals();
    let shutdown = server.graceful_shutdown_signal();
    let tls = listener.tls.as_ref().map(|tls| tls.server_config()).transpose()?;
    let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    let service = service.clone();
    let bound = server.bind(name, address, move || {
        let (shutdown, connected) = (shutdown.clone(), listener.clone());
        let application = app()
            .into_factory()
            .map_err(|error: Error| error.error_response());
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let shutdown = shutdown.clone();
                async move { shutdown.notified().await }
            })
            .keep_alive(KEEP_ALIVE)
            .client_request_timeout(REQUEST_HEAD_TIMEOUT)
            .client_disconnect_timeout(DISCONNECT_TIMEOUT)
            .on_connect_ext(move |stream: &ClientStream, data: &mut Extensions| {
                attach_data(&connected, stream, data);
            })
            .h1(map_config(application, |()| AppConfig::default()));
        let (service, listener, tls) = (service.clone(), listener.clone(), tls.clone());
        let accept = fn_service(move |stream: TcpStream| {
            let (service, listener, tls) = (service.clone(), listener.clone(), tls.clone());
            async move { open(stream, &service, &listener, tls.as_ref()).await }
        });
        accept.and_then(http)
    });
    let bound = bound.with_context(|| format!("serve {name} on {address}"))?;
    Ok(spawn_server(bound.run()))
}

async fn open(
    stream: TcpStream,
    service: &Service,
    listener: &HttpListener,
    tls: Option<&TlsAcceptor>,
) -> Result<(ClientStream, Option<SocketAddr>), DispatchError> {
    let limits = (listener.clients)(service);
    match ClientStream::open(stream, limits, &listener.proxies, tls).await {
        Ok((stream, peer)) => Ok((stream, Some(peer))),
        Err(OpenError::Io(error)) => Err(DispatchError::Io(error)),
        Err(error @ OpenError::TooMany(_)) => {
            service.metrics.record_refused_connection(listener.name);
            Err(DispatchError::Io(std::io::Error::other(error)))
        }
    }
}

/// Attaches the data that middleware needs to a connection.
fn attach_data(listener: &HttpListener, stream: &ClientStream, data: &mut Extensions) {
    listener_peers::record_local_address(stream.socket(), data);
    let socket = response_delivery::watch_connection(stream.socket(), data, listener.response_deadline);
    if let (Some(tls), Some(chain), Some(socket)) = (&listener.tls, stream.client_chain(), socket) {
        data.insert(tls.watch(chain, &socket));
    }
}

#[allow(clippy::disallowed_methods)] // the task ends with its handle
fn spawn_server(server: Server) -> ServerHandle {
    let handle = server.handle();
    drop(actix_web::rt::spawn(server));
    handle
}
