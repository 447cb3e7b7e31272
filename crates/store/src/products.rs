//! Catalogue products.
//!
//! The currency of a product never changes, and its brand is fixed once it has had stock: the brand is part of the keyed hash
//! that detects duplicate codes, and a face value in minor units means something else in another currency.

mod row;

use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::view::ProductView;
use vouchsafe_domain::product::{Product, ProductId};

use self::row::{ProductRow, approval_label, route_label};
use super::audit::{self, AuditAction, AuditActor, to_bigint};
use super::database::Database;

/// Result of creating or replacing a product.
#[derive(Debug, Clone, PartialEq)]
pub enum PutProductOutcome {
    Created(Product),
    Replaced(Product),
    CategoryNotFound,
    VendorNotFound,
    /// Rejected: orders and stock store face values in minor units of the currency.
    CurrencyFixed,
    /// Rejected: the blind indexes of its stock contain the brand.
    BrandFixed,
}

/// Products of the catalogue.
#[derive(Debug, Clone)]
pub struct Products(pub(super) Database);

impl Products {
    /// Loads all products, at the start.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn load_all(&self) -> Result<Vec<Product>, sqlx::Error> {
        self.0
            .run(|pool| async move {
                let found: Vec<ProductRow> =
                    sqlx::query_as("SELECT * FROM products").fetch_all(&pool).await?;
                found.into_iter().map(Product::try_from).collect()
            })
            .await
    }

    /// Finds a product.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find(&self, product_id: ProductId) -> Result<Option<Product>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let found: Option<ProductRow> =
                    sqlx::query_as("SELECT * FROM products WHERE product_id = $1")
                        .bind(product_id.as_str())
                        .fetch_optional(&pool)
                        .await?;
                found.map(Product::try_from).transpose()
            })
            .await
    }

    /// Lists up to `limit` products by id, after the id `after`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list(&self, after: Option<String>, limit: usize) -> Result<Vec<Product>, sqlx::Error> {
        self.0
            .run(move |pool| async move { list(&pool, after, limit).await })
            .await
    }

    /// Creates a product or replaces the one with its id. The database sets `updated_at`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn put(&self, product: Product, actor: AuditActor) -> Result<PutProductOutcome, sqlx::Error> {
        self.0
            .run(move |pool| async move { put(&pool, product, &actor).await })
            .await
    }
}

async fn list(pool: &PgPool, after: Option<String>, limit: usize) -> Result<Vec<Product>, sqlx::Error> {
    let found: Vec<ProductRow> = sqlx::query_as(
        "SELECT *
           FROM products
          WHERE $1::text IS NULL OR product_id > $1
          ORDER BY product_id
          LIMIT $2",
    )
    .bind(after)
    .bind(to_bigint(limit))
    .fetch_all(pool)
    .await?;
    found.into_iter().map(Product::try_from).collect()
}

async fn put(
    pool: &PgPool,
    mut product: Product,
    actor: &AuditActor,
) -> Result<PutProductOutcome, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM categories WHERE category_id = $1)")
        .bind(&product.category_id)
        .fetch_one(&mut *transaction)
        .await?;
    if !exists {
        return Ok(PutProductOutcome::CategoryNotFound);
    }
    let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM vendors WHERE vendor_id = $1)")
        .bind(&product.vendor)
        .fetch_one(&mut *transaction)
        .await?;
    if !exists {
        return Ok(PutProductOutcome::VendorNotFound);
    }
    // An import locks the row, too, so no stock can be added between the check below and the commit.
    let before = lock(&mut transaction, &product.product_id).await?;
    if let Some(before) = &before {
        if before.currency != product.currency {
            return Ok(PutProductOutcome::CurrencyFixed);
        }
        if before.brand != product.brand && has_stock(&mut transaction, &product.product_id).await? {
            return Ok(PutProductOutcome::BrandFixed);
        }
    }
    product.updated_at = write(&mut transaction, &product).await?;
    let action = AuditAction {
        name: "product.put",
        subject: product.product_id.as_str(),
    };
    let (view_before, view) = (before.as_ref().map(ProductView::of), ProductView::of(&product));
    audit::write(&mut transaction, actor, action, view_before.as_ref(), Some(&view)).await?;
    transaction.commit().await?;
    Ok(if before.is_some() {
        PutProductOutcome::Replaced(product)
    } else {
        PutProductOutcome::Created(product)
    })
}

async fn lock(connection: &mut PgConnection, product_id: &ProductId) -> Result<Option<Product>, sqlx::Error> {
    let found: Option<ProductRow> =
        sqlx::query_as("SELECT * FROM products WHERE product_id = $1 FOR NO KEY UPDATE")
            .bind(product_id.as_str())
            .fetch_optional(connection)
            .await?;
    found.map(Product::try_from).transpose()
}

/// Whether stock was ever imported. Chunks are not deleted when they are sold out.
async fn has_stock(connection: &mut PgConnection, product_id: &ProductId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM chunks WHERE product_id = $1)")
        .bind(product_id.as_str())
        .fetch_one(connection)
        .await
}

async fn write(connection: &mut PgConnection, product: &Product) -> Result<OffsetDateTime, sqlx::Error> {
    let minor = |amount: Amount| amount.minor();
    let range = product.denomination_range;
    sqlx::query_scalar(
        "INSERT INTO products (product_id, name, brand, category_id, vendor, currency, countries, denominations,
                               range_min, range_max, range_step, expiry_policy, redemption, route, approval,
                               returnable, min_validity_days, low_stock_at, discontinued)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
         ON CONFLICT (product_id) DO UPDATE
            SET name = EXCLUDED.name,
                brand = EXCLUDED.brand,
                category_id = EXCLUDED.category_id,
                vendor = EXCLUDED.vendor,
                currency = EXCLUDED.currency,
                countries = EXCLUDED.countries,
                denominations = EXCLUDED.denominations,
                range_min = EXCLUDED.range_min,
                range_max = EXCLUDED.range_max,
                range_step = EXCLUDED.range_step,
                expiry_policy = EXCLUDED.expiry_policy,
                redemption = EXCLUDED.redemption,
                route = EXCLUDED.route,
                approval = EXCLUDED.approval,
                returnable = EXCLUDED.returnable,
                min_validity_days = EXCLUDED.min_validity_days,
                low_stock_at = EXCLUDED.low_stock_at,
                discontinued = EXCLUDED.discontinued,
                updated_at = now()
         RETURNING updated_at",
    )
    .bind(product.product_id.as_str())
    .bind(&product.name)
    .bind(&product.brand)
    .bind(&product.category_id)
    .bind(&product.vendor)
    .bind(product.currency.as_str())
    .bind(&product.countries)
    .bind(product.denominations.iter().copied().map(minor).collect::<Vec<_>>())
    .bind(range.map(|range| range.min.minor()))
    .bind(range.map(|range| range.max.minor()))
    .bind(range.map(|range| range.step.minor()))
    .bind(Json(&product.expiry_policy))
    .bind(Json(&product.redemption))
    .bind(route_label(product.route))
    .bind(approval_label(product.approval))
    .bind(product.returnable)
    .bind(i32::from(product.min_validity_days))
    .bind(i32::try_from(product.low_stock_at).unwrap_or(i32::MAX))
    .bind(product.discontinued)
    .fetch_one(connection)
    .await
}
