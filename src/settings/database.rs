//! Settings of the database.

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use secrecy::SecretString;
use vouchsafe_security::environment::Environment;
use vouchsafe_security::secret::expose_setting;
use vouchsafe_store::{DatabaseUrlError, Servers, parse_database_url};

/// Where the database is, and what it guarantees.
#[derive(Debug, Clone, Args)]
pub struct DatabaseSettings {
    /// URL of the Postgres database, of one server or of a primary and its standbys [default: a private
    /// Postgres in the data directory].
    #[arg(
        long = "database-url",
        env = "DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    url: Option<SecretString>,

    /// URL of a standby of the database, for lists and statistics of operators [default: none].
    #[arg(
        long,
        env = "VOUCHSAFE_REPLICA_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    replica_url: Option<SecretString>,

    /// Whether commits wait for the disk of a standby: local or replicated. With replicated the service
    /// checks that Postgres waits, and says when it does not.
    #[arg(
        long,
        env = "VOUCHSAFE_DURABILITY",
        default_value = "local",
        value_name = "local|replicated"
    )]
    pub durability: Durability,
}

/// Which disks must have a commit before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// That of the primary.
    Local,
    /// That of a standby as well.
    Replicated,
}

impl DatabaseSettings {
    /// The servers of `DATABASE_URL`. An empty variable counts as unset.
    ///
    /// # Errors
    /// [`DatabaseUrlError`].
    pub fn servers(&self, environment: Environment) -> Result<Option<Servers>, DatabaseUrlError> {
        let url = expose_setting(self.url.as_ref());
        url.map(|url| parse_database_url(url, environment)).transpose()
    }

    /// The server of `VOUCHSAFE_REPLICA_URL`. An empty variable counts as unset.
    ///
    /// # Errors
    /// If the URL is invalid or names several servers.
    pub fn replica(&self, environment: Environment) -> anyhow::Result<Option<Servers>> {
        let Some(url) = expose_setting(self.replica_url.as_ref()) else {
            return Ok(None);
        };
        let servers = parse_database_url(url, environment).context("VOUCHSAFE_REPLICA_URL")?;
        let standby = servers.into_standby();
        standby
            .context("VOUCHSAFE_REPLICA_URL: expected one server")
            .map(Some)
    }

    pub(super) const fn has_url(&self) -> bool {
        self.url.is_some()
    }
}
