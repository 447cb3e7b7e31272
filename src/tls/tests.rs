//! Tests of TLS: handshakes in memory between rustls clients and the configuration of a listener.

use std::fs;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType, IsCa,
    KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
use rustls::client::Resumption;
use rustls::{ClientConfig, ClientConnection, ServerConnection};

use super::*;

/// New files, and no open connection that they do not accept.
const CHANGED: Reload = Reload::Changed { closed: 0 };

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "authority of a test");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for `localhost` and its key, as PEM.
fn issue(authority: &Authority) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// A certificate with this serial number, and its key.
fn issue_numbered(authority: &Authority, serial: u64) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.serial_number = Some(SerialNumber::from(serial));
    let certificate = params.signed_by(&key, authority).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// The revocation list of an authority with these serial numbers, valid until the end of this year.
fn revoke(authority: &Authority, serials: &[u64], until_year: i32) -> String {
    let revoked = serials.iter().map(|serial| RevokedCertParams {
        serial_number: SerialNumber::from(*serial),
        revocation_time: date_time_ymd(2020, 1, 1),
        reason_code: None,
        invalidity_date: None,
    });
    let list = CertificateRevocationListParams {
        this_update: date_time_ymd(2020, 1, 1),
        next_update: date_time_ymd(until_year, 12, 31),
        crl_number: SerialNumber::from(1_u64),
        issuing_distribution_point: None,
        revoked_certs: revoked.collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    list.signed_by(authority).unwrap().pem().unwrap()
}

/// An open connection of a client with this certificate, and the client's end.
fn connect(tls: &ListenerTls, identity: &(String, String)) -> (WatchedConnection, OwnedFd) {
    let (server, client) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    (tls.watch(&[der(&identity.0)], &Arc::new(server)), client)
}

fn is_closed(client: &OwnedFd) -> bool {
    recv(client, &mut [0; 1][..], RecvFlags::DONTWAIT).is_ok_and(|(_, received)| received == 0)
}

/// The files of a listener in a directory of their own.
struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn write_identity(&self, (certificate, key): &(String, String)) -> TlsFiles {
        TlsFiles {
            certificate: self.write("certificate.pem", certificate),
            key: self.write("key.pem", key),
            client_ca: None,
            client_crl: None,
        }
    }
}

fn load(files: TlsFiles) -> ListenerTls {
    ListenerTls::load(files).unwrap().0
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// A client that trusts the authority, with a certificate if one is given.
fn client_config(authority: &Authority, identity: Option<&(String, String)>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    Arc::new(match identity {
        None => {
            let mut config = builder.with_no_client_auth();
            // A resumed session shows the certificate of its first handshake.
            config.resumption = Resumption::disabled();
            config
        }
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder
                .with_client_auth_cert(vec![der(certificate)], key)
                .unwrap()
        }
    })
}

/// The certificate that the client receives, after a complete handshake.
fn handshake(
    server: &Arc<ServerConfig>,
    client: &Arc<ClientConfig>,
) -> Result<CertificateDer<'static>, rustls::Error> {
    let name = "localhost".try_into().unwrap();
    let mut client = ClientConnection::new(Arc::clone(client), name)?;
    let mut server = ServerConnection::new(Arc::clone(server))?;
    while client.is_handshaking() || server.is_handshaking() || server.wants_write() {
        let mut sent = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut sent).unwrap();
        }
        let mut rest = &sent[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets()?;
        }
        let mut answered = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut answered).unwrap();
        }
        let mut rest = &answered[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets()?;
        }
    }
    let received = client.peer_certificates().unwrap();
    Ok(received[0].clone().into_owned())
}

#[test]
fn changed_certificate_is_used_for_new_connections() {
    let (authority, files) = (authority(), Files::new());
    let (first, second) = (issue(&authority), issue(&authority));
    let tls = load(files.write_identity(&first));
    let (server, client) = (
        Arc::new(tls.server_config().unwrap()),
        client_config(&authority, None),
    );
    assert_eq!(handshake(&server, &client).unwrap(), der(&first.0));
    assert_eq!(tls.reload(), Ok(Reload::Unchanged));
    files.write_identity(&second);
    assert_eq!(tls.reload(), Ok(CHANGED));
    assert_eq!(handshake(&server, &client).unwrap(), der(&second.0));
}

#[test]
fn unusable_files_leave_the_previous_certificate_in_use() {
    let (authority, files) = (authority(), Files::new());
    let (first, second) = (issue(&authority), issue(&authority));
    let tls = load(files.write_identity(&first));
    let (server, client) = (
        Arc::new(tls.server_config().unwrap()),
        client_config(&authority, None),
    );
    // Renewal in two steps: the certificate first, its key a moment later.
    files.write("certificate.pem", &second.0);
    assert!(matches!(tls.reload(), Err(TlsFilesError::KeyOfOther { .. })));
    assert_eq!(handshake(&server, &client).unwrap(), der(&first.0));
    fs::remove_file(files.directory.path().join("key.pem")).unwrap();
    assert!(matches!(tls.reload(), Err(TlsFilesError::Unreadable { .. })));
    assert_eq!(handshake(&server, &client).unwrap(), der(&first.0));
    files.write("key.pem", &second.1);
    assert_eq!(tls.reload(), Ok(CHANGED));
    assert_eq!(handshake(&server, &client).unwrap(), der(&second.0));
}

