//! How does the program speak to other servers? Straight to the one that is meant: no redirect is followed, and no proxy
//! stands between, since what it sends holds secrets.

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use crate::tls;

/// A client for this URL, to be given its timeouts.
///
/// # Errors
/// [`rustls::Error`] when TLS cannot be had.
pub(crate) fn client_for(url: &str) -> Result<ClientBuilder, rustls::Error> {
    tls::provide();
    let builder = Client::builder().redirect(Policy::none()).no_proxy();
    // Where no TLS is spoken, a machine without certificates will do.
    Ok(if url.starts_with("https:") {
        builder
    } else {
        builder.tls_backend_preconfigured(tls::trusting_nobody()?)
    })
}
