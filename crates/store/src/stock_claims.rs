//! Batched stock claims. After a start the first order of each SKU claims stock; without batching, a
//! catalogue of 10,000 SKUs would need as many commits.

use sqlx::PgPool;
use vouchsafe_domain::stock::{ClaimedStock, StockRequest};

use super::inventory;
use super::node_identity::NodeIdentity;
use vouchsafe_database::batcher::{BatchOp, BatchResponse};

/// Claims stock for a node; see [`super::inventory`].
#[derive(Debug, Clone)]
pub(super) struct ClaimStockOp(pub(super) NodeIdentity);

impl BatchOp for ClaimStockOp {
    type Request = StockRequest;
    type Response = ClaimedStock;

    const MAX_BATCH: usize = 32;

    /// A claim can wait for chunks that another node holds.
    const WORKERS: usize = 2;

    /// If a caller has disconnected, the node owns the chunks nevertheless and gets them again with the next
    /// claim.
    async fn execute_batch(
        self,
        pool: PgPool,
        requests: Vec<StockRequest>,
    ) -> Result<BatchResponse<ClaimedStock>, sqlx::Error> {
        let claimed = inventory::claim_batch(&pool, &self.0, requests).await?;
        Ok(claimed.into_iter().map(|claimed| claimed.map(Ok)).collect())
    }

    /// Also returns the chunks that the failed batch claimed: the node owns them already.
    async fn execute_one(self, pool: PgPool, request: StockRequest) -> Result<ClaimedStock, sqlx::Error> {
        inventory::claim(&pool, &self.0, request).await
    }
}
