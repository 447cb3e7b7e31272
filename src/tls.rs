//! TLS of a listener: certificate, key and the authorities of client certificates, from files that are read
//! again when they change.
//!
//! The configuration of the listener is built once and asks [`CurrentFiles`] at each handshake, so that
//! renewed files need no restart. Open connections keep their certificate; one whose client certificate is no
//! longer accepted is closed.

mod client_connections;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};
use sha2::{Digest as _, Sha256};
use vouchsafe_security::secret_file::{self, ExposedFile};
use zeroize::Zeroizing;

use self::client_connections::ClientConnections;
pub(crate) use self::client_connections::WatchedConnection;

/// The only protocol of the listeners (ALPN).
const HTTP_1_1: &[u8] = b"http/1.1";

/// Paths of PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// The listener's certificate, followed by those of the intermediate authorities.
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// Authorities of client certificates; `None`: clients need no certificate.
    pub(crate) client_ca: Option<PathBuf>,
    /// Revocation lists of these authorities; `None`: no client certificate is revoked.
    pub(crate) client_crl: Option<PathBuf>,
}

/// Why files cannot be used. No message quotes a file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum TlsFilesError {
    #[error("cannot read {path}: {reason}")]
    Unreadable { path: PathBuf, reason: String },
    #[error("{path} has no certificate in PEM format")]
    NoCertificate { path: PathBuf },
    #[error("{path} has no private key in PEM format")]
    NoKey { path: PathBuf },
    #[error("the key in {key} does not fit the certificate in {certificate}: {reason}")]
    KeyOfOther {
        certificate: PathBuf,
        key: PathBuf,
        reason: rustls::Error,
    },
    #[error("{path} cannot be used to check client certificates: {reason}")]
    ClientCa { path: PathBuf, reason: String },
    #[error("{path} has no certificate revocation list in PEM format")]
    NoRevocationList { path: PathBuf },
}

/// TLS of one listener.
#[derive(Debug)]
pub(crate) struct ListenerTls {
    files: TlsFiles,
    /// Hash of the files that were read last.
    last_read: Mutex<[u8; 32]>,
    current: Arc<CurrentFiles>,
    /// Those with a client certificate.
    connections: ClientConnections,
}

/// What reading the files again has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reload {
    Unchanged,
    /// New connections use the new files. So many open ones were closed, whose client certificate they do not
    /// accept.
    Changed {
        closed: usize,
    },
}

impl ListenerTls {
    /// Reads the files. Also returns the file of the key if other users can read it.
    ///
    /// # Errors
    /// [`TlsFilesError`].
    pub(crate) fn load(files: TlsFiles) -> Result<(Self, Option<ExposedFile>), TlsFilesError> {
        let (texts, exposed) = files.read()?;
        let current = CurrentFiles(RwLock::new(files.parse(&texts)?));
        let tls = Self {
            files,
            last_read: Mutex::new(texts.hash()),
            current: Arc::new(current),
            connections: ClientConnections::default(),
        };
        Ok((tls, exposed))
    }

