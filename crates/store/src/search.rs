//! Search by id or by an order's reference: one index probe per kind of object that the text can name.
//!
//! The keys of orders and ledger entries begin with the partner: they take one probe per partner, like the
//! operators' order list. No statement reads a table of codes.

use sqlx::PgPool;
use uuid::Uuid;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::ids::{
    ChangeRequestId, CredentialId, DeliveryId, DriftId, OrderId, PartnerId, PayoutId, TransactionId,
    VoucherId, WebhookId,
};
use vouchsafe_domain::product::parse_slug;
use vouchsafe_domain::search::{ObjectKind, SearchResult};

use vouchsafe_database::database::Database;

/// Search over all kinds of objects.
#[derive(Debug, Clone)]
pub struct Search(pub(super) Database);

/// Selects the partner, the order and the label of the object with an id.
macro_rules! select_object {
    ($kind:ident, $id:expr, $sql:literal) => {{
        let id = $id.to_string();
        sqlx::query!(
            r#"SELECT partner_id AS "partner_id?: PartnerId", order_id AS "order_id?: OrderId", label AS "label?" FROM ("#
                + $sql
                + ") AS o (partner_id, order_id, label)",
            $id as _,
        )
        .map(move |row| SearchResult {
            kind: ObjectKind::$kind,
            id: id.clone(),
            partner_id: row.partner_id,
            order_id: row.order_id,
            label: row.label,
        })
    }};
}

impl Search {
    /// Finds up to `limit` objects: those with this id, then orders with this reference, newest first.
    #[boxed]
    pub async fn find(&self, text: String, limit: usize) -> Result<Vec<SearchResult>, StoreError> {
        self.0
            .run(move |pool| async move {
                let mut found = find_by_id(&pool, &text).await?;
                let rest = limit.saturating_sub(found.len());
                found.extend(find_orders_by_reference(&pool, text, rest).await?);
                Ok(found)
            })
            .await
    }
}

async fn find_by_id(pool: &PgPool, text: &str) -> Result<Vec<SearchResult>, sqlx::Error> {
    /// Runs the statement if the text is an id of this type.
    macro_rules! probe {
        ($id:ty, $kind:ident, $sql:literal) => {
            if let Ok(id) = text.parse::<$id>() {
                return select_object!($kind, id, $sql).fetch_all(pool).await;
            }
        };
    }
    probe!(
        PartnerId,
        Partner,
        "SELECT partner_id, NULL::uuid, name FROM partners WHERE partner_id = $1"
    );
    probe!(
        ChangeRequestId,
        Request,
        "SELECT NULL::uuid, NULL::uuid, status FROM change_requests WHERE request_id = $1"
    );
    probe!(
        CredentialId,
        Credential,
        "SELECT partner_id, NULL::uuid, NULL::text FROM credentials WHERE credential_id = $1"
    );
    probe!(
        OrderId,
        Order,
        "SELECT o.partner_id, o.order_id, o.status
           FROM partners AS p
          CROSS JOIN LATERAL (
                SELECT * FROM orders AS o WHERE o.partner_id = p.partner_id AND o.order_id = $1 LIMIT 1
               ) AS o"
    );
    probe!(
        VoucherId,
        Voucher,
        "SELECT partner_id, order_id, NULL::text FROM allocations WHERE voucher_id = $1"
    );
    probe!(
        Uuid,
        Purchase,
        "SELECT partner_id, order_id, vendor FROM purchases WHERE purchase_id = $1"
    );
    probe!(
        TransactionId,
        Transaction,
        "SELECT l.partner_id, l.order_id, l.kind
           FROM partners AS p
          CROSS JOIN LATERAL (
                SELECT * FROM ledger AS l WHERE l.partner_id = p.partner_id AND l.transaction_id = $1 LIMIT 1
               ) AS l"
    );
    probe!(
        PayoutId,
        Payout,
        "SELECT partner_id, NULL::uuid, status FROM payouts WHERE payout_id = $1"
    );
    probe!(
        DriftId,
        Drift,
        "SELECT partner_id, order_id, resolution FROM drifts WHERE drift_id = $1"
    );
    probe!(
        WebhookId,
        Webhook,
        "SELECT partner_id, NULL::uuid, url FROM webhooks WHERE webhook_id = $1"
    );
    probe!(
        DeliveryId,
        Delivery,
        "SELECT partner_id, order_id, state FROM deliveries WHERE delivery_id = $1"
    );
    let Ok(slug) = parse_slug(text).map(ToOwned::to_owned) else {
        return Ok(Vec::new());
    };
    let mut found = select_object!(
        Product,
        slug,
        "SELECT NULL::uuid, NULL::uuid, name FROM products WHERE product_id = $1"
    )
    .fetch_all(pool)
    .await?;
    let vendor = select_object!(
        Vendor,
        slug,
        "SELECT NULL::uuid, NULL::uuid, adapter FROM vendors WHERE vendor_id = $1"
    );
    found.extend(vendor.fetch_optional(pool).await?);
    let category = select_object!(
        Category,
        slug,
        "SELECT NULL::uuid, NULL::uuid, name FROM categories WHERE category_id = $1"
    );
    found.extend(category.fetch_optional(pool).await?);
    Ok(found)
}

async fn find_orders_by_reference(
    pool: &PgPool,
    reference: String,
    limit: usize,
) -> Result<Vec<SearchResult>, sqlx::Error> {
    sqlx::query!(
        r#"SELECT o.partner_id AS "partner_id: PartnerId", o.order_id AS "order_id: OrderId", o.status
             FROM partners AS p
            CROSS JOIN LATERAL (
                  SELECT *
                    FROM orders AS o
                   WHERE o.partner_id = p.partner_id AND o.reference = $1
                   ORDER BY o.order_id DESC
                   LIMIT $2
                 ) AS o
            ORDER BY o.order_id DESC
            LIMIT $2"#,
        reference,
        to_bigint(limit),
    )
    .map(|row| SearchResult {
        kind: ObjectKind::Order,
        id: row.order_id.to_string(),
        partner_id: Some(row.partner_id),
        order_id: Some(row.order_id),
        label: Some(row.status),
    })
    .fetch_all(pool)
    .await
}
