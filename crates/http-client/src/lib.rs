//! HTTP client builder for requests to vendors and other servers: no redirects and no proxy, because requests
//! contain secrets. SSRF guard for URLs that operators and partners set.

mod address;
pub mod resolver;
pub mod tls;
pub mod url_policy;

use std::error::Error;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

/// A client builder for this URL. The caller sets the timeouts.
///
/// # Errors
/// [`rustls::Error`] if TLS cannot be configured.
pub fn client_builder(url: &str) -> Result<ClientBuilder, rustls::Error> {
    tls::install_crypto_provider();
    let builder = Client::builder().redirect(Policy::none()).no_proxy();
    // Plain HTTP must also work on a machine without root certificates.
    Ok(if url.starts_with("https:") {
        builder
    } else {
        builder.tls_backend_preconfigured(tls::config_without_roots()?)
    })
}

/// The causes of an error, the innermost last.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

/// The innermost cause of an error. The message of [`reqwest::Error`] itself has little more than the URL.
#[must_use]
pub fn root_cause(error: &reqwest::Error) -> String {
    causes(error).last().unwrap_or(error).to_string()
}
