//! Operators: accounts with roles, API tokens, sessions and sign-in links stored as hashes, and bulk jobs.
//!
//! Every request of an operator reads its token or session here, so a revocation, a disabled account and a
//! changed role are in force on all nodes with their commit.

#![allow(
    clippy::missing_errors_doc,
    reason = "`StoreError` says when an operation of the store fails"
)]

pub mod bulk_jobs;
pub mod grants;
mod identities;
mod sessions;
mod sign_in_links;
mod token_state;
mod tokens;

use sqlx::postgres::{PgConnectOptions, PgRow};
use sqlx::{Connection as _, PgConnection};
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::operator::{OperatorAccount, OperatorName, OperatorTokenSummary, Role};
use vouchsafe_security::vault::grant_key::Grant;

pub use identities::{ProviderIdentity, ProviderSignIn};
pub use sessions::{NewSession, SessionHolder, SessionLookup, SessionUse};
pub use sign_in_links::{IssueLinkOutcome, issue_sign_in_link};
pub use tokens::{IssueTokenOutcome, MAX_LIVE_TOKENS, NewOperatorToken, SessionSpan, TokenHolder};

use self::grants::{Grants, StoredGrant};
use vouchsafe_database::database::{Database, Statement, connect};

/// Runs a statement that returns accounts.
macro_rules! query_accounts {
    ($before:literal, $after:literal $(, $argument:expr)* $(,)?) => {
        sqlx::query!(
            $before + r#" name AS "name: OperatorName", role AS "role: Role", disabled, active, created_at, mac "# + $after,
            $($argument),*
        )
        .map(|row| {
            let account = OperatorAccount {
                name: row.name,
                role: row.role,
                disabled: row.disabled,
                active: row.active,
                created_at: row.created_at,
            };
            let stored = stored_grant(&account, row.mac);
            (account, stored)
        })
    };
}

/// Operator accounts and their tokens.
#[derive(Debug, Clone)]
pub struct Operators(Database, Grants);

impl Operators {
    #[must_use]
    pub const fn new(database: Database, grants: Grants) -> Self {
        Self(database, grants)
    }

