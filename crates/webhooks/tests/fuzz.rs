//! Fuzz target of this crate: the URLs that partners register.

#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::net::IpAddr;

use reqwest::Url;
use vouchsafe_webhooks::{LoopbackTargets, UrlPolicy};

#[test]
fn webhook_urls() {
    const TOKENS: &[&str] = &[
        "https://",
        "http://",
        "127.0.0.1",
        "0x7f.1",
        "[::1]",
        "[::ffff:10.0.0.1]",
        "169.254.169.254",
        "@",
        ":",
        "#",
        "/",
        "\\",
        "%2e",
        "localhost",
        "。",
        "\t",
    ];
    vouchsafe_fuzz::run(env!("CARGO_MANIFEST_DIR"), "webhook_urls", TOKENS, |input| {
        let text = String::from_utf8_lossy(input);
        let policy = UrlPolicy::new(LoopbackTargets::Refused, &[]);
        let Ok(url) = policy.parse(&text) else { return };
        assert_eq!(url.scheme(), "https");
        assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
        // What is stored is read again at each attempt.
        assert_eq!(Url::parse(url.as_str()).unwrap(), url);
        let host = url.host_str().unwrap().trim_matches(['[', ']']);
        if let Ok(address) = host.parse::<IpAddr>() {
            let address = address.to_canonical();
            let is_private = match address {
                IpAddr::V4(v4) => {
                    v4.is_private() || v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0
                }
                IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local(),
            };
            let is_forbidden =
                is_private || address.is_loopback() || address.is_unspecified() || address.is_multicast();
            assert!(!is_forbidden, "{url}");
        }
    });
}
