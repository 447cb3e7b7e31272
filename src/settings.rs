//! Settings of the service.

mod caps;
mod clients;
mod connections;
mod database;
mod effective;
mod four_eyes;
mod limits;
mod metrics;
mod oidc;
mod preview;
mod tls;

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use secrecy::SecretString;
use vouchsafe_actors::engine::DEFAULT_LANES;
use vouchsafe_audit_export::AuditExportArgs;
use vouchsafe_kms::WrappingKeyArgs;

use self::caps::CapSettings;
use self::clients::ClientSettings;
use self::connections::PoolSettings;
pub use self::database::{DatabaseSettings, Durability};
pub(crate) use self::effective::effective_settings;
pub use self::four_eyes::FourEyes;
use self::limits::LimitSettings;
use self::metrics::MetricsArgs;
use self::oidc::OidcArgs;
pub use self::preview::Preview;
use self::tls::TlsArgs;
use crate::tls::TlsFiles;
use vouchsafe_domain::vendor::VendorNetwork;
use vouchsafe_security::client_address::TrustedProxies;
use vouchsafe_security::console_url::ConsoleUrl;
use vouchsafe_security::environment::Environment;
use vouchsafe_security::listener::Listener;
use vouchsafe_security::metrics_access::MetricsAccess;
use vouchsafe_security::secret::expose_setting;
use vouchsafe_telemetry::{LogFormat, TelemetrySettings};
use vouchsafe_webhooks::LoopbackTargets;
use vouchsafe_wire::operator::settings::Setting;

