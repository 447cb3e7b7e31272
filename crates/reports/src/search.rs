//! Search by the beginning of an id, by a part of a name, or by an order's reference or trace.
//!
//! An id takes one index probe in the table of its kind. The keys of orders and ledger entries begin with the
//! partner: they take one probe per partner, like the operators' order list. A trace ID takes a pass over the
//! Bloom filters of all orders, 3 bytes an order, and the pages since the last visit of autovacuum. Names are
//! compared in the small tables of partners, operators and the catalogue. No statement reads a table of
//! codes.

use sqlx::{Executor as _, PgPool};
use uuid::Uuid;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_domain::ids::{
    ChangeRequestId, CredentialId, DeliveryId, DriftId, OrderId, PartnerId, PayoutId, TransactionId,
    VoucherId, WebhookId,
};
use vouchsafe_domain::order::trace::parse_trace_id;
use vouchsafe_domain::search::{ObjectKind, SearchResult};

use vouchsafe_database::database::Database;

/// Search over all kinds of objects.
#[derive(Debug, Clone)]
pub struct Search(Database);

/// Digits of an id from which it is searched by its beginning.
const LEAST_DIGITS: usize = 4;

const DIGITS: usize = 32;

/// A row of a search: the id of its object is made of `uuid`.
struct Found {
    partner_id: Option<PartnerId>,
    order_id: Option<OrderId>,
    label: Option<String>,
    uuid: Uuid,
}

/// The least and the greatest UUID of the ids with this prefix that begin with a text.
fn id_range(text: &str, prefix: &str) -> Option<(Uuid, Uuid)> {
    let digits = text.strip_prefix(prefix)?;
    let is_beginning = (LEAST_DIGITS..=DIGITS).contains(&digits.len())
        && digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let bound = |digit: char| {
        let missing = std::iter::repeat_n(digit, DIGITS - digits.len());
        Uuid::try_parse(&digits.chars().chain(missing).collect::<String>()).ok()
    };
    is_beginning.then(|| bound('0').zip(bound('f'))).flatten()
}

impl Search {
    #[must_use]
    pub const fn new(database: Database) -> Self {
        Self(database)
    }

    /// Finds up to `limit` objects: those whose id begins with this text, newest first, or those with this
    /// text in their name; then orders with this trace ID or reference, newest first.
    #[boxed]
    pub async fn find(&self, text: String, limit: usize) -> Result<Vec<SearchResult>, StoreError> {
        self.0
            .run(move |pool| async move {
                let mut found = find_by_id(&pool, &text, limit).await?;
                if found.is_empty() {
                    found = find_by_name(&pool, &text, limit).await?;
                }
                if let Some(trace_id) = parse_trace_id(&text) {
                    found.extend(find_orders_by_trace(&pool, trace_id, to_bigint(limit)).await?);
                }
                let rest = limit.saturating_sub(found.len());
                found.extend(find_orders_by_reference(&pool, text, to_bigint(rest)).await?);
                Ok(found)
            })
            .await
    }
}

async fn find_by_id(pool: &PgPool, text: &str, limit: usize) -> Result<Vec<SearchResult>, sqlx::Error> {
    let limit = to_bigint(limit);
    /// Runs the statement if the text is the beginning of an id of this type. It selects the ids from `$1` to
    /// `$2`, and where it must look at many of them at most `$3`.
    macro_rules! probe {
        ($range:expr, $kind:ident, $to_text:expr, $($sql:literal)+) => {
            if let Some((first, last)) = $range {
                let found = sqlx::query_as!(
                    Found,
                    r#"SELECT partner_id AS "partner_id?: PartnerId", order_id AS "order_id?: OrderId", label AS "label?", uuid AS "uuid!" FROM ("#
                        $(+ $sql)+
                        + ") AS o (partner_id, order_id, label, uuid) ORDER BY uuid DESC LIMIT $3",
                    first,
                    last,
                    limit,
                );
                let found = found.fetch_all(pool).await?;
                return Ok(found
                    .into_iter()
                    .map(|row| SearchResult {
                        kind: ObjectKind::$kind,
                        id: $to_text(row.uuid),
                        partner_id: row.partner_id,
                        order_id: row.order_id,
                        label: row.label,
                    })
                    .collect());
            }
        };
        ($id:ty, $kind:ident, $($sql:literal)+) => {
            probe!(
                id_range(text, <$id>::PREFIX),
                $kind,
                |uuid| <$id>::from_uuid(uuid).to_string(),
                $($sql)+
            )
        };
        // The keys of the table begin with the partner.
        ($id:ty, $kind:ident, $table:literal, $key:literal, $label:literal) => {
            probe!($id, $kind,
                "SELECT o.* FROM partners AS p CROSS JOIN LATERAL (SELECT o.partner_id, o.order_id, o."
                $label ", o." $key " FROM " $table " AS o WHERE o.partner_id = p.partner_id AND o."
                $key " BETWEEN $1 AND $2 ORDER BY o." $key " DESC LIMIT $3) AS o"
            )
        };
    }
    probe!(
        PartnerId,
        Partner,
        "SELECT partner_id, NULL::uuid, name, partner_id FROM partners WHERE partner_id BETWEEN $1 AND $2"
    );
    probe!(
        ChangeRequestId,
        Request,
        "SELECT NULL::uuid, NULL::uuid, status, request_id FROM change_requests WHERE request_id BETWEEN $1 AND $2"
    );
    probe!(
        CredentialId,
        Credential,
        "SELECT partner_id, NULL::uuid, NULL::text, credential_id FROM credentials WHERE credential_id BETWEEN $1 AND $2"
    );
    probe!(OrderId, Order, "orders", "order_id", "status");
    probe!(
        VoucherId,
        Voucher,
        "SELECT partner_id, order_id, NULL::text, voucher_id FROM allocations WHERE voucher_id BETWEEN $1 AND $2"
    );
    probe!(
        text.parse::<Uuid>().ok().map(|uuid| (uuid, uuid)),
        Purchase,
        |uuid: Uuid| uuid.to_string(),
        "SELECT partner_id, order_id, vendor, purchase_id FROM purchases WHERE purchase_id BETWEEN $1 AND $2"
    );
    probe!(TransactionId, Transaction, "ledger", "transaction_id", "kind");
    probe!(
        PayoutId,
        Payout,
        "SELECT partner_id, NULL::uuid, status, payout_id FROM payouts WHERE payout_id BETWEEN $1 AND $2"
    );
    probe!(
        DriftId,
        Drift,
        "SELECT partner_id, order_id, resolution, drift_id FROM drifts WHERE drift_id BETWEEN $1 AND $2"
    );
    probe!(
        WebhookId,
        Webhook,
        "SELECT partner_id, NULL::uuid, url, webhook_id FROM webhooks WHERE webhook_id BETWEEN $1 AND $2"
    );
    probe!(
        DeliveryId,
        Delivery,
        "SELECT partner_id, order_id, state, delivery_id FROM deliveries WHERE delivery_id BETWEEN $1 AND $2"
    );
    Ok(Vec::new())
}