#[test]
fn files_that_return_unchanged_are_used_again() {
    let (authority, files) = (authority(), Files::new());
    let identity = issue(&authority);
    let tls = load(files.write_identity(&identity));
    fs::remove_file(files.directory.path().join("key.pem")).unwrap();
    assert!(tls.reload().is_err());
    files.write("key.pem", &identity.1);
    assert_eq!(tls.reload(), Ok(CHANGED), "the error is over");
}

#[test]
fn client_needs_a_certificate_of_the_authority() {
    let (own, other, files) = (authority(), authority(), Files::new());
    let mut paths = files.write_identity(&issue(&own));
    paths.client_ca = Some(files.write("clients.pem", &own.pem()));
    let tls = load(paths);
    let server = Arc::new(tls.server_config().unwrap());
    let known = client_config(&own, Some(&issue(&own)));
    let foreign = client_config(&own, Some(&issue(&other)));
    assert!(handshake(&server, &known).is_ok());
    assert!(handshake(&server, &foreign).is_err());
    assert!(handshake(&server, &client_config(&own, None)).is_err());
    // A removed authority is refused at once, also for a client with an earlier session.
    files.write("clients.pem", &other.pem());
    assert_eq!(tls.reload(), Ok(CHANGED));
    assert!(handshake(&server, &known).is_err());
    assert!(handshake(&server, &foreign).is_ok());
}

#[test]
fn open_connections_end_with_their_authority_and_others_stay() {
    let (own, other, files) = (authority(), authority(), Files::new());
    let mut paths = files.write_identity(&issue(&own));
    let both = own.pem() + &other.pem();
    paths.client_ca = Some(files.write("clients.pem", &both));
    let tls = load(paths);
    let (_kept, of_own) = connect(&tls, &issue(&own));
    let (_ended, of_other) = connect(&tls, &issue(&other));
    let (left, of_left) = connect(&tls, &issue(&other));
    assert!(![&of_own, &of_other, &of_left].into_iter().any(is_closed));
    drop(left);
    files.write("clients.pem", &own.pem());
    assert_eq!(
        tls.reload(),
        Ok(Reload::Changed { closed: 1 }),
        "one has left before"
    );
    assert!(is_closed(&of_other) && !is_closed(&of_own));
    // A handshake that the previous files accepted, and that was not watched yet during the reload.
    let (_late, of_late) = connect(&tls, &issue(&other));
    assert!(is_closed(&of_late));
}

#[test]
fn revoked_certificate_gets_no_connection_and_loses_an_open_one() {
    let (own, files) = (authority(), Files::new());
    let mut paths = files.write_identity(&issue(&own));
    paths.client_ca = Some(files.write("clients.pem", &own.pem()));
    paths.client_crl = Some(files.write("revoked.pem", &revoke(&own, &[7], 2120)));
    let tls = load(paths);
    let server = Arc::new(tls.server_config().unwrap());
    let [revoked, valid] = [7, 8].map(|serial| issue_numbered(&own, serial));
    let accepts = |identity| handshake(&server, &client_config(&own, Some(identity))).is_ok();
    assert!(!accepts(&revoked) && accepts(&valid));
    let (open, client) = connect(&tls, &valid);
    files.write("revoked.pem", &revoke(&own, &[7, 8], 2120));
    assert_eq!(tls.reload(), Ok(Reload::Changed { closed: 1 }));
    assert!(is_closed(&client) && !accepts(&valid));
    drop(open);
    // An expired list says nothing about a certificate.
    files.write("revoked.pem", &revoke(&own, &[], 2021));
    assert_eq!(tls.reload(), Ok(CHANGED));
    assert!(!accepts(&valid));
    files.write("revoked.pem", &revoke(&own, &[], 2120));
    assert_eq!(tls.reload(), Ok(CHANGED));
    assert!(accepts(&valid));
}

#[test]
fn unusable_files_are_named_in_the_error() {
    let (authority, files) = (authority(), Files::new());
    let identity = issue(&authority);
    let good = files.write_identity(&identity);
    let empty = files.write("empty.pem", "");
    let missing = files.directory.path().join("missing.pem");
    let with = |change: fn(&mut TlsFiles, PathBuf), path: &PathBuf| {
        let mut paths = good.clone();
        change(&mut paths, path.clone());
        ListenerTls::load(paths).unwrap_err().to_string()
    };
    for (message, expected) in [
        (
            with(|files, path| files.certificate = path, &empty),
            "empty.pem has no certificate in PEM format",
        ),
        (
            with(|files, path| files.key = path, &empty),
            "empty.pem has no private key in PEM format",
        ),
        (
            with(|files, path| files.client_ca = Some(path), &empty),
            "empty.pem has no certificate in PEM format",
        ),
        (
            with(
                |files, path| {
                    files.client_ca = Some(files.certificate.clone());
                    files.client_crl = Some(path);
                },
                &empty,
            ),
            "empty.pem has no certificate revocation list in PEM format",
        ),
        (
            with(|files, path| files.certificate = path, &missing),
            "missing.pem: No such file",
        ),
    ] {
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("BEGIN"), "{message}");
    }
}