/// Settings of the service.
#[derive(Debug, Clone, Args)]
pub struct ServeSettings {
    /// Address of the partner listener.
    #[arg(
        long,
        env = "VOUCHSAFE_HTTP_ADDR",
        default_value = "127.0.0.1:8080",
        value_name = "ADDRESS"
    )]
    pub http_addr: SocketAddr,

    /// Address of the operator listener: admin API and metrics.
    #[arg(
        long,
        env = "VOUCHSAFE_ADMIN_ADDR",
        default_value = "127.0.0.1:8081",
        value_name = "ADDRESS"
    )]
    pub admin_addr: SocketAddr,

    /// Environment. A database belongs to one environment permanently.
    #[arg(
        long,
        env = "VOUCHSAFE_ENVIRONMENT",
        default_value = "sandbox",
        value_name = "sandbox|production"
    )]
    pub environment: Environment,

    /// The database.
    #[command(flatten)]
    pub database: DatabaseSettings,

    /// Keys that encrypt the data keys.
    #[command(flatten)]
    pub keys: WrappingKeyArgs,

    /// Age in days at which a new data key replaces the active one for new codes; 0: never.
    #[arg(
        long,
        env = "VOUCHSAFE_DATA_KEY_DAYS",
        default_value_t = 365,
        value_name = "DAYS"
    )]
    data_key_days: u16,

    /// Token of the built-in operator `admin`, at least 32 characters [default: none; a sandbox generates one
    /// in the data directory].
    #[arg(
        long,
        env = "VOUCHSAFE_OPERATOR_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub operator_token: Option<SecretString>,

    /// Addresses and networks of trusted proxies, comma-separated: their X-Forwarded-For determines the
    /// client address [default: none, the TCP peer is the client].
    #[arg(
        long,
        env = "VOUCHSAFE_TRUSTED_PROXIES",
        default_value = "",
        hide_default_value = true,
        value_name = "CIDR,…"
    )]
    pub trusted_proxies: TrustedProxies,

    /// Same for the operator listener.
    #[arg(
        long,
        env = "VOUCHSAFE_ADMIN_TRUSTED_PROXIES",
        default_value = "",
        hide_default_value = true,
        value_name = "CIDR,…"
    )]
    pub admin_trusted_proxies: TrustedProxies,

    /// TLS of the listeners.
    #[command(flatten)]
    tls: TlsArgs,

    /// Access to the metrics.
    #[command(flatten)]
    metrics: MetricsArgs,

    /// URL at which browsers reach the operator listener: https, or in a sandbox http on loopback [default:
    /// http://ADDRESS of a listener on loopback or on all addresses, otherwise https://ADDRESS].
    #[arg(long, env = "VOUCHSAFE_CONSOLE_URL", value_name = "URL")]
    console_url: Option<ConsoleUrl>,

    /// Identity provider of the operators' sign-in.
    #[command(flatten)]
    pub oidc: OidcArgs,

    /// Whether money, payouts, approvals and access need a second operator: on, off, or on with thresholds of
    /// top-ups and adjustments, e.g. USD=1000,EUR=900 [default: on in production, off in the sandbox].
    #[arg(long, env = "VOUCHSAFE_FOUR_EYES", value_name = "on|off|THRESHOLDS")]
    four_eyes: Option<FourEyes>,

    /// Default rate limits.
    #[command(flatten)]
    pub limits: LimitSettings,

    /// Limits of connections and client addresses.
    #[command(flatten)]
    pub clients: ClientSettings,

    /// Caps of partners.
    #[command(flatten)]
    pub caps: CapSettings,

    /// Preview of the partners' reconciliation route, which may change: on or off.
    #[arg(
        long,
        env = "VOUCHSAFE_RECONCILIATION_PREVIEW",
        default_value = "off",
        value_name = "on|off"
    )]
    pub reconciliation_preview: Preview,

    /// Whether a sandbox delivers webhooks to its own machine, also by http: on or off. Partners could probe
    /// its ports [default: on if the partner listener is on loopback and there is no trusted proxy; always
    /// off in production].
    #[arg(
        long,
        env = "VOUCHSAFE_WEBHOOK_LOOPBACK",
        value_name = "on|off",
        value_parser = clap::builder::BoolishValueParser::new()
    )]
    webhook_loopback: Option<bool>,

    /// Where the servers of vendors may be: public (https to public addresses) or any [default: public in
    /// production, any in the sandbox].
    #[arg(
        long,
        env = "VOUCHSAFE_VENDOR_NETWORK",
        value_name = "public|any",
        value_parser = vouchsafe_domain::arguments::enum_parser::<VendorNetwork>()
    )]
    vendor_network: Option<VendorNetwork>,

    /// Number of days for which delivery attempts of webhooks are logged; 0 logs none.
    #[arg(long, env = "VOUCHSAFE_DELIVERY_LOG_DAYS", default_value_t = 30, value_name = "DAYS", value_parser = clap::value_parser!(u16).range(0..=366))]
    pub delivery_log_days: u16,

    /// Export of the audit log.
    #[command(flatten)]
    pub audit_export: AuditExportArgs,

    /// Number of lanes that write to the database.
    #[arg(long, env = "VOUCHSAFE_LANES", default_value_t = DEFAULT_LANES, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub lanes: u16,

    /// Sizes of the connection pools for requests.
    #[command(flatten)]
    pub connections: PoolSettings,

    /// Number of threads that serve partners and decide their orders [default: one per two cores].
    #[arg(long, env = "VOUCHSAFE_HTTP_WORKERS", default_value_t = default_workers(), hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub http_workers: u16,

    /// All settings with their sources, for operators.
    #[arg(skip)]
    pub(crate) effective: Vec<Setting>,

    /// Log level, or a filter such as `info,vouchsafe=debug`.
    #[arg(long, env = "VOUCHSAFE_LOG", default_value = "info", value_name = "FILTER")]
    pub log: String,

    /// Log format.
    #[arg(
        long,
        env = "VOUCHSAFE_LOG_FORMAT",
        default_value = "terminal",
        value_name = "FORMAT"
    )]
    pub log_format: LogFormat,

    /// URL of the collector that receives the spans of each request (OTLP over HTTP), e.g.
    /// http://127.0.0.1:4318. Requires a program built with the feature otlp.
    // Parsed later: clap's errors quote the value, which may be a URL with a password.
    #[arg(
        long,
        env = "VOUCHSAFE_OTLP_ENDPOINT",
        hide_env_values = true,
        value_name = "URL"
    )]
    otlp_endpoint: Option<SecretString>,

    /// Headers for the collector, such as its credentials: NAME=VALUE, comma-separated, values
    /// percent-encoded.
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_HEADERS",
        hide_env_values = true,
        value_name = "HEADERS"
    )]
    otlp_headers: Option<SecretString>,
}

impl ServeSettings {
    #[must_use]
    pub fn partner_listener(&self) -> Listener {
        Listener {
            address: self.http_addr,
            transport: self.tls.partner_transport(),
        }
    }

    #[must_use]
    pub fn operator_listener(&self) -> Listener {
        Listener {
            address: self.admin_addr,
            transport: self.tls.operator_transport(),
        }
    }

