//! Client address behind trusted proxies (`X-Forwarded-For`).
//!
//! The client is the peer, unless the peer is a trusted proxy. In that case the client is the rightmost hop
//! of `X-Forwarded-For` that is not a trusted proxy: each proxy appends the address that called it. Hops to
//! the left of it may be forged and are ignored.
//!
//! | `X-Forwarded-For`, from a trusted peer | Client |
//! |---|---|
//! | absent, or trusted proxies only | the peer |
//! | `…, 198.51.100.1` | 198.51.100.1 |
//! | `…, 198.51.100.1, <trusted>` | 198.51.100.1 |
//! | `…, <not an address>`, or the same before trusted ones | unknown: on no allowlist |
//!
//! Repeated headers form one list in wire order. IPv4-mapped IPv6 addresses count as IPv4. A hop may have a
//! port.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use vouchsafe_domain::allowlist::{Allowlist, InvalidAllowlist};

pub const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// Networks of the trusted proxies, empty by default. As text: networks separated by commas.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedProxies(Allowlist);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAddress {
    /// The address in canonical form.
    Known(IpAddr),
    /// The proxy forwarded something that is not an address.
    Unreadable { proxy: IpAddr },
}

impl ClientAddress {
    /// The client's address, if it is known.
    #[must_use]
    pub const fn known_ip(self) -> Option<IpAddr> {
        match self {
            Self::Known(address) => Some(address),
            Self::Unreadable { .. } => None,
        }
    }

    /// The address to which failures are attributed: the proxy's if the client's is unreadable.
    #[must_use]
    pub const fn accountable_ip(self) -> IpAddr {
        match self {
            Self::Known(address) | Self::Unreadable { proxy: address } => address,
        }
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(address) => address.fmt(f),
            Self::Unreadable { .. } => f.write_str("(unreadable in X-Forwarded-For)"),
        }
    }
}

impl TrustedProxies {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.networks().is_empty()
    }

    /// Whether this address, in canonical form, is a trusted proxy.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(address)
    }

    /// Returns the client behind `peer`; `forwarded` are the values of `X-Forwarded-For` in wire order.
    pub fn resolve_client<'a>(
        &self,
        peer: IpAddr,
        forwarded: impl IntoIterator<Item = &'a [u8]>,
    ) -> ClientAddress {
        let peer = peer.to_canonical();
        if !self.0.contains(peer) {
            return ClientAddress::Known(peer);
        }
        let hops: Vec<&[u8]> = forwarded
            .into_iter()
            .flat_map(|value| value.split(|&byte| byte == b','))
            .collect();
        for hop in hops.into_iter().rev() {
            match parse_hop(hop) {
                None => return ClientAddress::Unreadable { proxy: peer },
                Some(address) if self.0.contains(address) => {}
                Some(address) => return ClientAddress::Known(address),
            }
        }
        ClientAddress::Known(peer)
    }
}

impl FromStr for TrustedProxies {
    type Err = InvalidAllowlist;

    fn from_str(text: &str) -> Result<Self, InvalidAllowlist> {
        parse_networks(text).map(Self)
    }
}

/// Parses addresses and networks that are separated by commas.
///
/// # Errors
/// [`InvalidAllowlist`].
pub fn parse_networks(text: &str) -> Result<Allowlist, InvalidAllowlist> {
    if text.trim().is_empty() {
        return Ok(Allowlist::default());
    }
    let entries: Vec<&str> = text.split(',').map(str::trim).collect();
    Allowlist::parse(&entries)
}

