//! Parser of `DATABASE_URL` with one or several servers, and the TLS that production requires of it.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx_core::Url;
use sqlx_core::percent_encoding::percent_decode_str;
use vouchsafe_security::environment::Environment;

use super::servers::{Servers, address};

/// Why `DATABASE_URL` cannot be used. The texts quote nothing of it but names of parameters: any other part
/// may be one of the password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    #[error("DATABASE_URL is not a Postgres URL such as postgres://user@host/database")]
    Invalid,
    /// Counted from 1.
    #[error("host {number} of DATABASE_URL {problem}")]
    Host { number: usize, problem: HostProblem },
    #[error("DATABASE_URL has {ports} ports for {hosts} hosts: give one for all, or one for each")]
    PortCount { ports: usize, hosts: usize },
    #[error("the parameter {0} of DATABASE_URL has an invalid value")]
    Parameter(String),
    #[error(
        "DATABASE_URL has target_session_attrs={0}, and the service writes: leave it out, or set read-write or primary"
    )]
    SessionAttributes(&'static str),
    #[error(
        "PGHOST names several hosts: name them in DATABASE_URL, as in postgres://user@one:5432,two:5432/database"
    )]
    SeveralHostsInEnvironment,
    #[error(
        "production requires TLS with a verified certificate between the service and Postgres: add sslmode=verify-full to \
         DATABASE_URL, with sslrootcert=FILE if the certificate comes from an authority of your own, or name the directory of \
         the server's Unix socket: postgres://USER@%2Fvar%2Frun%2Fpostgresql/DATABASE"
    )]
    UnverifiedTls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostProblem {
    #[error("is empty")]
    Empty,
    #[error("is not UTF-8")]
    Encoding,
    #[error("is an IPv6 address without brackets, or has two ports: write [2001:db8::1]:5432")]
    Colons,
    #[error("has brackets around something that is no IPv6 address")]
    Brackets,
    #[error("is no IP address, as hostaddr requires")]
    Address,
    #[error("has a port that is no number from 1 to 65535")]
    Port,
}

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Values of `target_session_attrs` that a service that writes cannot use.
const OTHER_SESSIONS: [&str; 4] = ["any", "read-only", "standby", "prefer-standby"];

/// Parses `DATABASE_URL`. Settings that it lacks come from libpq's environment variables, such as
/// `PGSSLMODE`.
///
/// Several servers are a list of hosts with ports, as in libpq: in the place of the host, or in the
/// parameters `host` and `port`.
///
/// Production takes a Unix socket or `verify-full`. Loopback is no exception: while Postgres is stopped, any
/// local user can listen on its port and ask the service for its password, but not in the directory of its
/// socket.
///
/// # Errors
/// [`DatabaseUrlError`].
pub fn parse_database_url(url: &str, environment: Environment) -> Result<Servers, DatabaseUrlError> {
    let ParsedUrl {
        shared,
        addresses,
        is_primary_required,
    } = parse(url)?;
    let options = if addresses.is_empty() {
        vec![parse_options(&shared)?]
    } else {
        let options = addresses
            .iter()
            .map(|address| parse_options(&address.url(&shared)));
        options.collect::<Result<_, _>>()?
    };
    let options = without_repetition(options);
    if options.iter().any(|options| options.get_host().contains(',')) {
        return Err(DatabaseUrlError::SeveralHostsInEnvironment);
    }
    match environment {
        Environment::Production if !options.iter().all(is_authenticated) => {
            Err(DatabaseUrlError::UnverifiedTls)
        }
        Environment::Production | Environment::Sandbox => Ok(Servers::new(options, is_primary_required)),
    }
}

/// One entry for each address: a change from one to the other would abort what is in flight.
fn without_repetition(mut options: Vec<PgConnectOptions>) -> Vec<PgConnectOptions> {
    let mut addresses = HashSet::new();
    options.retain(|options| addresses.insert(address(options)));
    options
}

/// Whether the service knows that it talks to its server.
fn is_authenticated(options: &PgConnectOptions) -> bool {
    let is_socket = options.get_socket().is_some() || options.get_host().starts_with('/');
    // `verify-ca` accepts the certificate of any host of the authority, which may be a public one.
    is_socket || matches!(options.get_ssl_mode(), PgSslMode::VerifyFull)
}