    /// Files of TLS of the partner listener; `None` without TLS.
    ///
    /// # Errors
    /// If only one of certificate and key is set.
    pub(crate) fn partner_tls(&self) -> anyhow::Result<Option<TlsFiles>> {
        self.tls.partner_files()
    }

    /// Files of TLS of the operator listener; `None` without TLS.
    ///
    /// # Errors
    /// If only one of certificate and key is set.
    pub(crate) fn operator_tls(&self) -> anyhow::Result<Option<TlsFiles>> {
        self.tls.operator_files()
    }

    #[must_use]
    pub fn console_url(&self) -> ConsoleUrl {
        let default = || ConsoleUrl::of_listener(self.operator_listener());
        self.console_url.clone().unwrap_or_else(default)
    }

    /// Whether the URL of the console is a setting and not that of the listener.
    pub(crate) const fn has_console_url(&self) -> bool {
        self.console_url.is_some()
    }

    #[must_use]
    pub fn four_eyes(&self) -> FourEyes {
        let default = || FourEyes::default_of(self.environment);
        self.four_eyes.clone().unwrap_or_else(default)
    }

    #[must_use]
    pub fn vendor_network(&self) -> VendorNetwork {
        self.vendor_network.unwrap_or(match self.environment {
            Environment::Sandbox => VendorNetwork::Any,
            Environment::Production => VendorNetwork::Public,
        })
    }

    /// Whether webhooks may be delivered to this machine. A listener behind a proxy is published, also on
    /// loopback.
    #[must_use]
    pub fn webhook_loopback(&self) -> LoopbackTargets {
        let is_local = self.http_addr.ip().is_loopback() && self.trusted_proxies.is_empty();
        if self.environment == Environment::Sandbox && self.webhook_loopback.unwrap_or(is_local) {
            LoopbackTargets::Allowed
        } else {
            LoopbackTargets::Refused
        }
    }

    /// Age of a data key at which the next one is created; `None`: never.
    #[must_use]
    pub fn max_data_key_age(&self) -> Option<Duration> {
        (self.data_key_days > 0).then(|| Duration::from_hours(24 * u64::from(self.data_key_days)))
    }

    /// Which requests receive the metrics.
    ///
    /// # Errors
    /// If the token is too short.
    pub(crate) fn metrics_access(&self) -> anyhow::Result<MetricsAccess> {
        self.metrics.access(self.environment)
    }

    /// What the process logs and exports.
    #[must_use]
    pub fn telemetry(&self) -> TelemetrySettings<'_> {
        TelemetrySettings {
            log: &self.log,
            log_format: self.log_format,
            otlp_endpoint: expose_setting(self.otlp_endpoint.as_ref()),
            otlp_headers: expose_setting(self.otlp_headers.as_ref()).unwrap_or_default(),
            environment: self.environment,
        }
    }
}

/// Half of the cores; the database needs the others.
fn default_workers() -> u16 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u16::try_from(cores / 2).unwrap_or(u16::MAX).clamp(1, 256)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::program::Cli;

    #[test]
    fn webhooks_reach_loopback_only_from_a_sandbox_on_loopback_or_by_setting() {
        let policy = |line: &str| {
            let arguments = ["vouchsafe"].into_iter().chain(line.split_whitespace());
            let arguments: Vec<OsString> = arguments.map(OsString::from).collect();
            Cli::read(&arguments).unwrap().serve_settings().webhook_loopback()
        };
        for line in [
            "",
            "--http-addr [::1]:8080",
            "--http-addr 0.0.0.0:8080 --webhook-loopback on",
            "--trusted-proxies 127.0.0.1 --webhook-loopback on",
        ] {
            assert_eq!(policy(line), LoopbackTargets::Allowed, "{line}");
        }
        for line in [
            "--http-addr 0.0.0.0:8080",
            "--http-addr 10.0.0.7:8080",
            "--trusted-proxies 127.0.0.1",
            "--webhook-loopback off",
            "--environment production",
            "--environment production --webhook-loopback on",
        ] {
            assert_eq!(policy(line), LoopbackTargets::Refused, "{line}");
        }
    }

    #[test]
    fn data_keys_have_a_maximum_age_unless_it_is_0() {
        let age = |days: &str| {
            let arguments = ["vouchsafe", "--data-key-days", days].map(OsString::from);
            Cli::read(&arguments).unwrap().serve_settings().max_data_key_age()
        };
        assert_eq!(age("0"), None);
        assert_eq!(age("30"), Some(Duration::from_hours(720)));
    }
}
