//! List of the rows that grant access.

use sqlx::PgConnection;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_operators::grants::StoredGrant;

use super::{credentials, partners};

/// All rows that grant something, but for sessions and links, which end within hours.
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
