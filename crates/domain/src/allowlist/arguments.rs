//! Command-line option of an allowlist.

use ipnet::IpNet;

use super::{Allowlist, parse_network};

#[derive(clap::Args)]
#[group(id = "Allowlist")]
struct AllowlistOption {
    /// Network or address, e.g. 203.0.113.0/24. Can be repeated.
    #[arg(long = "allow", value_name = "CIDR", value_parser = parse_entry)]
    allowlist: Vec<IpNet>,
}

impl From<AllowlistOption> for Allowlist {
    fn from(option: AllowlistOption) -> Self {
        Self {
            networks: option.allowlist,
        }
    }
}

crate::parse_as_options!(Allowlist, AllowlistOption);

fn parse_entry(text: &str) -> Result<IpNet, &'static str> {
    parse_network(text)
        .ok_or("expected an address (203.0.113.7) or a network in CIDR notation (203.0.113.0/24)")
}
