//! Claims of stock that come at once go together: after a start the first order of each SKU claims its stock, and a catalogue
//! of ten thousand would wait for as many commits.

use sqlx::PgPool;
use vouchsafe_actors::domain::stock::{ClaimedStock, StockRequest};

use super::inventory;
use super::nodes::NodeIdentity;
use super::together::{BatchOp, Outcomes};

/// Claims stock for a node.
#[derive(Debug, Clone)]
pub(super) struct ClaimStock(pub(super) NodeIdentity);

impl BatchOp for ClaimStock {
    type Request = StockRequest;
    type Answer = ClaimedStock;

    const MOST: usize = 32;

    /// If the shelf of one is gone, the chunks are this node's all the same, and come with the next claim.
    async fn together(
        self,
        pool: PgPool,
        requests: Vec<StockRequest>,
    ) -> Result<Outcomes<ClaimedStock>, sqlx::Error> {
        let claimed = inventory::claim_in_one_round(&pool, &self.0, requests).await?;
        Ok(claimed.into_iter().map(|claimed| claimed.map(Ok)).collect())
    }

    /// What was taken for it together with others is this node's, and comes again.
    async fn alone(self, pool: PgPool, request: StockRequest) -> Result<ClaimedStock, sqlx::Error> {
        inventory::claim(&pool, &self.0, request).await
    }
}
