//! Connection of commands that work on the database instead of the operator API.
//!
//! | Situation | Connection |
//! |---|---|
//! | `DATABASE_URL` is set | to that server |
//! | the service runs on the data directory | to the service's private Postgres |
//! | nothing runs there | starts the private Postgres, and stops it afterwards |

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use secrecy::SecretString;
use sqlx::postgres::PgConnectOptions;
use vouchsafe_domain::error_chain::describe_chain;
use vouchsafe_kms::{KeyFile, WrappingKeyArgs};
use vouchsafe_private_postgres::{DataDir, DataDirError, Durability, PrivatePostgres};
use vouchsafe_security::secret::expose;
use vouchsafe_security::vault::key_file;
use vouchsafe_security::vault::wrapping_key::WrappingKeys;
use vouchsafe_store::keyring::{self, KeyringError};
use vouchsafe_store::{Grants, StoreError, parse_database_url};

use super::exit::{UnreachableError, UsageError, invalid_setting};
use super::{CONNECTION_OPTIONS, LocalService};

#[derive(Debug, Args)]
pub(super) struct DatabaseArgs {
    /// URL of the database [default: the private Postgres in the data directory].
    #[arg(
        long,
        env = "DATABASE_URL",
        hide_env_values = true,
        help_heading = CONNECTION_OPTIONS,
        value_name = "URL"
    )]
    database_url: Option<SecretString>,
}

/// Which server of the database a command uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerRole {
    Primary,
    /// It is read only.
    Standby,
}

impl DatabaseArgs {
    /// The wrapping keys of the database; `None` without a setting and without a master key in the data
    /// directory.
    pub(super) fn load_wrapping_keys(
        &self,
        keys: &WrappingKeyArgs,
        local_service: &LocalService,
    ) -> anyhow::Result<Option<WrappingKeys>> {
        let path = local_service.data_dir.join(key_file::NAME);
        // The key there does not belong to another database.
        let is_private = self.database_url.is_none();
        let file = if is_private {
            KeyFile::IfExists(&path)
        } else {
            KeyFile::None
        };
        keys.load(file).map_err(invalid_setting)
    }

    /// Runs `work` on the database, with the HMACs of the rows that grant access. `verb` completes "cannot …
    /// the database".
    pub(super) async fn run_with_grants<T>(
        &self,
        keys: &WrappingKeyArgs,
        local_service: &LocalService,
        verb: &str,
        work: impl AsyncFn(PgConnectOptions, Grants) -> Result<T, StoreError>,
    ) -> anyhow::Result<T> {
        let wrapping = self.load_wrapping_keys(keys, local_service)?.ok_or_else(|| {
            UsageError("no master key: set VOUCHSAFE_MASTER_KEY_FILE, as for the service".to_owned())
        })?;
        let work = async |options: PgConnectOptions| {
            let grants = match keyring::open_grants(&options, &wrapping).await {
                Ok(opened) => opened,
                Err(KeyringError::Store(error)) => return Err(error),
                Err(error) => return Ok(Err(anyhow::Error::from(error))),
            };
            work(options, grants).await.map(Ok)
        };
        self.run(local_service, verb, work).await?
    }

    /// Runs `work` on the database. `verb` completes "cannot … the database".
    pub(super) async fn run<T>(
        &self,
        local_service: &LocalService,
        verb: &str,
        work: impl AsyncFn(PgConnectOptions) -> Result<T, StoreError>,
    ) -> anyhow::Result<T> {
        self.run_on(ServerRole::Primary, local_service, verb, work).await
    }

    /// Like [`run`](Self::run), on the primary or on a standby.
    pub(super) async fn run_on<T>(
        &self,
        role: ServerRole,
        local_service: &LocalService,
        verb: &str,
        work: impl AsyncFn(PgConnectOptions) -> Result<T, StoreError>,
    ) -> anyhow::Result<T> {
        let Some(url) = &self.database_url else {
            return run_on_private(&local_service.data_dir, verb, work).await;
        };
        let servers = parse_database_url(expose(url), local_service.environment);
        let servers = servers.map_err(|error| UsageError(error.to_string()))?;
        let servers = match role {
            ServerRole::Primary => Some(servers),
            ServerRole::Standby => servers.into_standby(),
        };
        let servers =
            servers.ok_or_else(|| UsageError("DATABASE_URL: expected one server, the standby".to_owned()))?;
        let done = match servers.find_primary().await {
            Ok(options) => work(options).await,
            Err(error) => Err(StoreError::NotWritten(error)),
        };
        done.map_err(|error| {
            let advice = " at DATABASE_URL (is its server running, and is it a database of this service?)";
            describe_failure(error, verb, advice)
        })
    }
}

/// `verb` and `which` complete "cannot … the database …".
fn describe_failure(error: StoreError, verb: &str, which: &str) -> anyhow::Error {
    let hint = match error {
        StoreError::NotWritten(_) => "",
        StoreError::Unknown(_) => {
            "; the connection ended before the answer: if the command changes something, it may be \
             changed, and `vouchsafe audit` shows it"
        }
    };
    anyhow::Error::new(error).context(format!("cannot {verb} the database{which}{hint}"))
}

async fn run_on_private<T>(
    data_dir: &Path,
    verb: &str,
    work: impl AsyncFn(PgConnectOptions) -> Result<T, StoreError>,
) -> anyhow::Result<T> {
    if !data_dir.is_dir() {
        let missing = format!(
            "no data directory {}; set --data-dir or DATABASE_URL",
            data_dir.display()
        );
        return Err(UnreachableError(missing).into());
    }
    // A killed server leaves its address behind; then it is started like a stopped one.
    if let Ok(options) = vouchsafe_private_postgres::find_running(data_dir) {
        match work(options).await {
            // A lost connection is not one of them: what was sent may be committed, and would be done twice.
            Err(error) if error.is_refused() => {}
            done => {
                return done.map_err(|error| describe_failure(error, verb, " of the running service"));
            }
        }
    }
    run_on_stopped(data_dir.to_owned(), verb, work).await
}

/// Starts the private Postgres, with the data directory locked.
async fn run_on_stopped<T>(
    data_dir: PathBuf,
    verb: &str,
    work: impl AsyncFn(PgConnectOptions) -> Result<T, StoreError>,
) -> anyhow::Result<T> {
    let started = tokio::task::spawn_blocking(move || start_postgres(&data_dir))
        .await
        .context("start Postgres")?
        .map_err(|error| UnreachableError(describe_chain(&*error)))?;
    let done = work(started.connect_options())
        .await
        .map_err(|error| describe_failure(error, verb, ""));
    tokio::task::spawn_blocking(move || started.stop())
        .await
        .context("stop Postgres")??;
    done
}

fn start_postgres(data_dir: &Path) -> anyhow::Result<PrivatePostgres> {
    let directory = DataDir::open(data_dir).map_err(|error| match error {
        DataDirError::InUse { .. } => {
            anyhow::anyhow!(
                "a service uses {} but its database is unreachable; is it starting?",
                data_dir.display()
            )
        }
        other => other.into(),
    })?;
    let executable = std::env::current_exe().context("find the path of this program")?;
    Ok(PrivatePostgres::start(
        &directory,
        &executable,
        Durability::Durable,
    )?)
}
