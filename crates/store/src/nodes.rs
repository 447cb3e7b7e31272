//! List of the deployment's nodes.

use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::node::NodeRow;

use super::node_identity::NodeIdentity;
use vouchsafe_database::database::Database;

/// The nodes of the deployment.
#[derive(Debug, Clone)]
pub struct Nodes(pub(super) Database);

impl Nodes {
    /// Reports the wrapping keys that this incarnation of a node has loaded.
    #[boxed]
    pub async fn report_wrapping_keys(
        &self,
        node: &NodeIdentity,
        wrapping_keys: Vec<String>,
    ) -> Result<(), StoreError> {
        let statement = sqlx::query!(
            "UPDATE nodes SET wrapping_keys = $3 WHERE node = $1 AND incarnation = $2",
            node.name,
            node.incarnation,
            &wrapping_keys,
        );
        self.0.execute(statement).await
    }

    /// Lists up to 1,000 nodes in byte order of their names. Reads every chunk that is not empty.
    #[boxed]
    pub async fn list(&self) -> Result<Vec<NodeRow>, StoreError> {
        let nodes = sqlx::query_as!(
            NodeRow,
            r#"SELECT n.node,
                      n.incarnation,
                      n.version,
                      CASE WHEN n.program_incarnation = n.incarnation THEN n.program_migration END AS migration,
                      n.started_at,
                      is_lease_live_v1(n.lease_until, n.renewed_at) AS "is_live!",
                      n.renewed_at,
                      n.lease_until,
                      count(c.claimed) AS "claimed_skus!",
                      COALESCE(sum(c.claimed), 0)::bigint AS "claimed_chunks!"
                 FROM nodes AS n
                 LEFT JOIN (
                      SELECT node, incarnation, count(*) AS claimed
                        FROM chunks
                       WHERE NOT emptied AND node IS NOT NULL
                       GROUP BY node, incarnation, product_id, denomination
                     ) AS c ON c.node = n.node AND c.incarnation = n.incarnation
                GROUP BY n.node
                ORDER BY n.node COLLATE "C"
                LIMIT 1000"#
        );
        self.0
            .run(|pool| async move { nodes.fetch_all(&pool).await })
            .await
    }
}
