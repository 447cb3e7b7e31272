//! Delivery of responses: a deadline for clients that read slowly, and the request's permit until its
//! response is written.
//!
//! actix has no write timeout. Bodies are handed to it in pieces, so a body ends when the client has read all
//! but what the buffers of actix and the kernel hold. If a large body has not ended at its deadline, or the
//! socket is full then, the connection is reset. A client that reads nothing at all is disconnected by the
//! kernel, also with a small body.

use std::cell::Cell;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::rt::net::TcpStream;
use actix_web::{HttpMessage as _, HttpRequest, web};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{Shutdown, shutdown, sockopt};
use vouchsafe_domain::ids::CredentialId;
use vouchsafe_security::concurrency_limit::{LimitReached, Permit};
use vouchsafe_wire::error_code::Code;

use super::address_limit::AddressPermit;
use crate::api::error::ApiError;
use crate::service::Service;

/// Bytes that are handed to actix at a time, which buffers up to 32 KiB and the piece that exceeds them.
const PIECE_BYTES: usize = 32 * 1024;

/// Bodies up to this size need no deadline: they fit into buffers that a connection has in any case.
const SMALL_BODY_BYTES: u64 = 16 * 1024;

/// A client's connection, as data of it.
struct Connection {
    /// A duplicate, since actix keeps the socket to itself. Dropped together with actix's.
    socket: Arc<OwnedFd>,
    deadline: Duration,
    /// The number of bodies so far.
    bodies: Cell<u64>,
}

/// Called for each connection. Returns a duplicate of its socket.
pub(crate) fn watch_connection(
    stream: &TcpStream,
    data: &mut Extensions,
    deadline: Duration,
) -> Option<Arc<OwnedFd>> {
    #[cfg(target_os = "linux")]
    log_failure(sockopt::set_tcp_user_timeout(
        stream,
        u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX),
    ));
    // The kernel would hold the last piece of a body back until the client acknowledges the one before, which
    // it delays by 40 ms.
    log_failure(sockopt::set_tcp_nodelay(stream, true));
    match fcntl_dupfd_cloexec(stream, 0) {
        Ok(socket) => {
            let socket = Arc::new(socket);
            data.insert(Rc::new(Connection {
                socket: Arc::clone(&socket),
                deadline,
                bodies: Cell::new(0),
            }));
            Some(socket)
        }
        // No free descriptor: the kernel's timeout remains.
        Err(error) => {
            tracing::warn!(error.message = %error, "connection has no deadline for responses");
            None
        }
    }
}

/// Takes one of the permits of the key's family for requests in flight, until [`deliver`] has written the
/// response.
pub(super) fn take_permit(
    request: &HttpRequest,
    service: &Service,
    family_id: CredentialId,
) -> Result<(), ApiError> {
    match service.in_flight.try_enter(family_id) {
        Ok(permit) => {
            request.extensions_mut().insert(permit);
            Ok(())
        }
        Err(LimitReached { max }) => Err(ApiError::new(
            Code::TooManyRequestsInFlight,
            format!(
                "the key has {max} requests in flight; read their responses, then send this request again"
            ),
        )),
    }
}

/// Awaits `wait` without the request's permit, and takes a permit for the response afterwards.
///
/// actix does not notice a client that leaves while its request waits, so its permit would be occupied until
/// the wait ends. The number of requests that wait at once needs a limit of its own.
pub(crate) async fn wait_without_permit<T>(
    request: &HttpRequest,
    service: &Service,
    family_id: CredentialId,
    wait: impl Future<Output = T>,
) -> T {
    drop(request.extensions_mut().remove::<Permit>());
    let waited = wait.await;
    let permit = service.in_flight.enter_after_wait(family_id);
    request.extensions_mut().insert(permit);
    waited
}

/// The outermost step of both listeners.
pub(super) async fn deliver<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: impl AsyncFnOnce(ServiceRequest) -> Result<ServiceResponse<B>, actix_web::Error>,
) -> Result<ServiceResponse<DeliveredBody>, actix_web::Error> {
    let response = next(request).await?;
    let request = response.request();
    let mut data = request.extensions_mut();
    let permits = (data.remove(), data.remove());
    drop(data);
    let ended = start_deadline(request, response.response().body().size());
    Ok(response.map_body(|_, body| DeliveredBody::new(body, permits, ended)))
}

/// Sets when the body is dropped: actix has taken all of it, or the connection has ended.
struct BodyEnd(Rc<Cell<bool>>);

impl Drop for BodyEnd {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

/// Resets the connection of the request if its response is large and not read in time.
fn start_deadline(request: &HttpRequest, size: BodySize) -> Option<BodyEnd> {
    let connection = request.conn_data::<Rc<Connection>>()?;
    let body = connection.start_body(size)?;
    let service = request.app_data::<web::Data<Service>>()?.clone();
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
        if connection.is_unread(body, has_ended.get()) {
            connection.reset();
            service.metrics.record_unread_response();
        }
    }));
    Some(end)
}

impl Connection {
    /// Counts a body that starts. Returns its number if it is large.
    fn start_body(&self, size: BodySize) -> Option<u64> {
        let body = self.bodies.get() + 1;
        self.bodies.set(body);
        matches!(size, BodySize::Sized(size) if size > SMALL_BODY_BYTES).then_some(body)
    }

