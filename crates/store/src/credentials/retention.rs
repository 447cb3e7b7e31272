//! End of the credentials' retention.

use sqlx::PgConnection;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};

use super::Credentials;

/// How long ended credentials are listed. Days.
pub const ENDED_DAYS: i32 = 90;

/// Keeps the transaction of one purge short.
const PURGE_ROWS: u64 = 500;

impl Credentials {
    /// Deletes the credentials that ended more than [`ENDED_DAYS`] days ago and returns their number. The
    /// audit log keeps their history.
    #[boxed]
    pub async fn purge_ended(&self) -> Result<u64, StoreError> {
        let mut removed = 0;
        loop {
            let batch = transaction!(self.0, "credential.purge", async |transaction| {
                purge_batch(transaction).await
            })?;
            removed += batch;
            if batch < PURGE_ROWS {
                return Ok(removed);
            }
        }
    }
}

/// Deletes up to [`PURGE_ROWS`] ended credentials. Their successors still name them.
async fn purge_batch(transaction: &mut PgConnection) -> Result<u64, sqlx::Error> {
    let ended = sqlx::query_scalar!(
        "SELECT credential_id
           FROM credentials
          WHERE LEAST(revoked_at, not_after) < now() - make_interval(days => $1)
          ORDER BY LEAST(revoked_at, not_after)
          LIMIT $2
            FOR UPDATE SKIP LOCKED",
        ENDED_DAYS,
        PURGE_ROWS.cast_signed(),
    );
    let ended = ended.fetch_all(&mut *transaction).await?;
    let removed = sqlx::query!("DELETE FROM credentials WHERE credential_id = ANY ($1)", &ended);
    let removed = removed.execute(&mut *transaction).await?;
    Ok(removed.rows_affected())
}
