//! The rows that grant access, and the one-time computation of their HMACs in a database of an earlier version.

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use vouchsafe_audit_log::{self as audit, AuditActor, NO_STATE};
use vouchsafe_database::boxed;
use vouchsafe_database::database::connect;
use vouchsafe_database::error::StoreError;
use vouchsafe_operators::grants::StoredGrant;
use vouchsafe_security::vault::grant_key::GrantKey;

pub use vouchsafe_operators::grants::is_sealed;

use super::{credentials, partners};

/// Result of computing the HMACs of a database of an earlier version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealOutcome {
    /// Number of rows.
    Sealed(usize),
    /// It was done before, and is never done again: a row that was planted since would get an HMAC.
    SealedBefore,
}

/// Computes the HMACs of all rows, with an audit entry for each, and ends all sessions. Needs the rights of the database's owner.
///
/// # Errors
/// [`StoreError`] when the database does not answer, or the role may not do it.
#[boxed]
pub async fn seal(database: &PgConnectOptions, key: &GrantKey) -> Result<SealOutcome, StoreError> {
    let mut connection = connect(database).await?;
    let mut transaction = connection.begin().await?;
    // Writers of the service wait until the end.
    sqlx::query!(
        "LOCK TABLE partners, credentials, operators, operator_tokens, operator_sessions, operator_sign_in_links, operator_identities
           IN SHARE ROW EXCLUSIVE MODE"
    )
    .execute(&mut *transaction)
    .await?;
    // Not checked at compile time: checked statements are those that the service's role has the rights of.
    let sealed = sqlx::query("INSERT INTO grant_seal DEFAULT VALUES ON CONFLICT DO NOTHING");
    if sealed.execute(&mut *transaction).await?.rows_affected() == 0 {
        return Ok(SealOutcome::SealedBefore);
    }
    sqlx::query!("UPDATE operator_sessions SET ended_at = now() WHERE ended_at IS NULL")
        .execute(&mut *transaction)
        .await?;
    sqlx::query!("DELETE FROM operator_sign_in_links")
        .execute(&mut *transaction)
        .await?;
    let rows = list(&mut transaction).await?;
    for row in &rows {
        write_mac(&mut transaction, row, &key.mac(&row.grant)).await?;
        let actor = AuditActor::command_line();
        audit::write(
            &mut transaction,
            &actor,
            "grant.seal",
            &row.id,
            NO_STATE,
            NO_STATE,
        )
        .await?;
    }
    transaction.commit().await?;
    Ok(SealOutcome::Sealed(rows.len()))
}

/// Not checked at compile time: the table is one of five.
async fn write_mac(connection: &mut PgConnection, row: &StoredGrant, mac: &[u8]) -> Result<(), sqlx::Error> {
    let (table, key) = match row.table {
        "partners" => ("partners", "'ptn_' || replace(partner_id::text, '-', '')"),
        "credentials" => ("credentials", "'cred_' || replace(credential_id::text, '-', '')"),
        "operators" => ("operators", "name"),
        "operator_tokens" => ("operator_tokens", "'otk_' || replace(token_id::text, '-', '')"),
        _ => ("operator_identities", "operator"),
    };
    let sql = format!("UPDATE {table} SET mac = $1 WHERE {key} = $2");
    let update = sqlx::query(AssertSqlSafe(sql)).bind(mac).bind(&row.id);
    update.execute(connection).await.map(drop)
}

/// All rows that grant something, but for sessions and links, which end within hours.
///
/// # Errors
/// [`StoreError`] when the database does not answer.
#[boxed]
pub async fn list(connection: &mut PgConnection) -> Result<Vec<StoredGrant>, StoreError> {
    let mut rows = Vec::new();
    let partners = partners::all().fetch_all(&mut *connection).await?;
    rows.extend(partners.into_iter().map(|(_, row)| row));
    let credentials = credentials::all_unrevoked().fetch_all(&mut *connection).await?;
    rows.extend(credentials.into_iter().map(|(_, row)| row));
    rows.extend(vouchsafe_operators::list_grants(connection).await?);
    Ok(rows)
}