    /// Whether the client has not read a body. If a later one has started, the client has read this one: a
    /// full socket is then that of the later one, which has a deadline of its own, is small, or is a stream.
    fn is_unread(&self, body: u64, has_ended: bool) -> bool {
        !has_ended || self.bodies.get() == body && !self.is_writable()
    }

    fn is_writable(&self) -> bool {
        let mut sockets = [PollFd::new(&self.socket, PollFlags::OUT)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut sockets, Some(&at_once)).is_ok() && sockets[0].revents().contains(PollFlags::OUT)
    }

    /// Closes the connection; the kernel discards what it has not sent. actix notices that the socket is
    /// closed.
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

/// Permits of the key's family and of the client address.
type Permits = (Option<Permit>, Option<AddressPermit>);

/// A response body that is handed over in pieces.
pub(crate) struct DeliveredBody {
    rest: Rest,
    _permits: Permits,
    _end: Option<BodyEnd>,
}

enum Rest {
    Bytes(Bytes),
    /// A stream, or no body.
    Other(BoxBody),
}

impl DeliveredBody {
    fn new<B: MessageBody + 'static>(body: B, permits: Permits, end: Option<BodyEnd>) -> Self {
        let rest = if matches!(body.size(), BodySize::Sized(1..)) {
            body.try_into_bytes()
                .map_or_else(|body| Rest::Other(BoxBody::new(body)), Rest::Bytes)
        } else {
            Rest::Other(BoxBody::new(body))
        };
        Self {
            rest,
            _permits: permits,
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use actix_web::middleware::{Next, from_fn};
    use actix_web::test::{self, TestRequest};
    use actix_web::{App, HttpResponse};
    use vouchsafe_security::concurrency_limit::ConcurrencyLimit;

    use super::*;

    /// A connection whose client reads nothing, and the client.
    fn full_connection() -> (Connection, UnixStream) {
        let (mut socket, client) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 4096]).is_ok() {}
        let connection = Connection {
            socket: Arc::new(socket.into()),
            deadline: Duration::ZERO,
            bodies: Cell::new(0),
        };
        (connection, client)
    }

    #[test]
    fn full_socket_of_a_later_body_does_not_count_against_an_earlier_one() {
        for later in [
            BodySize::Sized(1),
            BodySize::Stream,
            BodySize::Sized(SMALL_BODY_BYTES + 1),
        ] {
            let (connection, _client) = full_connection();
            let large = connection
                .start_body(BodySize::Sized(SMALL_BODY_BYTES + 1))
                .unwrap();
            assert!(connection.is_unread(large, true), "its end is in the full socket");
            connection.start_body(later);
            assert!(!connection.is_unread(large, true), "{later:?}");
            assert!(connection.is_unread(large, false), "{later:?}");
        }
    }

    #[test]
    fn small_body_and_stream_have_no_deadline() {
        let (connection, _client) = full_connection();
        assert_eq!(connection.start_body(BodySize::Sized(SMALL_BODY_BYTES)), None);
        assert_eq!(connection.start_body(BodySize::Stream), None);
    }

    #[actix_web::test]
    async fn connection_has_the_deadline_as_its_timeout_in_the_kernel_and_sends_at_once() {
        let listener = actix_web::rt::net::TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(client, listener.accept());
        let (_client, (stream, _)) = (client.unwrap(), accepted.unwrap());
        let mut data = Extensions::new();
        assert!(watch_connection(&stream, &mut data, Duration::from_secs(7)).is_some());
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 7_000);
        assert!(sockopt::tcp_nodelay(&stream).unwrap());
        let connection: &Rc<Connection> = data.get().unwrap();
        assert_eq!(connection.deadline, Duration::from_secs(7));
    }

    #[actix_web::test]
    async fn request_is_in_flight_until_its_body_is_dropped() {
        let family_id = CredentialId::from_uuid(uuid::Uuid::nil());
        let limit = Arc::new(ConcurrencyLimit::new(1));
        let of_handler = Arc::clone(&limit);
        let handler = move |request: HttpRequest| {
            let permit = of_handler.try_enter(family_id).unwrap();
            request.extensions_mut().insert(permit);
            async { HttpResponse::Ok().body("codes") }
        };
        let app = App::new()
            .wrap(from_fn(|request, next: Next<BoxBody>| {
                deliver(request, async move |request| next.call(request).await)
            }))
            .default_service(web::to(handler));
        let app = test::init_service(app).await;
        let response = test::call_service(&app, TestRequest::get().to_request()).await;
        assert!(limit.try_enter(family_id).is_err(), "its client has not read it");
        drop(response);
        assert!(limit.try_enter(family_id).is_ok());
    }

    /// Otherwise actix would hold the whole body, and its request would no longer be in flight.
    #[actix_web::test]
    async fn large_body_is_handed_over_in_pieces() {
        let mut body = DeliveredBody::new(vec![0_u8; 2 * PIECE_BYTES + 1], (None, None), None);
        let mut pieces = Vec::new();
        while let Some(piece) = poll_fn(|context| Pin::new(&mut body).poll_next(context)).await {
            pieces.push(piece.unwrap().len());
        }
        assert_eq!(pieces, [PIECE_BYTES, PIECE_BYTES, 1]);
    }
}
