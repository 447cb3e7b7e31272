//! Classification of public IP addresses for outgoing requests.
//!
//! An address is public only if it is known to be. IPv4 addresses embedded in IPv6 are classified by their
//! IPv4 form.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(a: u16, b: u16, c: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), length)
}

/// IPv4 networks that are not public (IANA special-purpose address registry).
const NOT_PUBLIC_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 0, 8),       // this network
    v4(10, 0, 0, 0, 8),      // private
    v4(100, 64, 0, 0, 10),   // carrier-grade NAT
    v4(127, 0, 0, 0, 8),     // loopback
    v4(169, 254, 0, 0, 16),  // link-local, and cloud metadata services
    v4(172, 16, 0, 0, 12),   // private
    v4(192, 0, 0, 0, 24),    // IETF protocols
    v4(192, 0, 2, 0, 24),    // documentation
    v4(192, 88, 99, 0, 24),  // 6to4 relays
    v4(192, 168, 0, 0, 16),  // private
    v4(198, 18, 0, 0, 15),   // benchmarks
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(224, 0, 0, 0, 4),     // multicast
    v4(240, 0, 0, 0, 4),     // reserved, and broadcast
];

/// Global unicast.
const PUBLIC_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

/// Networks within it that are not public.
const NOT_PUBLIC_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 0, 23),     // IETF protocols, including Teredo
    v6(0x2001, 0xdb8, 0, 32), // documentation
    v6(0x2002, 0, 0, 16),     // 6to4, which embeds an IPv4 address
    v6(0x3fff, 0, 0, 20),     // documentation
];

pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|net| net.contains(&address)),
        IpAddr::V6(address) => {
            PUBLIC_V6.contains(&address) && !NOT_PUBLIC_V6.iter().any(|net| net.contains(&address))
        }
    }
}

pub(super) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_purpose_addresses_are_not_public() {
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "::ffff:8.8.8.8",
            "2606:4700:4700::1111",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for not_public in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.168.1.1",
            "198.19.255.255",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(not_public.parse().unwrap()), "{not_public}");
        }
    }
}
