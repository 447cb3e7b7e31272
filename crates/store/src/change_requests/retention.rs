//! End of the requests' retention.

use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;

use super::ChangeRequests;

/// Days for which a request stays listed. The audit trail keeps its entries.
const REQUEST_DAYS: i32 = 366;

impl ChangeRequests {
    /// Deletes the requests that ended and were made a year ago, by the database's clock.
    #[boxed]
    pub async fn purge_ended(&self) -> Result<(), StoreError> {
        // `requested_at` decides. The ID begins with the time of the request by a node's clock, which may be
        // wrong; by it the primary key finds nothing or a few rows.
        let statement = sqlx::query!(
            "DELETE FROM change_requests
              WHERE request_id < (lpad(to_hex((extract(epoch FROM now() - make_interval(days => $1)) * 1000)::bigint), 12, '0')
                                  || '00000000000000000000')::uuid
                AND requested_at < now() - make_interval(days => $1)
                AND status IN ('EXECUTED', 'REFUSED', 'DECLINED', 'EXPIRED')",
            REQUEST_DAYS,
        );
        self.0.execute(statement).await
    }
}