struct ParsedUrl {
    /// The URL without its addresses.
    shared: Url,
    /// Empty: libpq's default.
    addresses: Vec<ServerAddress>,
    is_primary_required: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerAddress {
    /// A name, an IP address without brackets, or the directory of a socket.
    host: String,
    port: Option<u16>,
}

impl ServerAddress {
    /// The URL of this server. The parser of options takes an IPv6 address only from the parameter `host`.
    fn url(&self, shared: &Url) -> Url {
        let mut url = shared.clone();
        url.query_pairs_mut().append_pair("host", &self.host);
        if let Some(port) = self.port {
            url.query_pairs_mut().append_pair("port", &port.to_string());
        }
        url
    }
}

fn parse(url: &str) -> Result<ParsedUrl, DatabaseUrlError> {
    // The parser of options takes the URL of any scheme, and several hosts as the name of one.
    let rest = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
    let rest = rest.ok_or(DatabaseUrlError::Invalid)?;
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    // The place of the host has a name that is replaced below.
    let place = if user.is_empty() { "" } else { "localhost" };
    let mut shared =
        Url::parse(&format!("postgres://{user}{place}{tail}")).map_err(|_| DatabaseUrlError::Invalid)?;
    let mut addresses = if hosts.is_empty() {
        vec![]
    } else {
        parse_hosts(hosts)?
    };
    let (mut ports, mut is_primary_required) = (None, false);
    let mut others = Vec::new();
    for (name, value) in shared.query_pairs() {
        match &*name {
            "host" | "hostaddr" => addresses = parse_host_list(&value, name == "hostaddr")?,
            "port" => ports = Some(parse_port_list(&value)?),
            "target_session_attrs" => {
                check_session_attributes(&value)?;
                is_primary_required = true;
            }
            _ => others.push((name.into_owned(), value.into_owned())),
        }
    }
    if addresses.is_empty() && !user.is_empty() {
        return Err(DatabaseUrlError::Invalid);
    }
    shared.set_query(None);
    if !others.is_empty() {
        shared.query_pairs_mut().extend_pairs(&others);
    }
    if let Some(ports) = ports {
        assign_ports(&mut addresses, &ports, &mut shared)?;
    }
    Ok(ParsedUrl {
        shared,
        addresses,
        is_primary_required,
    })
}

/// The hosts in the place of the host, with their ports.
fn parse_hosts(hosts: &str) -> Result<Vec<ServerAddress>, DatabaseUrlError> {
    let hosts = hosts.split(',').zip(1..);
    hosts
        .map(|(text, number)| parse_host(text).map_err(|problem| DatabaseUrlError::Host { number, problem }))
        .collect()
}

fn parse_host(text: &str) -> Result<ServerAddress, HostProblem> {
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (host, rest) = bracketed.split_once(']').ok_or(HostProblem::Brackets)?;
            host.parse::<Ipv6Addr>().map_err(|_| HostProblem::Brackets)?;
            let port = match rest.strip_prefix(':') {
                Some(port) => Some(port),
                None if rest.is_empty() => None,
                None => return Err(HostProblem::Port),
            };
            (host, port)
        }
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => return Err(HostProblem::Colons),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let host = percent_decode_str(host)
        .decode_utf8()
        .map_err(|_| HostProblem::Encoding)?;
    if host.is_empty() {
        return Err(HostProblem::Empty);
    }
    let port = port.filter(|port| !port.is_empty()).map(parse_port).transpose()?;
    Ok(ServerAddress {
        host: host.into_owned(),
        port,
    })
}

fn parse_port(text: &str) -> Result<u16, HostProblem> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or(HostProblem::Port)
}

/// The hosts of the parameter `host`, or of `hostaddr`, which names IP addresses.
fn parse_host_list(list: &str, is_address: bool) -> Result<Vec<ServerAddress>, DatabaseUrlError> {
    let hosts = list.split(',').zip(1..);
    hosts
        .map(|(host, number)| {
            let problem = match host {
                "" => HostProblem::Empty,
                _ if is_address && host.parse::<IpAddr>().is_err() => HostProblem::Address,
                _ => {
                    return Ok(ServerAddress {
                        host: host.to_owned(),
                        port: None,
                    });
                }
            };
            Err(DatabaseUrlError::Host { number, problem })
        })
        .collect()
}

/// `None` for an empty port, the default.
fn parse_port_list(list: &str) -> Result<Vec<Option<u16>>, DatabaseUrlError> {
    let ports = list.split(',');
    ports
        .map(|port| match port {
            "" => Ok(None),
            _ => parse_port(port).map(Some),
        })
        .collect::<Result<_, _>>()
        .map_err(|_| DatabaseUrlError::Parameter("port".to_owned()))
}

fn assign_ports(
    addresses: &mut [ServerAddress],
    ports: &[Option<u16>],
    shared: &mut Url,
) -> Result<(), DatabaseUrlError> {
    match ports {
        [port] if addresses.is_empty() => {
            // Of the default host.
            if let Some(port) = port {
                shared.query_pairs_mut().append_pair("port", &port.to_string());
            }
        }
        [port] => addresses.iter_mut().for_each(|address| address.port = *port),
        ports if ports.len() == addresses.len() => {
            for (address, port) in addresses.iter_mut().zip(ports) {
                address.port = *port;
            }
        }
        ports => {
            return Err(DatabaseUrlError::PortCount {
                ports: ports.len(),
                hosts: addresses.len(),
            });
        }
    }
    Ok(())
}

fn check_session_attributes(value: &str) -> Result<(), DatabaseUrlError> {
    if matches!(value, "read-write" | "primary") {
        return Ok(());
    }
    Err(match OTHER_SESSIONS.iter().find(|other| **other == value) {
        Some(other) => DatabaseUrlError::SessionAttributes(other),
        None => DatabaseUrlError::Parameter("target_session_attrs".to_owned()),
    })
}

/// Without the parser's reason, which may quote the URL with its password.
fn parse_options(url: &Url) -> Result<PgConnectOptions, DatabaseUrlError> {
    url.as_str().parse().map_err(|_| {
        let invalid = url.query_pairs().find(|(name, value)| {
            let mut alone = Url::parse("postgres://localhost").ok();
            alone.as_mut().is_some_and(|alone| {
                alone.query_pairs_mut().append_pair(name, value);
                alone.as_str().parse::<PgConnectOptions>().is_err()
            })
        });
        match invalid {
            Some((name, _)) => DatabaseUrlError::Parameter(name.into_owned()),
            None => DatabaseUrlError::Invalid,
        }
    })
}

#[cfg(test)]
mod tests;
