//! TLS of the listeners, with the command line as the client.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use vouchsafe_test_harness::{Instance, WAIT_TIMEOUT, program, wait_until};

use crate::commands::utf8;

/// An authority with a certificate for `localhost`, in PEM files.
struct Pki {
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    /// Certificate and key in one file.
    both: PathBuf,
}

fn path_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Writes the files of a new authority; files of the same name are replaced.
fn create_pki(directory: &TempDir, name: &str) -> Pki {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let write = |file: &str, text: &str| {
        let path = directory.path().join(format!("{name}-{file}.pem"));
        fs::write(&path, text).unwrap();
        path
    };
    Pki {
        authority: write("authority", &authority.pem()),
        certificate: write("certificate", &certificate.pem()),
        key: write("key", &key.serialize_pem()),
        both: write("both", &(certificate.pem() + &key.serialize_pem())),
    }
}

/// Runs a command that trusts this authority.
fn run(service: &Instance, trusted: &Path, settings: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("--data-dir").arg(service.data_dir()).args(arguments);
    command.env_remove("DATABASE_URL").env("SSL_CERT_FILE", trusted);
    command.envs(settings.iter().copied()).output().unwrap()
}

#[test]
fn partner_listener_serves_https_with_the_certificate_of_changed_files() {
    let directory = TempDir::new().unwrap();
    let first = create_pki(&directory, "listener");
    let trusted_first = directory.path().join("first-authority.pem");
    fs::copy(&first.authority, &trusted_first).unwrap();
    let service = Instance::start_with(&[
        ("VOUCHSAFE_TLS_CERTIFICATE_FILE", path_text(&first.certificate)),
        ("VOUCHSAFE_TLS_KEY_FILE", path_text(&first.key)),
    ]);
    let port = service.http_address().port();
    let call = |trusted: &Path, scheme: &str| {
        let url = format!("{scheme}://localhost:{port}/api/v1");
        run(
            &service,
            trusted,
            &[],
            &["call", "--url", &url, "GET", "/wallets"],
        )
    };
    let served = call(&trusted_first, "https");
    assert!(served.status.success(), "{}", utf8(&served.stderr));
    assert!(!call(&trusted_first, "http").status.success(), "plain HTTP");
    let second = create_pki(&directory, "listener");
    wait_until("the renewed certificate", WAIT_TIMEOUT, || {
        call(&second.authority, "https").status.success().then_some(())
    });
    assert!(
        !call(&trusted_first, "https").status.success(),
        "the old certificate"
    );
}

#[test]
fn operator_listener_requires_a_client_certificate() {
    let directory = TempDir::new().unwrap();
    let (listener, operators) = (
        create_pki(&directory, "listener"),
        create_pki(&directory, "operators"),
    );
    let service = Instance::start_with(&[
        (
            "VOUCHSAFE_ADMIN_TLS_CERTIFICATE_FILE",
            path_text(&listener.certificate),
        ),
        ("VOUCHSAFE_ADMIN_TLS_KEY_FILE", path_text(&listener.key)),
        (
            "VOUCHSAFE_ADMIN_TLS_CLIENT_CA_FILE",
            path_text(&operators.authority),
        ),
    ]);
    let url = format!("https://localhost:{}", service.admin_address().port());
    let list = |certificate: &str| {
        let settings = [
            ("VOUCHSAFE_ADMIN_URL", url.as_str()),
            ("VOUCHSAFE_CLIENT_CERTIFICATE_FILE", certificate),
        ];
        run(&service, &listener.authority, &settings, &["partner", "list"])
    };
    let known = list(path_text(&operators.both));
    assert!(known.status.success(), "{}", utf8(&known.stderr));
    let foreign = list(path_text(&listener.both));
    assert!(!foreign.status.success(), "{}", utf8(&foreign.stdout));
    let without_key = list(path_text(&operators.certificate));
    let message = utf8(&without_key.stderr);
    assert!(
        message.contains("no certificate with its private key"),
        "{message}"
    );
    let without = run(
        &service,
        &listener.authority,
        &[("VOUCHSAFE_ADMIN_URL", url.as_str())],
        &["partner", "list"],
    );
    assert!(!without.status.success(), "{}", utf8(&without.stdout));
}

/// An open connection to the listener at `port`, with the client certificate of `client`.
async fn connect(port: u16, trusted: &Path, client: &Pki) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(trusted).unwrap())
        .unwrap();
    let chain = vec![CertificateDer::from_pem_file(&client.certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(&client.key).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap();
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let name = "localhost".try_into().unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_connection_ends_when_its_authority_is_removed() {
    let directory = TempDir::new().unwrap();
    let listener = create_pki(&directory, "listener");
    let [staying, leaving] = ["staying", "leaving"].map(|name| create_pki(&directory, name));
    let authorities = directory.path().join("authorities.pem");
    let text_of = |pki: &Pki| fs::read_to_string(&pki.authority).unwrap();
    fs::write(&authorities, text_of(&staying) + &text_of(&leaving)).unwrap();
    let service = Instance::start_with(&[
        (
            "VOUCHSAFE_ADMIN_TLS_CERTIFICATE_FILE",
            path_text(&listener.certificate),
        ),
        ("VOUCHSAFE_ADMIN_TLS_KEY_FILE", path_text(&listener.key)),
        ("VOUCHSAFE_ADMIN_TLS_CLIENT_CA_FILE", path_text(&authorities)),
    ]);
    let port = service.admin_address().port();
    let mut ended = connect(port, &listener.authority, &leaving).await;
    // So that the idle timeout does not end it: the response to the first request has arrived, and the next
    // may follow for 75 s.
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    ended.write_all(request).await.unwrap();
    assert!(ended.read(&mut [0; 4096]).await.unwrap() > 0);
    let renewed = directory.path().join("renewed.pem");
    fs::write(&renewed, text_of(&staying)).unwrap();
    fs::rename(&renewed, &authorities).unwrap();
    let closed = async { while let Ok(1..) = ended.read(&mut [0; 4096]).await {} };
    tokio::time::timeout(WAIT_TIMEOUT, closed)
        .await
        .expect("the connection ends");
    // The idle timeout would end it, too, and not write this. The line follows the end of the connection.
    wait_until("the log to count the closed connection", WAIT_TIMEOUT, || {
        service.log().contains("connections.closed=1").then_some(())
    });
    let mut kept = connect(port, &listener.authority, &staying).await;
    kept.write_all(request).await.unwrap();
    assert!(kept.read(&mut [0; 4096]).await.unwrap() > 0);
}

#[test]
fn certificate_without_key_is_refused_at_the_start() {
    for (name, missing) in [
        ("VOUCHSAFE_TLS_CERTIFICATE_FILE", "VOUCHSAFE_TLS_KEY_FILE"),
        (
            "VOUCHSAFE_ADMIN_TLS_CLIENT_CA_FILE",
            "VOUCHSAFE_ADMIN_TLS_CERTIFICATE_FILE",
        ),
        ("VOUCHSAFE_TLS_CLIENT_CRL_FILE", "VOUCHSAFE_TLS_CERTIFICATE_FILE"),
    ] {
        let directory = TempDir::new().unwrap();
        let mut command = Command::new(program());
        command.arg("--data-dir").arg(directory.path()).arg("serve");
        let output = command
            .env_remove("DATABASE_URL")
            .env(name, "file.pem")
            .output()
            .unwrap();
        let message = utf8(&output.stderr);
        assert!(message.contains(&format!("set {missing} too")), "{message}");
    }
}
