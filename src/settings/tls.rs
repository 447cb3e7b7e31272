//! TLS of the listeners.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use vouchsafe_security::listener::Transport;

use crate::tls::TlsFiles;

#[derive(Debug, Clone, Args)]
pub(super) struct TlsArgs {
    /// PEM file with the certificate of the partner listener and those of intermediate authorities. The
    /// listener serves https then, and changed files are used without a restart [default: none, a proxy ends
    /// TLS].
    #[arg(long, env = "VOUCHSAFE_TLS_CERTIFICATE_FILE", value_name = "FILE")]
    tls_certificate_file: Option<PathBuf>,

    /// PEM file with the private key of that certificate.
    #[arg(long, env = "VOUCHSAFE_TLS_KEY_FILE", value_name = "FILE")]
    tls_key_file: Option<PathBuf>,

    /// PEM file with authorities: each client of the partner listener needs a certificate of one of them
    /// [default: none, clients need no certificate].
    #[arg(long, env = "VOUCHSAFE_TLS_CLIENT_CA_FILE", value_name = "FILE")]
    tls_client_ca_file: Option<PathBuf>,

    /// PEM file with revocation lists, one for each of these authorities and their intermediate ones: a
    /// client with a revoked certificate gets no connection and loses an open one [default: none].
    #[arg(long, env = "VOUCHSAFE_TLS_CLIENT_CRL_FILE", value_name = "FILE")]
    tls_client_crl_file: Option<PathBuf>,

    /// Same as VOUCHSAFE_TLS_CERTIFICATE_FILE for the operator listener.
    #[arg(long, env = "VOUCHSAFE_ADMIN_TLS_CERTIFICATE_FILE", value_name = "FILE")]
    admin_tls_certificate_file: Option<PathBuf>,

    /// Same as VOUCHSAFE_TLS_KEY_FILE for the operator listener.
    #[arg(long, env = "VOUCHSAFE_ADMIN_TLS_KEY_FILE", value_name = "FILE")]
    admin_tls_key_file: Option<PathBuf>,

    /// Same as VOUCHSAFE_TLS_CLIENT_CA_FILE for the operator listener.
    #[arg(long, env = "VOUCHSAFE_ADMIN_TLS_CLIENT_CA_FILE", value_name = "FILE")]
    admin_tls_client_ca_file: Option<PathBuf>,

    /// Same as VOUCHSAFE_TLS_CLIENT_CRL_FILE for the operator listener.
    #[arg(long, env = "VOUCHSAFE_ADMIN_TLS_CLIENT_CRL_FILE", value_name = "FILE")]
    admin_tls_client_crl_file: Option<PathBuf>,
}

impl TlsArgs {
    pub(super) const fn partner_transport(&self) -> Transport {
        transport(self.tls_certificate_file.as_ref())
    }

    pub(super) const fn operator_transport(&self) -> Transport {
        transport(self.admin_tls_certificate_file.as_ref())
    }

    pub(super) fn partner_files(&self) -> anyhow::Result<Option<TlsFiles>> {
        let settings = [
            &self.tls_certificate_file,
            &self.tls_key_file,
            &self.tls_client_ca_file,
            &self.tls_client_crl_file,
        ];
        files(settings, "VOUCHSAFE_TLS")
    }

    pub(super) fn operator_files(&self) -> anyhow::Result<Option<TlsFiles>> {
        let settings = [
            &self.admin_tls_certificate_file,
            &self.admin_tls_key_file,
            &self.admin_tls_client_ca_file,
            &self.admin_tls_client_crl_file,
        ];
        files(settings, "VOUCHSAFE_ADMIN_TLS")
    }
}

const fn transport(certificate: Option<&PathBuf>) -> Transport {
    if certificate.is_some() {
        Transport::Tls
    } else {
        Transport::Plain
    }
}

fn files(settings: [&Option<PathBuf>; 4], prefix: &str) -> anyhow::Result<Option<TlsFiles>> {
    match settings.map(Clone::clone) {
        [None, None, None, None] => Ok(None),
        [Some(_), Some(_), None, Some(_)] => {
            bail!(
                "set {prefix}_CLIENT_CA_FILE too: a revocation list is about the certificates of its authorities"
            )
        }
        [Some(certificate), Some(key), client_ca, client_crl] => Ok(Some(TlsFiles {
            certificate,
            key,
            client_ca,
            client_crl,
        })),
        [None, ..] => bail!("set {prefix}_CERTIFICATE_FILE too: TLS needs a certificate and its key"),
        [_, None, ..] => bail!("set {prefix}_KEY_FILE too: TLS needs a certificate and its key"),
    }
}