    /// The configuration of the listener, which follows later reloads.
    ///
    /// # Errors
    /// [`rustls::Error`] if ring does not support the required protocol versions.
    pub(crate) fn server_config(&self) -> Result<ServerConfig, rustls::Error> {
        let builder =
            ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let resolver = Arc::clone(&self.current) as _;
        if self.files.client_ca.is_none() {
            let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
            config.alpn_protocols = vec![HTTP_1_1.to_vec()];
            return Ok(config);
        }
        let mut config = builder
            .with_client_cert_verifier(Arc::clone(&self.current) as _)
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        // A resumed session does not check the client's certificate again: it would outlive an authority that
        // was removed.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    /// Closes the connection when its client certificate is no longer accepted, until the result is dropped.
    pub(crate) fn watch(
        &self,
        chain: &[CertificateDer<'static>],
        socket: &Arc<OwnedFd>,
    ) -> WatchedConnection {
        let watched = self.connections.add(chain, socket);
        // The files may have changed after the handshake: this check follows the entry, the check of a reload
        // follows the change.
        if !self.current.accepts(chain) {
            watched.close();
        }
        watched
    }

    /// Uses the files for new connections if they have changed since the last call, and closes open ones
    /// whose client certificate they do not accept. On an error, the previous ones stay in use.
    ///
    /// # Errors
    /// [`TlsFilesError`], once for each change of the files, or each time if they cannot be read.
    pub(crate) fn reload(&self) -> Result<Reload, TlsFilesError> {
        let mut last_read = self.last_read.lock();
        // If reading fails, the next call must not find the files unchanged.
        let previous = std::mem::take(&mut *last_read);
        let (texts, _) = self.files.read()?;
        *last_read = texts.hash();
        if *last_read == previous {
            return Ok(Reload::Unchanged);
        }
        let parsed = self.files.parse(&texts)?;
        *self.current.0.write() = parsed;
        let closed = self.connections.close_unless(|chain| self.current.accepts(chain));
        Ok(Reload::Changed { closed })
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The contents of the files.
struct Texts {
    certificate: String,
    key: Zeroizing<String>,
    client_ca: Option<String>,
    client_crl: Option<String>,
}

impl Texts {
    fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let [client_ca, client_crl] = [&self.client_ca, &self.client_crl];
        let [client_ca, client_crl] = [client_ca, client_crl].map(|text| text.as_deref().unwrap_or_default());
        for text in [&self.certificate, self.key.as_str(), client_ca, client_crl] {
            hash.update(text.len().to_be_bytes());
            hash.update(text);
        }
        hash.finalize().into()
    }
}

impl TlsFiles {
    fn read(&self) -> Result<(Texts, Option<ExposedFile>), TlsFilesError> {
        let unreadable = |path: &Path, error: std::io::Error| TlsFilesError::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| unreadable(path, error));
        let (key, exposed) = secret_file::read(&self.key).map_err(|error| unreadable(&self.key, error))?;
        let texts = Texts {
            certificate: read(&self.certificate)?,
            key,
            client_ca: self.client_ca.as_deref().map(read).transpose()?,
            client_crl: self.client_crl.as_deref().map(read).transpose()?,
        };
        Ok((texts, exposed))
    }

    fn parse(&self, texts: &Texts) -> Result<Parsed, TlsFilesError> {
        let key = PrivateKeyDer::from_pem_slice(texts.key.as_bytes());
        let key = key.map_err(|_| TlsFilesError::NoKey {
            path: self.key.clone(),
        })?;
        let chain = certificates(&texts.certificate, &self.certificate)?;
        let identity = CertifiedKey::from_der(chain, key, &provider());
        let identity = identity.map_err(|reason| TlsFilesError::KeyOfOther {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            reason,
        })?;
        let clients = self.client_ca.as_deref().zip(texts.client_ca.as_deref());
        let lists = self.client_crl.as_deref().zip(texts.client_crl.as_deref());
        let lists = lists
            .map(|(path, text)| revocation_lists(text, path))
            .transpose()?;
        let clients = clients.map(|(path, text)| client_verifier(text, path, lists));
        Ok(Parsed {
            identity: Arc::new(identity),
            clients: clients.transpose()?,
        })
    }
}

/// The certificates of a file, at least one.
fn certificates(text: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFilesError> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let found = parsed.ok().filter(|found| !found.is_empty());
    found.ok_or_else(|| TlsFilesError::NoCertificate {
        path: path.to_owned(),
    })
}

/// The revocation lists of a file, at least one.
fn revocation_lists(
    text: &str,
    path: &Path,
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsFilesError> {
    let parsed: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(text.as_bytes()).collect();
    let found = parsed.ok().filter(|found| !found.is_empty());
    found.ok_or_else(|| TlsFilesError::NoRevocationList {
        path: path.to_owned(),
    })
}

fn client_verifier(
    text: &str,
    path: &Path,
    lists: Option<Vec<CertificateRevocationListDer<'static>>>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsFilesError> {
    let unusable = |reason: String| TlsFilesError::ClientCa {
        path: path.to_owned(),
        reason,
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(text, path)? {
        roots
            .add(certificate)
            .map_err(|error| unusable(error.to_string()))?;
    }
    let mut verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
    if let Some(lists) = lists {
        // A list that has expired, or that is missing for an authority, says nothing about its certificates:
        // they are refused.
        verifier = verifier.with_crls(lists).enforce_revocation_expiration();
    }
    verifier.build().map_err(|error| unusable(error.to_string()))
}

/// The parsed files.
#[derive(Debug)]
struct Parsed {
    identity: Arc<CertifiedKey>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
}

/// The files in use, which a handshake asks.
#[derive(Debug)]
struct CurrentFiles(RwLock<Parsed>);

impl CurrentFiles {
    fn clients(&self) -> Result<Arc<dyn ClientCertVerifier>, rustls::Error> {
        let current = self.0.read();
        // Not reached: only a listener with authorities asks.
        let missing = || rustls::Error::General("no authorities of client certificates".to_owned());
        current.clients.clone().ok_or_else(missing)
    }
}

impl CurrentFiles {
    /// Whether a client with this certificate, followed by those of intermediate authorities, may stay
    /// connected.
    fn accepts(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((certificate, intermediates)) = chain.split_first() else {
            return false;
        };
        let verified = self.verify_client_cert(certificate, intermediates, UnixTime::now());
        verified.is_ok()
    }
}

impl ResolvesServerCert for CurrentFiles {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.0.read();
        Some(Arc::clone(&current.identity))
    }
}

impl ClientCertVerifier for CurrentFiles {
    /// No hint which authorities are accepted: a reference to them could not outlive a reload.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.clients()?
            .verify_client_cert(certificate, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.clients()?
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.clients()?
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
