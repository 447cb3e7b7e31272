//! TLS of outgoing connections: rustls with ring.

use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};

/// Installs ring as the crypto provider of the process. Call it before building an HTTP client.
pub fn install_crypto_provider() {
    // An error means that a provider is already installed.
    drop(default_provider().install_default());
}

/// A TLS configuration without root certificates, for clients that use plain HTTP only.
///
/// # Errors
/// [`rustls::Error`] if ring does not support the required protocol versions.
pub fn config_without_roots() -> Result<ClientConfig, rustls::Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions()?;
    Ok(config
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}
