//! Check of the rows that grant access: each has its HMAC under the vault's key.

use sqlx::PgConnection;
use vouchsafe_security::vault::grant_key::GrantKey;
use vouchsafe_store::{StoreError, grants};
use vouchsafe_verify::Finding;

/// Violations that are shown.
const MAX_ROWS: usize = 20;

pub(super) async fn check(connection: &mut PgConnection, key: &GrantKey) -> Result<Finding, StoreError> {
    let stored = grants::list(connection).await?;
    let forged = stored
        .iter()
        .filter(|row| !key.is_mac_of(row.mac.as_deref(), &row.grant));
    let mut rows: Vec<String> = forged.map(|row| format!("{} {}", row.table, row.id)).collect();
    let has_more = rows.len() > MAX_ROWS;
    rows.truncate(MAX_ROWS);
    Ok(Finding {
        name: "access.mac",
        description: "a row that grants access has its HMAC under the vault's key",
        holds: rows.is_empty(),
        rows,
        has_more,
    })
}
