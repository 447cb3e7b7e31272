//! Operators: accounts with roles, and API tokens, sessions and sign-in links stored as hashes.
//!
//! Every request of an operator reads its token or session here, so a revocation, a disabled account and a changed role are in force on all
//! nodes with their commit.

mod identities;
mod sessions;
mod sign_in_links;
mod tokens;

use sqlx::postgres::{PgConnectOptions, PgRow};
use sqlx::{Connection as _, PgConnection};
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::boxed;
use vouchsafe_domain::operator::{OperatorAccount, OperatorName, OperatorTokenSummary, Role};

pub use identities::{ProviderIdentity, ProviderSignIn};
pub use sessions::{NewSession, SessionHolder, SessionLookup, SessionUse};
pub use sign_in_links::{IssueLinkOutcome, issue_sign_in_link};
pub use tokens::{IssueTokenOutcome, MAX_LIVE_TOKENS, NewOperatorToken, TokenHolder};

use super::database::{Database, Statement};

/// Runs a statement that returns accounts.
macro_rules! query_accounts {
    ($before:literal, $after:literal $(, $argument:expr)* $(,)?) => {
        sqlx::query!(
            $before + r#" name AS "name: OperatorName", role AS "role: Role", disabled, created_at "# + $after,
            $($argument),*
        )
        .map(|row| OperatorAccount {
            name: row.name,
            role: row.role,
            disabled: row.disabled,
            created_at: row.created_at,
        })
    };
}

/// Operator accounts and their tokens.
#[derive(Debug, Clone)]
pub struct Operators(pub(super) Database);

impl Operators {
    /// Lists all operators in byte order of their names. Not paginated: there are few.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    #[boxed]
    pub async fn list(&self) -> Result<Vec<OperatorAccount>, sqlx::Error> {
        let statement = query_accounts!("SELECT", r#"FROM operators ORDER BY name COLLATE "C""#);
        self.0.fetch_all(statement).await
    }

    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    #[boxed]
    pub async fn find(&self, name: OperatorName) -> Result<Option<OperatorAccount>, sqlx::Error> {
        let statement = query_accounts!("SELECT", "FROM operators WHERE name = $1", name as _);
        self.0.fetch_optional(statement).await
    }

    /// Creates an operator. Returns `None` if the name is taken.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    #[boxed]
    pub async fn create(
        &self,
        name: OperatorName,
        role: Role,
        actor: AuditActor,
    ) -> Result<Option<OperatorAccount>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut transaction = pool.begin().await?;
                let created = insert(&mut transaction, &name, role, &actor).await?;
                transaction.commit().await?;
                Ok(created)
            })
            .await
    }

    /// Changes role or state; `None` keeps the current one. Returns `None` if the operator does not exist.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    #[boxed]
    pub async fn change(
        &self,
        name: OperatorName,
        role: Option<Role>,
        disabled: Option<bool>,
        actor: AuditActor,
    ) -> Result<Option<OperatorAccount>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let mut transaction = pool.begin().await?;
                let changed = change(&mut transaction, &name, role, disabled, &actor).await?;
                transaction.commit().await?;
                Ok(changed)
            })
            .await
    }
}

/// Creates an admin with a token on a connection of its own, without the service; an existing operator becomes an enabled admin.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer or is not migrated.
#[boxed]
pub async fn create_admin(
    database: &PgConnectOptions,
    token: &NewOperatorToken,
) -> Result<OperatorTokenSummary, sqlx::Error> {
    let actor = AuditActor::command_line();
    let mut connection = PgConnection::connect_with(database).await?;
    let mut transaction = connection.begin().await?;
    let created = insert(&mut transaction, &token.operator, Role::Admin, &actor).await?;
    if created.is_none() {
        change(
            &mut transaction,
            &token.operator,
            Some(Role::Admin),
            Some(false),
            &actor,
        )
        .await?;
    }
    let issued = tokens::insert(&mut transaction, token, &actor).await?;
    transaction.commit().await?;
    connection.close().await?;
    // A random token is not stored already.
    issued.ok_or(sqlx::Error::RowNotFound)
}

async fn insert(
    connection: &mut PgConnection,
    name: &OperatorName,
    role: Role,
    actor: &AuditActor,
) -> Result<Option<OperatorAccount>, sqlx::Error> {
    let created = query_accounts!(
        "INSERT INTO operators (name, role) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING",
        "",
        name as _,
        role as _,
    );
    let created = created.fetch_optional(&mut *connection).await?;
    if let Some(account) = &created {
        audit::write(
            connection,
            actor,
            "operator.create",
            name,
            NO_STATE,
            Some(account),
        )
        .await?;
    }
    Ok(created)
}

async fn change(
    connection: &mut PgConnection,
    name: &OperatorName,
    role: Option<Role>,
    disabled: Option<bool>,
    actor: &AuditActor,
) -> Result<Option<OperatorAccount>, sqlx::Error> {
    let Some(before) = lock(name).fetch_optional(&mut *connection).await? else {
        return Ok(None);
    };
    let after = OperatorAccount {
        role: role.unwrap_or(before.role),
        disabled: disabled.unwrap_or(before.disabled),
        ..before.clone()
    };
    if after == before {
        return Ok(Some(after));
    }
    sqlx::query!(
        "UPDATE operators SET role = $2, disabled = $3 WHERE name = $1",
        name as _,
        after.role as _,
        after.disabled,
    )
    .execute(&mut *connection)
    .await?;
    if after.disabled {
        sessions::end_all(&mut *connection, name).await?;
    }
    audit::write(
        connection,
        actor,
        "operator.change",
        name,
        Some(&before),
        Some(&after),
    )
    .await?;
    Ok(Some(after))
}

/// Locks an account until the end of the transaction.
pub(super) fn lock(
    name: &OperatorName,
) -> Statement<impl FnMut(PgRow) -> Result<OperatorAccount, sqlx::Error> + Send + use<>> {
    query_accounts!(
        "SELECT",
        "FROM operators WHERE name = $1 FOR NO KEY UPDATE",
        name as _
    )
}