/// Objects whose name or chosen id contains the text, in either case of ASCII letters.
async fn find_by_name(pool: &PgPool, text: &str, limit: usize) -> Result<Vec<SearchResult>, sqlx::Error> {
    sqlx::query!(
        r#"SELECT kind AS "kind!: ObjectKind", id AS "id!", label AS "label!", partner_id AS "partner_id?: PartnerId"
             FROM (SELECT 'partner', 'ptn_' || replace(partner_id::text, '-', ''), name, partner_id, 1, name FROM partners
                    UNION ALL SELECT 'product', product_id, name, NULL, 2, product_id || ' ' || name FROM products
                    UNION ALL SELECT 'vendor', vendor_id, adapter, NULL, 3, vendor_id FROM vendors
                    UNION ALL SELECT 'category', category_id, name, NULL, 4, category_id || ' ' || name FROM categories
                    UNION ALL SELECT 'operator', name, role, NULL, 5, name FROM operators
                  ) AS o (kind, id, label, partner_id, position, searched)
            WHERE strpos(lower(searched), lower($1)) > 0
            ORDER BY id <> $1, position, lower(label), id
            LIMIT $2"#,
        text,
        to_bigint(limit),
    )
    .map(|row| SearchResult {
        kind: row.kind,
        id: row.id,
        partner_id: row.partner_id,
        order_id: None,
        label: Some(row.label),
    })
    .fetch_all(pool)
    .await
}

/// A statement that selects partner, id and status of orders.
macro_rules! find_orders {
    ($pool:expr, $sql:literal, $($value:expr),+) => {
        sqlx::query!(
            r#"SELECT partner_id AS "partner_id: PartnerId", order_id AS "order_id: OrderId", status FROM ("#
                + $sql
                + ") AS o ORDER BY order_id DESC LIMIT $2",
            $($value),+
        )
        .map(|row| SearchResult {
            kind: ObjectKind::Order,
            id: row.order_id.to_string(),
            partner_id: Some(row.partner_id),
            order_id: Some(row.order_id),
            label: Some(row.status),
        })
        .fetch_all($pool)
        .await
    };
}

async fn find_orders_by_reference(
    pool: &PgPool,
    reference: String,
    limit: i64,
) -> Result<Vec<SearchResult>, sqlx::Error> {
    find_orders!(
        pool,
        "SELECT o.* FROM partners AS p CROSS JOIN LATERAL (
                SELECT partner_id, order_id, status FROM orders AS o
                 WHERE o.partner_id = p.partner_id AND o.reference = $1 ORDER BY o.order_id DESC LIMIT $2) AS o",
        reference,
        limit
    )
}

async fn find_orders_by_trace(
    pool: &PgPool,
    trace_id: Uuid,
    limit: i64,
) -> Result<Vec<SearchResult>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    // The planner assumes that a search for a random value reads every range of pages.
    transaction.execute("SET LOCAL enable_seqscan = off").await?;
    find_orders!(
        &mut *transaction,
        "SELECT partner_id, order_id, status FROM orders WHERE substring(trace FROM 1 FOR 16) = $1",
        trace_id.as_bytes(),
        limit
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_of_an_id_is_a_range() {
        let range = |text: &str| {
            let range = id_range(text, "ord_")?;
            Some(<[Uuid; 2]>::from(range).map(|uuid| uuid.simple().to_string()))
        };
        let bounds = ["0", "f"].map(|digit| format!("01a2{}", digit.repeat(28)));
        assert_eq!(range("ord_01a2"), Some(bounds));
        let whole = "0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";
        assert_eq!(
            range(&format!("ord_{whole}")),
            Some([whole; 2].map(str::to_owned))
        );
        for text in [
            "ord_",
            "ord_01a",
            "ord_01A2",
            "ord_01g2",
            "ptn_01a2",
            &format!("ord_{whole}0"),
        ] {
            assert_eq!(range(text), None, "{text}");
        }
    }
}