/// `203.0.113.7`, `203.0.113.7:1234`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:1234`, surrounded by
/// blanks.
fn parse_hop(hop: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(hop).ok()?.trim_matches([' ', '\t']);
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .filter(|inside| inside.contains(':'))
        .unwrap_or(text);
    let address = bare.parse::<IpAddr>().ok();
    let address = address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROXIES: &str = "10.0.0.0/8, 2001:db8:ffff::/48,192.0.2.1";
    const UNREADABLE: &str = "(unreadable in X-Forwarded-For)";

    fn resolved(proxies: &str, peer: &str, forwarded: &[&str]) -> String {
        let proxies: TrustedProxies = proxies.parse().unwrap();
        let forwarded = forwarded.iter().map(|value| value.as_bytes());
        proxies
            .resolve_client(peer.parse().unwrap(), forwarded)
            .to_string()
    }

    #[test]
    fn client_is_the_rightmost_untrusted_hop() {
        for (peer, forwarded, client) in [
            // The header of an untrusted peer is ignored.
            ("203.0.113.7", &[][..], "203.0.113.7"),
            ("203.0.113.7", &["198.51.100.1"], "203.0.113.7"),
            ("203.0.113.7", &["10.0.0.1"], "203.0.113.7"),
            ("::ffff:203.0.113.7", &["198.51.100.1"], "203.0.113.7"),
            // A trusted proxy's own hop counts, forged hops before it do not.
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["203.0.113.7, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["10.9.9.9, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1, 10.0.0.2"], "198.51.100.1"),
            (
                "10.0.0.1",
                &["203.0.113.7, 198.51.100.1, 10.0.0.2, 192.0.2.1"],
                "198.51.100.1",
            ),
            ("10.0.0.1", &["<script>, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &[",,, 198.51.100.1"], "198.51.100.1"),
            ("192.0.2.1", &["198.51.100.1"], "198.51.100.1"),
            ("192.0.2.2", &["198.51.100.1"], "192.0.2.2"),
            // Repeated headers are one list.
            ("10.0.0.1", &["203.0.113.7", "198.51.100.1"], "198.51.100.1"),
            (
                "10.0.0.1",
                &["203.0.113.7, 198.51.100.1", "10.0.0.2"],
                "198.51.100.1",
            ),
            // Trusted proxies only.
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["10.0.0.3", "10.0.0.2"], "10.0.0.1"),
            // Address formats.
            ("10.0.0.1", &["  198.51.100.1\t"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1:443"], "198.51.100.1"),
            ("10.0.0.1", &["::ffff:198.51.100.1"], "198.51.100.1"),
            (
                "::ffff:10.0.0.1",
                &["198.51.100.1, ::ffff:10.0.0.2"],
                "198.51.100.1",
            ),
            ("10.0.0.1", &["2001:db8::1"], "2001:db8::1"),
            ("10.0.0.1", &["[2001:db8::1]"], "2001:db8::1"),
            ("10.0.0.1", &["[2001:db8::1]:443"], "2001:db8::1"),
            (
                "2001:db8:ffff::1",
                &["2001:db8::1, 2001:db8:ffff::2"],
                "2001:db8::1",
            ),
            // Unreadable hops.
            ("10.0.0.1", &[""], UNREADABLE),
            ("10.0.0.1", &["198.51.100.1,"], UNREADABLE),
            ("10.0.0.1", &["198.51.100.1, unknown"], UNREADABLE),
            ("10.0.0.1", &["198.51.100.1, unknown, 10.0.0.2"], UNREADABLE),
            ("10.0.0.1", &["198.51.100.1", ""], UNREADABLE),
            ("10.0.0.1", &["198.51.100.1 10.0.0.2"], UNREADABLE),
            ("10.0.0.1", &["198.51.100.01"], UNREADABLE),
            ("10.0.0.1", &["198.51.100.1:99999"], UNREADABLE),
            ("10.0.0.1", &["[198.51.100.1]"], UNREADABLE),
            ("10.0.0.1", &["[2001:db8::1"], UNREADABLE),
            ("10.0.0.1", &["fe80::1%eth0"], UNREADABLE),
            ("10.0.0.1", &["0x7f000001"], UNREADABLE),
            ("10.0.0.1", &["198.51.100.0/24"], UNREADABLE),
            ("10.0.0.1", &["for=198.51.100.1"], UNREADABLE),
        ] {
            assert_eq!(resolved(PROXIES, peer, forwarded), client, "{peer} {forwarded:?}");
        }
    }

    #[test]
    fn hop_of_invalid_utf8_is_unreadable() {
        let proxies: TrustedProxies = PROXIES.parse().unwrap();
        let peer = "10.0.0.1".parse().unwrap();
        let address = proxies.resolve_client(peer, [&b"\xff\xfe"[..]]);
        assert_eq!(address, ClientAddress::Unreadable { proxy: peer });
        assert_eq!((address.known_ip(), address.accountable_ip()), (None, peer));
    }

    #[test]
    fn trusted_proxies_unset_trust_no_peer() {
        for (text, empty) in [("", true), ("  ", true), ("10.0.0.1", false), (PROXIES, false)] {
            assert_eq!(
                text.parse::<TrustedProxies>().map(|list| list.is_empty()),
                Ok(empty)
            );
        }
        for (text, position) in [
            ("10.0.0.1,", 1),
            (",10.0.0.1", 0),
            ("10.0.0.1,proxy", 1),
            ("10.0.0.1 10.0.0.2", 0),
        ] {
            let result = text.parse::<TrustedProxies>();
            assert_eq!(result, Err(InvalidAllowlist::Entry { position }), "{text}");
        }
        assert_eq!(resolved("", "10.0.0.1", &["198.51.100.1"]), "10.0.0.1");
    }

    proptest! {
        #[test]
        fn hops_forged_by_the_client_are_ignored(
            forged in prop::collection::vec("[ ,a-f0-9.:\\[\\]]{0,40}|10\\.0\\.0\\.[0-9]{1,3}", 0..5),
            behind in prop::collection::vec(0_u8..=255, 0..4),
        ) {
            // The outermost proxy appends the client's address, each further proxy its caller's.
            let mut chain = forged;
            chain.push("198.51.100.1".to_owned());
            chain.extend(behind.iter().map(|last| format!("10.0.0.{last}")));
            let joined = chain.join(", ");
            prop_assert_eq!(resolved(PROXIES, "10.0.0.1", &[&joined]), "198.51.100.1");
            let separate: Vec<&str> = chain.iter().map(String::as_str).collect();
            prop_assert_eq!(resolved(PROXIES, "10.0.0.1", &separate), "198.51.100.1");
            prop_assert_eq!(resolved(PROXIES, "203.0.113.7", &separate), "203.0.113.7");
        }

        #[test]
        fn header_of_any_bytes_does_not_panic(value in prop::collection::vec(any::<u8>(), 0..60)) {
            let proxies: TrustedProxies = PROXIES.parse().unwrap();
            let peer: IpAddr = "10.0.0.1".parse().unwrap();
            match proxies.resolve_client(peer, [&value[..]]) {
                ClientAddress::Known(address) => {
                    let last = String::from_utf8_lossy(&value);
                    prop_assert!(address == peer || last.contains('.') || last.contains(':'));
                }
                ClientAddress::Unreadable { proxy } => prop_assert_eq!(proxy, peer),
            }
        }
    }
}
