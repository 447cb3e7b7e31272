//! End of the requests' retention.

use time::OffsetDateTime;
use vouchsafe_database::boxed;
use vouchsafe_domain::ids::ChangeRequestId;

use super::ChangeRequests;

/// Days for which a request stays listed. The audit trail keeps its entries.
const REQUEST_DAYS: i32 = 366;

impl ChangeRequests {
    /// Deletes the requests that ended and were made a year ago.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    #[boxed]
    pub async fn purge_ended(&self, now: OffsetDateTime) -> Result<(), sqlx::Error> {
        // By the ID, which begins with the time of the request: the primary key finds nothing or a few rows.
        let oldest = ChangeRequestId::lower_bound_at(now - time::Duration::days(REQUEST_DAYS.into()));
        let statement = sqlx::query!(
            "DELETE FROM change_requests
              WHERE request_id < $1
                AND status IN ('EXECUTED', 'REFUSED', 'DECLINED', 'EXPIRED')",
            oldest as _,
        );
        self.0.execute(statement).await
    }
}
