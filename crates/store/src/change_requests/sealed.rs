//! Encrypted changes of requests that have not ended.

use std::collections::HashMap;

use uuid::Uuid;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::ids::ChangeRequestId;

use super::ChangeRequests;

impl ChangeRequests {
    /// The encrypted changes of those of these requests that have not ended.
    #[boxed]
    pub async fn find_sealed(
        &self,
        request_ids: Vec<ChangeRequestId>,
    ) -> Result<HashMap<ChangeRequestId, Vec<u8>>, StoreError> {
        let ids: Vec<Uuid> = request_ids.iter().map(|id| id.as_uuid()).collect();
        let statement = sqlx::query!(
            r#"SELECT request_id AS "request_id: ChangeRequestId", sealed AS "sealed!"
                 FROM change_requests
                WHERE request_id = ANY ($1) AND sealed IS NOT NULL"#,
            &ids,
        )
        .map(|row| (row.request_id, row.sealed));
        Ok(self.0.fetch_all(statement).await?.into_iter().collect())
    }
}
