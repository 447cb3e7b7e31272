//! IP allowlist of a partner or credential.
//!
//! An empty list admits no address. IPv4-mapped IPv6 (`::ffff:a.b.c.d`) counts as IPv4, in addresses and in
//! networks; other IPv6 networks, even `::/0`, never contain an IPv4 address.

mod arguments;

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Every request scans its list; a partner with more egress addresses than this has ranges.
pub const MAX_NETWORKS: usize = 256;

/// Bits before the IPv4 address in a mapped address.
const MAPPED_PREFIX_BITS: u8 = 96;

/// The networks from which a partner or one of its credentials may call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Allowlist {
    networks: Vec<IpNet>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAllowlist {
    /// Neither an address nor a network.
    #[error(
        "entry {position} is neither an address (203.0.113.7) nor a network in CIDR notation (203.0.113.0/24)"
    )]
    Entry {
        /// Position in the list, from 0.
        position: usize,
    },
    /// More than [`MAX_NETWORKS`].
    #[error("the list has {count} entries; at most {MAX_NETWORKS} are allowed")]
    TooMany { count: usize },
}

impl Allowlist {
    /// Parses a list. An address without prefix is a network of one address; host bits are cleared.
    ///
    /// # Errors
    /// [`InvalidAllowlist`] for the first invalid entry, or for too many entries.
    pub fn parse<T: AsRef<str>>(entries: &[T]) -> Result<Self, InvalidAllowlist> {
        if entries.len() > MAX_NETWORKS {
            return Err(InvalidAllowlist::TooMany { count: entries.len() });
        }
        let read = |(position, entry): (usize, &T)| {
            parse_network(entry.as_ref()).ok_or(InvalidAllowlist::Entry { position })
        };
        let networks = entries.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self { networks })
    }

    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// The networks in the given order.
    #[must_use]
    pub fn networks(&self) -> &[IpNet] {
        &self.networks
    }
}

impl PartialSchema for Allowlist {
    fn schema() -> RefOr<Schema> {
        let network = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("An address, or a network in CIDR notation."))
            .examples(["203.0.113.0/24"]);
        ArrayBuilder::new()
            .description(Some(
                "Networks from which calls are allowed; an empty list allows none.",
            ))
            .items(network)
            .max_items(Some(MAX_NETWORKS))
            .into()
    }
}

impl ToSchema for Allowlist {}

impl TryFrom<Vec<String>> for Allowlist {
    type Error = InvalidAllowlist;

    fn try_from(entries: Vec<String>) -> Result<Self, InvalidAllowlist> {
        Self::parse(&entries)
    }
}

impl From<Allowlist> for Vec<String> {
    fn from(list: Allowlist) -> Self {
        list.networks.iter().map(ToString::to_string).collect()
    }
}

fn parse_network(text: &str) -> Option<IpNet> {
    let network = match text.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => text.parse::<IpNet>().ok()?,
    };
    Some(unmap_ipv4(network.trunc()))
}

/// Converts an IPv4-mapped IPv6 network to IPv4.
fn unmap_ipv4(network: IpNet) -> IpNet {
    match network {
        IpNet::V4(_) => network,
        IpNet::V6(v6) => mapped_v4(v6).map_or(network, IpNet::V4),
    }
}

fn mapped_v4(network: Ipv6Net) -> Option<Ipv4Net> {
    let bits = network.prefix_len().checked_sub(MAPPED_PREFIX_BITS)?;
    let address = Ipv6Addr::to_ipv4_mapped(&network.addr())?;
    Ipv4Net::new(address, bits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowlist_contains_addresses_of_its_networks() {
        for (networks, address, expected) in [
            (&[][..], "127.0.0.1", false),
            (&[], "::1", false),
            (&["203.0.113.7"], "203.0.113.7", true),
            (&["203.0.113.7"], "203.0.113.8", false),
            (&["203.0.113.0/24"], "203.0.113.255", true),
            (&["203.0.113.0/24"], "203.0.114.0", false),
            (&["203.0.113.77/24"], "203.0.113.1", true),
            (&["10.0.0.0/8", "192.0.2.1"], "192.0.2.1", true),
            (&["0.0.0.0/0"], "198.51.100.1", true),
            (&["0.0.0.0/0"], "2001:db8::1", false),
            (&["2001:db8::/32"], "2001:db8:ffff::1", true),
            (&["2001:db8::/32"], "2001:db9::1", false),
            (&["::1"], "::1", true),
        ] {
            let list = Allowlist::parse(networks).unwrap();
            assert_eq!(
                list.contains(address.parse().unwrap()),
                expected,
                "{networks:?} {address}"
            );
        }
    }

    #[test]
    fn mapped_ipv6_counts_as_ipv4() {
        for (network, address, expected) in [
            ("203.0.113.0/24", "::ffff:203.0.113.9", true),
            ("203.0.113.0/24", "::ffff:203.0.114.9", false),
            ("::ffff:203.0.113.9", "203.0.113.9", true),
            ("::ffff:203.0.113.0/120", "203.0.113.200", true),
            ("::ffff:203.0.113.0/120", "::ffff:203.0.113.200", true),
            ("::ffff:203.0.113.0/120", "203.0.112.200", false),
            ("::ffff:0:0/96", "198.51.100.1", true),
            ("::/0", "203.0.113.9", false),
            ("::/0", "::ffff:203.0.113.9", false),
            ("::/0", "2001:db8::1", true),
            // The deprecated IPv4-compatible form stays an IPv6 address.
            ("203.0.113.9", "::203.0.113.9", false),
        ] {
            let list = Allowlist::parse(&[network]).unwrap();
            assert_eq!(
                list.contains(address.parse().unwrap()),
                expected,
                "{network} {address}"
            );
        }
    }

    #[test]
    fn invalid_entry_is_reported_by_position() {
        for bad in [
            "",
            " ",
            "203.0.113.7 ",
            "203.0.113",
            "203.0.113.7/33",
            "::1/129",
            "1.2.3.4/-1",
            "host",
            "01.2.3.4",
        ] {
            assert_eq!(
                Allowlist::parse(&["127.0.0.1", bad]),
                Err(InvalidAllowlist::Entry { position: 1 }),
                "{bad}"
            );
        }
        let many = vec!["127.0.0.1"; MAX_NETWORKS + 1];
        assert_eq!(
            Allowlist::parse(&many),
            Err(InvalidAllowlist::TooMany {
                count: MAX_NETWORKS + 1
            })
        );
        assert!(Allowlist::parse(&many[1..]).is_ok());
    }

    #[test]
    fn allowlist_serializes_as_an_array_of_networks() {
        let text = r#"["127.0.0.1","10.1.2.3/8","::1","::ffff:192.0.2.0/120"]"#;
        let list: Allowlist = serde_json::from_str(text).unwrap();
        let written = serde_json::to_string(&list).unwrap();
        assert_eq!(
            written,
            r#"["127.0.0.1/32","10.0.0.0/8","::1/128","192.0.2.0/24"]"#
        );
        assert_eq!(serde_json::from_str::<Allowlist>(&written).unwrap(), list);
        assert!(serde_json::from_str::<Allowlist>(r#"["nowhere"]"#).is_err());
        assert!(serde_json::from_str::<Allowlist>(r#""127.0.0.1""#).is_err());
    }
}
