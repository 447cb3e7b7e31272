//! Due purchases, and changes of the claims and delays of many. One purchase is claimed and released by
//! [`super::writes`].

use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;

use uuid::Uuid;
use vouchsafe_actors::ports::vendors::DuePurchase;
use vouchsafe_domain::ids::OrderId;

use crate::purchases::Purchases;

/// Lifetime of a claim. Longer than the timeout of a vendor request. Seconds.
pub(super) const CLAIM_S: i32 = 120;

impl Purchases {
    /// Lists up to `limit` unclaimed purchases of a vendor that are due for a request, those that are due
    /// longest first.
    #[boxed]
    pub async fn list_due(&self, vendor: String, limit: usize) -> Result<Vec<DuePurchase>, StoreError> {
        let statement = sqlx::query_as!(
            DuePurchase,
            r#"SELECT purchase_id AS "purchase_id!", order_id AS "order_id!: OrderId" FROM list_due_purchases_v1($1, $2)"#,
            vendor,
            to_bigint(limit),
        );
        self.0.fetch_all(statement).await
    }

    /// Releases the claims of earlier incarnations of this node on a vendor's purchases.
    #[boxed]
    pub async fn release_claims(&self, node: String, vendor: String) -> Result<(), StoreError> {
        let statement = sqlx::query!(
            "UPDATE purchases
                SET claimed_until = NULL
              WHERE NOT ended AND vendor = $2 AND claimed_by = $1",
            node,
            vendor,
        );
        self.0.execute(statement).await
    }

    /// Makes an open purchase due at once.
    #[boxed]
    pub async fn expedite(&self, purchase_id: Uuid) -> Result<(), StoreError> {
        let statement = sqlx::query!(
            "UPDATE purchases SET next_at = clock_timestamp() WHERE purchase_id = $1 AND NOT ended",
            purchase_id,
        );
        self.0.execute(statement).await
    }

    /// Shortens the delays and claims of open purchases that last longer than any delay or claim: the
    /// database's clock was set back since. The longest delay is an hour, the bound of a vendor's
    /// `Retry-After`. A claim keeps its usual time, since its node may be calling the vendor.
    #[boxed]
    pub async fn expedite_after_clock_change(&self) -> Result<(), StoreError> {
        let statement = sqlx::query!(
            "UPDATE purchases
                SET next_at = LEAST(next_at, clock_timestamp()),
                    claimed_until = CASE -- LEAST would claim what nobody has claimed
                        WHEN claimed_until IS NOT NULL
                        THEN LEAST(claimed_until, clock_timestamp() + make_interval(secs => $1))
                    END
              WHERE NOT ended
                AND (next_at > clock_timestamp() + interval '1 hour 10 seconds'
                     OR claimed_until > clock_timestamp() + make_interval(secs => $1) + interval '10 seconds')",
            f64::from(CLAIM_S),
        );
        self.0.execute(statement).await
    }
}
