//! Delivery of responses: a deadline for clients that read slowly, and the request's place in flight until its response is written.
//!
//! actix has no write timeout. Bodies are handed to it in pieces, so a body ends when the client has read all but what the buffers of
//! actix and the kernel hold. If a large body has not ended at its deadline, or the socket is full then, the connection is reset.
//! A client that reads nothing at all is disconnected by the kernel, also with a small body.

use std::any::Any;
use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::rt::net::TcpStream;
use actix_web::{HttpMessage as _, HttpRequest, web};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{Shutdown, shutdown, sockopt};
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_security::in_flight::{InFlightRequest, TooManyInFlight};
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;
use crate::service::Service;

/// Bytes that are handed to actix at a time, which buffers up to 32 KiB and the piece that exceeds them.
const PIECE_BYTES: usize = 32 * 1024;

/// Bodies up to this size need no deadline: they fit into buffers that a connection has in any case.
const SMALL_BODY_BYTES: u64 = 16 * 1024;

/// A client's connection, as data of it.
struct Connection {
    /// A duplicate, since actix keeps the socket to itself. Dropped together with actix's.
    socket: OwnedFd,
    deadline: Duration,
    /// The number of large bodies so far.
    bodies: Cell<u64>,
}

/// Called by `on_connect` of both listeners.
pub(crate) fn watch_connection(connection: &dyn Any, data: &mut Extensions, deadline: Duration) {
    let tls = || {
        connection
            .downcast_ref()
            .map(|tls: &TlsStream<TcpStream>| tls.get_ref().0)
    };
    let Some(stream) = connection.downcast_ref::<TcpStream>().or_else(tls) else {
        return;
    };
    #[cfg(target_os = "linux")]
    log_failure(sockopt::set_tcp_user_timeout(
        stream,
        u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX),
    ));
    match fcntl_dupfd_cloexec(stream, 0) {
        Ok(socket) => {
            data.insert(Rc::new(Connection {
                socket,
                deadline,
                bodies: Cell::new(0),
            }));
        }
        // No free descriptor: the kernel's timeout remains.
        Err(error) => log_failure(Err(error)),
    }
}

/// Takes one of the places of the key's family for requests in flight, until [`deliver`] has written the response.
pub(super) fn take_place(
    request: &HttpRequest,
    service: &Service,
    family_id: CredentialId,
) -> Result<(), ApiError> {
    match service.in_flight.try_enter(family_id) {
        Ok(place) => {
            request.extensions_mut().insert(place);
            Ok(())
        }
        Err(TooManyInFlight { max }) => Err(ApiError::new(
            Code::TooManyRequestsInFlight,
            format!(
                "the key has {max} requests in flight; read their responses, then send this request again"
            ),
        )),
    }
}

/// Outermost middleware of both listeners.
pub(crate) async fn deliver<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<DeliveredBody>, actix_web::Error> {
    let response = next.call(request).await?;
    let request = response.request();
    let place = request.extensions_mut().remove::<InFlightRequest>();
    let is_large =
        matches!(response.response().body().size(), BodySize::Sized(size) if size > SMALL_BODY_BYTES);
    let ended = is_large.then(|| start_deadline(request)).flatten();
    Ok(response.map_body(|_, body| DeliveredBody::new(body, place, ended)))
}

/// Sets when the body is dropped: actix has taken all of it, or the connection has ended.
struct BodyEnd(Rc<Cell<bool>>);

impl Drop for BodyEnd {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

/// Resets the connection of the request if its response is not read in time.
fn start_deadline(request: &HttpRequest) -> Option<BodyEnd> {
    let connection = request.conn_data::<Rc<Connection>>()?;
    let service = request.app_data::<web::Data<Service>>()?.clone();
    let body = connection.bodies.get() + 1;
    connection.bodies.set(body);
    let has_ended = Rc::new(Cell::new(false));
    let (connection, deadline) = (Rc::downgrade(connection), connection.deadline);
    let end = BodyEnd(Rc::clone(&has_ended));
    #[allow(clippy::disallowed_methods)]
    // ends at the deadline, and holds neither connection nor body until then
    drop(actix_web::rt::spawn(async move {
        tokio::time::sleep(deadline).await;
        let Some(connection) = connection.upgrade() else {
            return;
        };
        // The socket of a client that reads a later response now may be full; that response has a deadline of its own.
        let is_latest = connection.bodies.get() == body;
        if !has_ended.get() || is_latest && !connection.is_writable() {
            connection.reset();
            service.metrics.record_unread_response();
        }
    }));
    Some(end)
}

impl Connection {
    fn is_writable(&self) -> bool {
        let mut sockets = [PollFd::new(&self.socket, PollFlags::OUT)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut sockets, Some(&at_once)).is_ok() && sockets[0].revents().contains(PollFlags::OUT)
    }

    /// Closes the connection; the kernel discards what it has not sent. actix notices that the socket is closed.
    fn reset(&self) {
        log_failure(sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO)));
        log_failure(shutdown(&self.socket, Shutdown::Both));
    }
}

/// A call on the socket fails mostly because the client has closed the connection.
fn log_failure(result: Result<(), Errno>) {
    if let Err(error) = result {
        tracing::debug!(error.message = %error, "cannot configure a connection");
    }
}

/// A response body that is handed over in pieces.
pub(crate) struct DeliveredBody {
    rest: Rest,
    _place: Option<InFlightRequest>,
    _end: Option<BodyEnd>,
}

enum Rest {
    Bytes(Bytes),
    /// A stream, or no body.
    Other(BoxBody),
}

impl DeliveredBody {
    fn new<B: MessageBody + 'static>(body: B, place: Option<InFlightRequest>, end: Option<BodyEnd>) -> Self {
        let has_bytes = matches!(body.size(), BodySize::Sized(1..));
        let body = BoxBody::new(body);
        let rest = if has_bytes {
            body.try_into_bytes().map_or_else(Rest::Other, Rest::Bytes)
        } else {
            Rest::Other(body)
        };
        Self {
            rest,
            _place: place,
            _end: end,
        }
    }
}

impl MessageBody for DeliveredBody {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        match &self.rest {
            Rest::Bytes(bytes) => bytes.size(),
            Rest::Other(body) => body.size(),
        }
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        match &mut self.rest {
            Rest::Bytes(bytes) if bytes.is_empty() => Poll::Ready(None),
            Rest::Bytes(bytes) => Poll::Ready(Some(Ok(bytes.split_to(bytes.len().min(PIECE_BYTES))))),
            Rest::Other(body) => Pin::new(body).poll_next(context),
        }
    }
}
