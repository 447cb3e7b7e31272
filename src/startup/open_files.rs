//! Limit of open files (`RLIMIT_NOFILE`), shared out to the connections of both listeners, the database,
//! webhooks and files.

use anyhow::{Context as _, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use vouchsafe_actors::delivery::concurrency::MAX_IN_FLIGHT;

use crate::settings::ServeSettings;

/// Files of a connection: its socket, and a duplicate that ends it when the client reads too slowly.
const FILES_PER_CONNECTION: u64 = 2;

/// Connections per thread of the partner listener.
const PARTNERS_PER_WORKER: u64 = 10_000;

const OPERATORS: u64 = 1_000;

/// Fewer are of no use.
const MIN_CONNECTIONS: u64 = 64;

/// Listeners, event queues, logs, certificates, exports, and connections to vendors, the identity provider,
/// Vault and a collector.
const OTHER_FILES: u64 = 256;

/// Connections of each listener, of all its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MaxConnections {
    pub(super) partners: usize,
    pub(super) operators: usize,
}

/// What needs open files.
#[derive(Debug, Clone, Copy)]
struct Demand {
    /// Connections by the settings, or as many as fit.
    partners: Option<u32>,
    operators: Option<u32>,
    workers: u16,
    /// Everything but connections of clients.
    reserved: u64,
}

/// Raises the limit of this process as far as it is needed and permitted, and shares it out.
///
/// # Errors
/// If the limit is too low.
pub(super) fn share_out(settings: &ServeSettings) -> anyhow::Result<MaxConnections> {
    let database = settings.connections.sizes().total(settings.lanes);
    let webhooks = u64::try_from(MAX_IN_FLIGHT).context("count the sockets of webhooks")?;
    let demand = Demand {
        partners: settings.clients.max_connections,
        operators: settings.clients.admin_max_connections,
        workers: settings.http_workers,
        reserved: u64::from(database) + webhooks + OTHER_FILES,
    };
    demand.share(raise_limit(demand.wanted())?)
}

/// The limit of this process. A shell often permits more than it sets.
fn raise_limit(wanted: u64) -> anyhow::Result<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` is no limit.
    let Some(current) = current.filter(|current| *current < wanted) else {
        return Ok(current.unwrap_or(u64::MAX));
    };
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted)).max(current);
    let limit = Rlimit {
        current: Some(raised),
        maximum,
    };
    setrlimit(Resource::Nofile, limit).context("raise the limit of open files")?;
    Ok(raised)
}

impl Demand {
    fn wanted_partners(self) -> u64 {
        let default = PARTNERS_PER_WORKER * u64::from(self.workers);
        self.partners.map_or(default, u64::from)
    }

    fn wanted_operators(self) -> u64 {
        self.operators.map_or(OPERATORS, u64::from)
    }

    fn wanted(self) -> u64 {
        self.reserved + FILES_PER_CONNECTION * (self.wanted_partners() + self.wanted_operators())
    }

    /// Connections that a limit permits. Those without a setting share what the others leave; a fifth is for
    /// operators.
    fn share(self, limit: u64) -> anyhow::Result<MaxConnections> {
        let available = limit.saturating_sub(self.reserved) / FILES_PER_CONNECTION;
        let least = |setting: Option<u32>| setting.map_or(MIN_CONNECTIONS, u64::from);
        let (partners, operators) = (least(self.partners), least(self.operators));
        if partners + operators > available {
            bail!(
                "the limit of open files (RLIMIT_NOFILE) is {limit}, and {} are needed: \
                 {FILES_PER_CONNECTION} for each of VOUCHSAFE_MAX_CONNECTIONS={partners} and \
                 VOUCHSAFE_ADMIN_MAX_CONNECTIONS={operators}, and {} for the database, webhooks and files; \
                 raise the limit (LimitNOFILE of the unit, ulimit -n), or lower these settings",
                self.reserved + FILES_PER_CONNECTION * (partners + operators),
                self.reserved,
            );
        }
        let operators = match self.operators {
            Some(_) => operators,
            None => OPERATORS
                .min(available / 5)
                .min(available - partners)
                .max(MIN_CONNECTIONS),
        };
        let partners = self.wanted_partners().min(available - operators);
        Ok(MaxConnections {
            partners: usize::try_from(partners)?,
            operators: usize::try_from(operators)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: Demand = Demand {
        partners: None,
        operators: None,
        workers: 2,
        reserved: 2_400,
    };

    fn share(demand: Demand, limit: u64) -> Result<(usize, usize), String> {
        let shared = demand.share(limit).map_err(|error| error.to_string())?;
        let MaxConnections { partners, operators } = shared;
        let files = 2_400 + 2 * (partners + operators);
        assert!(u64::try_from(files).unwrap() <= limit, "{shared:?} of {limit}");
        Ok((partners, operators))
    }

    #[test]
    fn connections_are_as_many_as_the_limit_of_open_files_permits() {
        assert_eq!(share(DEMAND, u64::MAX), Ok((20_000, 1_000)));
        assert_eq!(share(DEMAND, 65_536), Ok((20_000, 1_000)));
        assert_eq!(share(DEMAND, 12_400), Ok((4_000, 1_000)));
        assert_eq!(share(DEMAND, 4_400), Ok((800, 200)));
        assert_eq!(share(DEMAND, 2_656), Ok((64, 64)));
        let partners = Demand {
            partners: Some(900),
            ..DEMAND
        };
        assert_eq!(share(partners, 4_400), Ok((900, 100)));
        let operators = Demand {
            operators: Some(900),
            ..DEMAND
        };
        assert_eq!(share(operators, 4_400), Ok((100, 900)));
        assert_eq!(DEMAND.wanted(), 44_400);
    }

    #[test]
    fn limit_below_the_sum_is_refused_with_the_settings() {
        let message = share(DEMAND, 2_655).unwrap_err();
        assert!(message.contains("is 2655, and 2656 are needed"), "{message}");
        let explicit = Demand {
            partners: Some(40_000),
            ..DEMAND
        };
        let message = share(explicit, 65_536).unwrap_err();
        for part in ["VOUCHSAFE_MAX_CONNECTIONS=40000", "LimitNOFILE", "65536", "82528"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert!(share(DEMAND, 0).is_err());
    }
}
