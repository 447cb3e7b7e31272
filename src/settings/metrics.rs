//! Access to the metrics: a token, networks.

use anyhow::bail;
use clap::Args;
use secrecy::SecretString;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_security::client_address::parse_networks;
use vouchsafe_security::environment::Environment;
use vouchsafe_security::metrics_access::MetricsAccess;
use vouchsafe_security::operator_token::OperatorTokenHash;
use vouchsafe_security::secret::expose_setting;

const MIN_TOKEN_LENGTH: usize = 32;

#[derive(Debug, Clone, Args)]
pub(super) struct MetricsArgs {
    /// Token for GET /metrics, at least 32 characters, sent as Authorization: Bearer TOKEN [default: none].
    #[arg(
        long,
        env = "VOUCHSAFE_METRICS_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    metrics_token: Option<SecretString>,

    /// Addresses and networks that get the metrics without a token, comma-separated [default: in production
    /// this machine, if there is no token; in the sandbox all].
    #[arg(
        long,
        env = "VOUCHSAFE_METRICS_NETWORKS",
        default_value = "",
        hide_default_value = true,
        value_parser = parse_networks,
        value_name = "CIDR,…"
    )]
    metrics_networks: Allowlist,
}

impl MetricsArgs {
    pub(super) fn access(&self, environment: Environment) -> anyhow::Result<MetricsAccess> {
        let token = expose_setting(self.metrics_token.as_ref());
        if token.is_some_and(|token| token.len() < MIN_TOKEN_LENGTH) {
            bail!("VOUCHSAFE_METRICS_TOKEN needs at least {MIN_TOKEN_LENGTH} characters");
        }
        Ok(MetricsAccess {
            token: token.map(|token| OperatorTokenHash::of(token.as_bytes())),
            networks: self.metrics_networks.clone(),
            environment,
        })
    }
}
