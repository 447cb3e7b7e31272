//! Peers of a listener: in production one without TLS serves only its TLS proxies and this machine.

use std::net::IpAddr;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::rt::net::TcpStream;
use actix_web::{HttpRequest, ResponseError as _, web};
use vouchsafe_security::client_address::{ClientAddress, TrustedProxies, X_FORWARDED_FOR};
use vouchsafe_security::environment::Environment;
use vouchsafe_security::listener::Transport;
use vouchsafe_wire::error_code::Code;

use super::{refusals, trace};
use crate::api::error::ApiError;
use crate::service::Service;
use vouchsafe_telemetry::refusal_log::RefusalKey;

/// The address of this machine to which the client has connected, as data of the connection. A listener on
/// 0.0.0.0 has many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LocalAddress(IpAddr);

/// Called for each connection.
pub(crate) fn record_local_address(stream: &TcpStream, data: &mut Extensions) {
    // One that is closed already has no address, and sends no request.
    if let Ok(local) = stream.local_addr() {
        data.insert(LocalAddress(local.ip().to_canonical()));
    }
}

/// The trusted proxies of a listener, as data of its application.
#[derive(Debug, Clone)]
pub(crate) struct ListenerPeers {
    proxies: TrustedProxies,
    environment: Environment,
    transport: Transport,
}

impl ListenerPeers {
    pub(crate) const fn new(proxies: TrustedProxies, environment: Environment, transport: Transport) -> Self {
        Self {
            proxies,
            environment,
            transport,
        }
    }

    /// Whether a connection of this peer may carry requests. What a peer on this machine sends reaches no
    /// network.
    fn is_served(&self, peer: IpAddr, local: Option<LocalAddress>) -> bool {
        let peer = peer.to_canonical();
        // Only a process of this machine completes a connection from the machine's address to itself.
        let is_this_machine = peer.is_loopback() || local == Some(LocalAddress(peer));
        match (self.environment, self.transport) {
            (Environment::Sandbox, _) | (_, Transport::Tls) => true,
            (Environment::Production, Transport::Plain) => is_this_machine || self.proxies.contains(peer),
        }
    }
}

/// The client's address: of the peer, or as its trusted proxy forwards it.
pub(crate) fn client_address(request: &HttpRequest) -> Result<ClientAddress, ApiError> {
    let peers: &ListenerPeers = request.app_data().ok_or_else(ApiError::unavailable)?;
    let peer = request.peer_addr().ok_or_else(ApiError::unavailable)?.ip();
    let forwarded = request.headers().get_all(X_FORWARDED_FOR);
    Ok(peers
        .proxies
        .resolve_client(peer, forwarded.map(|value| value.as_bytes())))
}

/// A step of both listeners, before all that read the request. It reads nothing of the request: a secret in
/// it has passed a network in plain text already, and is not used.
pub(super) async fn refuse_foreign_peer<B: MessageBody>(
    request: ServiceRequest,
    next: impl AsyncFnOnce(ServiceRequest) -> Result<ServiceResponse<B>, actix_web::Error>,
) -> Result<ServiceResponse<EitherBody<B>>, actix_web::Error> {
    let peers = request.app_data::<ListenerPeers>();
    let peer = request.peer_addr().map(|peer| peer.ip());
    let local = request.conn_data::<LocalAddress>().copied();
    let is_served = peers.is_some_and(|peers| peer.is_some_and(|peer| peers.is_served(peer, local)));
    if is_served {
        return next(request).await.map(ServiceResponse::map_into_left_body);
    }
    let response = trace::respond_without_span(request.headers(), || {
        let message =
            "this address is not a trusted proxy; connect by https to the public address of the service";
        ApiError::new(Code::IpNotAllowed, message).error_response()
    });
    if let Some(service) = request.app_data::<web::Data<Service>>() {
        let key = RefusalKey {
            partner_id: None,
            code: Code::IpNotAllowed,
        };
        refusals::count(service, key, None);
        // Logs the first of each second.
        service.refusals.record(key, service.clock.monotonic());
    }
    Ok(request.into_response(response).map_into_right_body())
}

#[cfg(test)]
mod tests {
    use actix_web::body::BoxBody;
    use actix_web::middleware::{Next, from_fn};
    use actix_web::test::{TestRequest, call_service, init_service};
    use actix_web::{App, HttpResponse};

    use super::*;

    fn peers(environment: Environment) -> ListenerPeers {
        let proxies = "10.0.0.0/8, 2001:db8::/32".parse().unwrap();
        ListenerPeers::new(proxies, environment, Transport::Plain)
    }

    #[test]
    fn listener_with_tls_serves_all_peers() {
        let peers = ListenerPeers::new(TrustedProxies::default(), Environment::Production, Transport::Tls);
        assert!(peers.is_served("192.0.2.1".parse().unwrap(), None));
    }

    #[test]
    fn production_serves_proxies_and_loopback_alone() {
        let production = peers(Environment::Production);
        for (peer, is_served) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("2001:db8::1", true),
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("11.0.0.1", false),
            ("192.0.2.1", false),
            ("2001:db9::1", false),
        ] {
            let peer: IpAddr = peer.parse().unwrap();
            assert_eq!(production.is_served(peer, None), is_served, "{peer}");
            assert!(peers(Environment::Sandbox).is_served(peer, None), "{peer}");
        }
    }

    #[test]
    fn production_serves_its_own_machine_at_any_address() {
        let production = peers(Environment::Production);
        let local = Some(LocalAddress("192.0.2.5".parse().unwrap()));
        for (peer, is_served) in [
            ("192.0.2.5", true),
            ("::ffff:192.0.2.5", true),
            ("192.0.2.6", false),
        ] {
            assert_eq!(
                production.is_served(peer.parse().unwrap(), local),
                is_served,
                "{peer}"
            );
        }
    }

    #[actix_web::test]
    async fn connection_has_the_address_to_which_the_client_connected() {
        let listener = actix_web::rt::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.2", port));
        let (client, accepted) = tokio::join!(client, listener.accept());
        let (_client, (stream, _)) = (client.unwrap(), accepted.unwrap());
        let mut data = Extensions::new();
        record_local_address(&stream, &mut data);
        let expected = LocalAddress("127.0.0.2".parse().unwrap());
        assert_eq!(data.get::<LocalAddress>(), Some(&expected));
    }

    #[actix_web::test]
    async fn foreign_peer_gets_403_whatever_it_forwards() {
        let app = init_service(
            App::new()
                .app_data(peers(Environment::Production))
                .default_service(web::to(HttpResponse::NoContent))
                .wrap(from_fn(|request, next: Next<BoxBody>| {
                    refuse_foreign_peer(request, async move |request| next.call(request).await)
                })),
        )
        .await;
        for (peer, status) in [("10.1.2.3:1", 204), ("192.0.2.1:1", 403)] {
            let request = TestRequest::get()
                .uri("/healthz")
                .peer_addr(peer.parse().unwrap())
                .insert_header(("x-forwarded-for", "10.1.2.3"));
            let response = call_service(&app, request.to_request()).await;
            assert_eq!(response.status().as_u16(), status, "{peer}");
        }
        let without_peer = call_service(&app, TestRequest::get().to_request()).await;
        assert_eq!(without_peer.status().as_u16(), 403);
    }
}
