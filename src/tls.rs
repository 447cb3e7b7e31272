//! TLS of the connections that this program opens: rustls with ring, for whoever makes an HTTP client.

use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};

/// Makes ring the provider of this process. Before the first HTTP client is built.
pub(crate) fn provide() {
    // An error says that there is one already, which is as good.
    drop(default_provider().install_default());
}

/// For a client that speaks no TLS: a machine without certificates will do.
///
/// # Errors
/// ring does not offer what TLS needs.
pub(crate) fn trusting_nobody() -> Result<ClientConfig, rustls::Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions()?;
    Ok(config
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}
