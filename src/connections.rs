//! Connections of clients: admitted by their address before anything is read, then opened, with TLS if the
//! listener has it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::rt::net::TcpStream;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use vouchsafe_security::auth_failures::ClientPrefix;
use vouchsafe_security::client_address::TrustedProxies;
use vouchsafe_security::concurrency_limit::{ConcurrencyLimit, LimitReached, Permit};

/// For the handshake of TLS, which a client could leave open.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a client address may hold at a listener at a time; an IPv6 client is its /64.
#[derive(Debug)]
pub(crate) struct ClientLimits {
    pub(crate) connections: ConcurrencyLimit<ClientPrefix>,
    pub(crate) requests: ConcurrencyLimit<ClientPrefix>,
}

impl ClientLimits {
    pub(crate) fn new(max_connections: usize, max_requests: usize) -> Self {
        Self {
            connections: ConcurrencyLimit::new(max_connections),
            requests: ConcurrencyLimit::new(max_requests),
        }
    }

    pub(crate) fn evict_idle(&self) {
        self.connections.evict_idle();
        self.requests.evict_idle();
    }

    /// Admits a connection of a peer. A trusted proxy connects for all clients: only the limit of the
    /// listener applies to it.
    fn admit(&self, peer: SocketAddr, proxies: &TrustedProxies) -> Result<Option<Permit>, LimitReached> {
        let address = peer.ip().to_canonical();
        if proxies.contains(address) {
            return Ok(None);
        }
        self.connections.try_enter(ClientPrefix::of(address)).map(Some)
    }
}

/// Why a connection was not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("the address has {} connections", .0.max)]
    TooMany(LimitReached),
    /// The client has left, or failed the handshake.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An open connection, with the permit of its address.
pub(crate) struct ClientStream {
    transport: TransportStream,
    _permit: Option<Permit>,
}

enum TransportStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl ClientStream {
    /// Opens an accepted connection and returns it with the address of its peer.
    ///
    /// # Errors
    /// [`OpenError`].
    pub(crate) async fn open(
        stream: TcpStream,
        limits: &ClientLimits,
        proxies: &TrustedProxies,
        tls: Option<&TlsAcceptor>,
    ) -> Result<(Self, SocketAddr), OpenError> {
        let peer = stream.peer_addr()?;
        let permit = limits.admit(peer, proxies).map_err(OpenError::TooMany)?;
        let transport = match tls {
            None => TransportStream::Plain(stream),
            Some(tls) => {
                let opened = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await;
                TransportStream::Tls(Box::new(opened.map_err(io::Error::from)??))
            }
        };
        let stream = Self {
            transport,
            _permit: permit,
        };
        Ok((stream, peer))
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match &self.transport {
            TransportStream::Plain(stream) => stream,
            TransportStream::Tls(stream) => stream.get_ref().0,
        }
    }

    /// The certificate of the client, followed by those of intermediate authorities; `None` without one.
    pub(crate) fn client_chain(&self) -> Option<&[CertificateDer<'static>]> {
        match &self.transport {
            TransportStream::Plain(_) => None,
            TransportStream::Tls(stream) => stream.get_ref().1.peer_certificates(),
        }
    }
}

/// The stream that sends and receives.
macro_rules! inner {
    ($stream:expr, $inner:ident => $result:expr) => {
        match &mut $stream.get_mut().transport {
            TransportStream::Plain($inner) => {
                let $inner = Pin::new($inner);
                $result
            }
            TransportStream::Tls($inner) => {
                let $inner = Pin::new(&mut **$inner);
                $result
            }
        }
    };
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        inner!(self, stream => stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        inner!(self, stream => stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, stream => stream.poll_shutdown(context))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        inner!(self, stream => stream.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            TransportStream::Plain(stream) => stream.is_write_vectored(),
            TransportStream::Tls(stream) => stream.is_write_vectored(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_has_so_many_connections_and_a_proxy_any_number() {
        let limits = ClientLimits::new(2, 1);
        let proxies = "10.0.0.0/8".parse().unwrap();
        let admit = |peer: &str| limits.admit(peer.parse().unwrap(), &proxies);
        let first = admit("203.0.113.7:1").unwrap();
        let _second = admit("[::ffff:203.0.113.7]:2").unwrap();
        assert_eq!(admit("203.0.113.7:3").unwrap_err(), LimitReached { max: 2 });
        let _other = admit("203.0.113.8:1").unwrap();
        for port in 1..10 {
            assert!(admit(&format!("10.0.0.1:{port}")).unwrap().is_none());
        }
        let network: Vec<_> = (1..=2)
            .map(|host| admit(&format!("[2001:db8::{host}]:1")).unwrap())
            .collect();
        assert!(admit("[2001:db8::3]:1").is_err(), "the same /64");
        drop((first, network));
        assert!(admit("203.0.113.7:4").is_ok() && admit("[2001:db8::3]:1").is_ok());
    }
}
