//! From which address does a request come?
//!
//! The rule: from its peer, unless the peer is a proxy that the operator trusts. Then `X-Forwarded-For` is read from its
//! end: each trusted proxy has added the address that it was called from, so the first one from the right that is no
//! trusted proxy is the client. Whatever stands to the left of it the client may have made up, and nobody reads it.
//!
//! | `X-Forwarded-For`, from a trusted peer | The client is |
//! |---|---|
//! | absent, or trusted proxies alone | the peer |
//! | `…, 198.51.100.1` | 198.51.100.1 |
//! | `…, 198.51.100.1, <trusted>` | 198.51.100.1 |
//! | `…, <no address>`, or the same before trusted ones | nobody knows: on no allowlist |
//!
//! A header that comes several times is one list in the order of the wire. IPv4-mapped IPv6 is IPv4. A hop may carry a
//! port, as some proxies add it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use super::allowlist::{Allowlist, InvalidAllowlist};

/// Where proxies say whom they speak for.
pub const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// The networks of the proxies that are believed; none is the default. As text: networks with commas between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedProxies(Allowlist);

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAddress {
    /// From here, in canonical form.
    Known(IpAddr),
    /// The proxy at this address forwarded what is no address.
    Unreadable {
        proxy: IpAddr,
    },
}

impl ClientAddress {
    /// The address, where there is one to put on a list.
    #[must_use]
    pub const fn known_ip(self) -> Option<IpAddr> {
        match self {
            Self::Known(address) => Some(address),
            Self::Unreadable { .. } => None,
        }
    }

    /// The address that answers for the request: the proxy's, where the client's cannot be read.
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
    /// Whether no proxy is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.networks().is_empty()
    }

    /// Finds the client behind a peer; `forwarded` are the values of `X-Forwarded-For` in the order of the wire.
    pub fn resolve_client<'a>(&self, peer: IpAddr, forwarded: impl IntoIterator<Item = &'a [u8]>) -> ClientAddress {
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
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let entries: Vec<&str> = text.split(',').map(str::trim).collect();
        Allowlist::parse(&entries).map(Self)
    }
}

/// `203.0.113.7`, `203.0.113.7:1234`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:1234`, with blanks round it.
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

    fn found(proxies: &str, peer: &str, forwarded: &[&str]) -> String {
        let proxies: TrustedProxies = proxies.parse().unwrap();
        let forwarded = forwarded.iter().map(|value| value.as_bytes());
        proxies.resolve_client(peer.parse().unwrap(), forwarded).to_string()
    }

    #[test]
    fn the_client_is_the_rightmost_hop_that_is_no_trusted_proxy() {
        for (peer, forwarded, client) in [
            // Who is no proxy of ours says what it likes.
            ("203.0.113.7", &[][..], "203.0.113.7"),
            ("203.0.113.7", &["198.51.100.1"], "203.0.113.7"),
            ("203.0.113.7", &["10.0.0.1"], "203.0.113.7"),
            ("::ffff:203.0.113.7", &["198.51.100.1"], "203.0.113.7"),
            // A proxy is believed; what its client made up is not.
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
            // Nobody but proxies.
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["10.0.0.3", "10.0.0.2"], "10.0.0.1"),
            // Forms of an address.
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
            // What nobody can read is nobody.
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
            assert_eq!(found(PROXIES, peer, forwarded), client, "{peer} {forwarded:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_no_address() {
        let proxies: TrustedProxies = PROXIES.parse().unwrap();
        let peer = "10.0.0.1".parse().unwrap();
        let address = proxies.resolve_client(peer, [&b"\xff\xfe"[..]]);
        assert_eq!(address, ClientAddress::Unreadable { proxy: peer });
        assert_eq!((address.known_ip(), address.accountable_ip()), (None, peer));
    }

    #[test]
    fn nobody_is_trusted_unless_named() {
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
            let refused = text.parse::<TrustedProxies>();
            assert_eq!(refused, Err(InvalidAllowlist::Entry { position }), "{text}");
        }
        assert_eq!(found("", "10.0.0.1", &["198.51.100.1"]), "10.0.0.1");
    }

    proptest! {
        #[test]
        fn whatever_a_client_writes_itself_changes_nothing(
            made_up in prop::collection::vec("[ ,a-f0-9.:\\[\\]]{0,40}|10\\.0\\.0\\.[0-9]{1,3}", 0..5),
            behind in prop::collection::vec(0_u8..=255, 0..4),
        ) {
            // The outermost proxy adds the client's address to what came, the others add each other's.
            let mut chain = made_up;
            chain.push("198.51.100.1".to_owned());
            chain.extend(behind.iter().map(|last| format!("10.0.0.{last}")));
            let joined = chain.join(", ");
            prop_assert_eq!(found(PROXIES, "10.0.0.1", &[&joined]), "198.51.100.1");
            let apart: Vec<&str> = chain.iter().map(String::as_str).collect();
            prop_assert_eq!(found(PROXIES, "10.0.0.1", &apart), "198.51.100.1");
            prop_assert_eq!(found(PROXIES, "203.0.113.7", &apart), "203.0.113.7");
        }

        #[test]
        fn any_bytes_give_the_peer_a_named_hop_or_nobody(value in prop::collection::vec(any::<u8>(), 0..60)) {
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