    /// Lists all operators in byte order of their names. Not paginated: there are few.
    #[boxed]
    pub async fn list(&self) -> Result<Vec<OperatorAccount>, StoreError> {
        let statement = query_accounts!("SELECT", r#"FROM operators ORDER BY name COLLATE "C""#);
        let accounts = self.0.fetch_all(statement).await?;
        Ok(accounts.into_iter().map(|(account, _)| account).collect())
    }

    /// Finds an account.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer, or the row has no valid HMAC.
    #[boxed]
    pub async fn find(&self, name: OperatorName) -> Result<Option<OperatorAccount>, StoreError> {
        let statement = query_accounts!("SELECT", "FROM operators WHERE name = $1", name as _);
        let Some((account, stored)) = self.0.fetch_optional(statement).await? else {
            return Ok(None);
        };
        self.1.check(&stored).map_err(sqlx::Error::from)?;
        Ok(Some(account))
    }

    /// Creates an operator, who is inactive until a token is activated, or active. Returns `None` if the name
    /// is taken.
    #[boxed]
    pub async fn create(
        &self,
        name: OperatorName,
        role: Role,
        active: bool,
        actor: AuditActor,
    ) -> Result<Option<OperatorAccount>, StoreError> {
        let grants = self.1.clone();
        transaction!(self.0, "operator.create", async |transaction| {
            insert(transaction, &grants, &name, role, active, &actor).await
        })
    }

    /// Changes role or state; `None` keeps the current one. Returns `None` if the operator does not exist.
    #[boxed]
    pub async fn change(
        &self,
        name: OperatorName,
        role: Option<Role>,
        disabled: Option<bool>,
        actor: AuditActor,
    ) -> Result<Option<OperatorAccount>, StoreError> {
        let grants = self.1.clone();
        transaction!(self.0, "operator.change", async |transaction| {
            let changes = AccountChanges {
                role,
                disabled,
                activates: false,
            };
            change(transaction, &grants, &name, changes, &actor).await
        })
    }
}

/// Creates an admin with a token on a connection of its own, without the service; an existing operator
/// becomes an enabled admin, also one whose row has no valid HMAC.
///
/// # Errors
/// [`StoreError`] when the database does not answer or is not migrated.
#[boxed]
pub async fn create_admin(
    database: &PgConnectOptions,
    grants: &Grants,
    token: &NewOperatorToken,
) -> Result<OperatorTokenSummary, StoreError> {
    let actor = AuditActor::command_line();
    let mut connection = connect(database).await?;
    let mut transaction = connection.begin().await?;
    let created = insert(
        &mut transaction,
        grants,
        &token.operator,
        Role::Admin,
        true,
        &actor,
    )
    .await?;
    if created.is_none() {
        let changes = AccountChanges {
            role: Some(Role::Admin),
            disabled: Some(false),
            activates: true,
        };
        let existing = lock(&token.operator).fetch_optional(&mut *transaction).await?;
        if let Some((before, _)) = existing {
            write_change(&mut transaction, grants, before, changes, &actor).await?;
        }
    }
    let issued = tokens::insert(&mut transaction, grants, token, &actor).await?;
    transaction.commit().await?;
    // A random token is not stored already.
    Ok(issued.ok_or(sqlx::Error::RowNotFound)?)
}

async fn insert(
    connection: &mut PgConnection,
    grants: &Grants,
    name: &OperatorName,
    role: Role,
    active: bool,
    actor: &AuditActor,
) -> Result<Option<OperatorAccount>, sqlx::Error> {
    let account = OperatorAccount {
        name: name.clone(),
        role,
        disabled: false,
        active,
        // Not in the HMAC: the database sets it.
        created_at: OffsetDateTime::UNIX_EPOCH,
    };
    let mac = grants.mac(&Grant::of_operator(&account))?;
    let created = query_accounts!(
        "INSERT INTO operators (name, role, active, mac) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING RETURNING",
        "",
        name as _,
        role as _,
        active,
        mac,
    );
    let created = created.fetch_optional(&mut *connection).await?;
    if let Some((account, _)) = &created {
        audit::write(
            connection,
            actor,
            AuditAction::CreateOperator,
            name,
            NO_STATE,
            Some(account),
        )
        .await?;
    }
    Ok(created.map(|(account, _)| account))
}

/// What changes of an account; `None` keeps the current value.
struct AccountChanges {
    role: Option<Role>,
    disabled: Option<bool>,
    activates: bool,
}

/// Changes an account, whose row must have a valid HMAC.
async fn change(
    connection: &mut PgConnection,
    grants: &Grants,
    name: &OperatorName,
    changes: AccountChanges,
    actor: &AuditActor,
) -> Result<Option<OperatorAccount>, sqlx::Error> {
    let Some(before) = lock_valid(connection, grants, name).await? else {
        return Ok(None);
    };
    let after = write_change(connection, grants, before, changes, actor).await?;
    Ok(Some(after))
}

async fn write_change(
    connection: &mut PgConnection,
    grants: &Grants,
    before: OperatorAccount,
    changes: AccountChanges,
    actor: &AuditActor,
) -> Result<OperatorAccount, sqlx::Error> {
    let name = &before.name;
    let after = OperatorAccount {
        role: changes.role.unwrap_or(before.role),
        disabled: changes.disabled.unwrap_or(before.disabled),
        active: before.active || changes.activates,
        ..before.clone()
    };
    let mac = grants.mac(&Grant::of_operator(&after))?;
    sqlx::query!(
        "UPDATE operators SET role = $2, disabled = $3, active = $4, mac = $5 WHERE name = $1",
        name as _,
        after.role as _,
        after.disabled,
        after.active,
        mac,
    )
    .execute(&mut *connection)
    .await?;
    if after == before {
        return Ok(after);
    }
    if after.disabled {
        sessions::end_all(&mut *connection, name, actor).await?;
    }
    audit::write(
        connection,
        actor,
        AuditAction::ChangeOperator,
        name,
        Some(&before),
        Some(&after),
    )
    .await?;
    Ok(after)
}

/// Locks an account, whose row must have a valid HMAC, until the end of the transaction.
async fn lock_valid(
    connection: &mut PgConnection,
    grants: &Grants,
    name: &OperatorName,
) -> Result<Option<OperatorAccount>, sqlx::Error> {
    let Some((account, stored)) = lock(name).fetch_optional(connection).await? else {
        return Ok(None);
    };
    grants.check(&stored)?;
    Ok(Some(account))
}

fn lock(
    name: &OperatorName,
) -> Statement<impl FnMut(PgRow) -> Result<(OperatorAccount, StoredGrant), sqlx::Error> + Send + use<>> {
    query_accounts!(
        "SELECT",
        "FROM operators WHERE name = $1 FOR NO KEY UPDATE",
        name as _
    )
}

fn stored_grant(account: &OperatorAccount, mac: Option<Vec<u8>>) -> StoredGrant {
    StoredGrant {
        table: "operators",
        id: account.name.to_string(),
        partner_id: None,
        grant: Grant::of_operator(account),
        mac,
    }
}

/// The rows of accounts, identities and tokens that are not revoked.
pub async fn list_grants(connection: &mut PgConnection) -> Result<Vec<StoredGrant>, sqlx::Error> {
    let accounts = query_accounts!("SELECT", r#"FROM operators ORDER BY name COLLATE "C""#);
    let accounts = accounts.fetch_all(&mut *connection).await?;
    let mut rows: Vec<_> = accounts.into_iter().map(|(_, stored)| stored).collect();
    rows.extend(identities::all().fetch_all(&mut *connection).await?);
    rows.extend(tokens::all_unrevoked().fetch_all(connection).await?);
    Ok(rows)
}
