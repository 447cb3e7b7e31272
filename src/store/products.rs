//! Products: the catalogue as it is kept.
//!
//! Rule: brand and currency of a product that ever had stock are fixed. The brand is part of what makes a code unique
//! for ever, and a face value in minor units means something else in another currency.

mod row;
mod shown;

use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use time::OffsetDateTime;
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::product::{Product, ProductId};

use self::row::{ProductRow, approval_word, route_word};
pub use self::shown::ShownProduct;
use super::PgStore;
use super::audit::{self, By, Deed, rows};

/// What became of a wish to put a product in its place.
#[derive(Debug, Clone, PartialEq)]
pub enum PutProduct {
    Created(Product),
    /// It was there, and is as asked for now.
    Replaced(Product),
    /// There is no such category.
    CategoryNotFound,
    /// There is no such vendor.
    VendorNotFound,
    /// Nothing was written: a product keeps its currency, since orders and stock count face values in its minor units.
    CurrencyFixed,
    /// Nothing was written: the blind indexes of its stock were made under its brand.
    BrandFixed,
}

impl PgStore {
    /// Every product: read once, at the start.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn load_products(&self) -> Result<Vec<Product>, sqlx::Error> {
        self.run(|pool| async move {
            let found: Vec<ProductRow> = sqlx::query_as("SELECT * FROM products").fetch_all(&pool).await?;
            found.into_iter().map(Product::try_from).collect()
        })
        .await
    }

    /// The product of this id.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find_product(&self, product_id: ProductId) -> Result<Option<Product>, sqlx::Error> {
        self.run(move |pool| async move {
            let found: Option<ProductRow> = sqlx::query_as("SELECT * FROM products WHERE product_id = $1")
                .bind(product_id.as_str())
                .fetch_optional(&pool)
                .await?;
            found.map(Product::try_from).transpose()
        })
        .await
    }

    /// Up to `limit` products by id, after the one with the id `after`.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_products(
        &self,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<Product>, sqlx::Error> {
        self.run(move |pool| async move { list(&pool, after, limit).await })
            .await
    }

    /// Puts a product in, or in the place of the one with its id. Its `updated_at` is the database's.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn put_product(&self, product: Product, by: By) -> Result<PutProduct, sqlx::Error> {
        self.run(move |pool| async move { put(&pool, product, &by).await })
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
    .bind(rows(limit))
    .fetch_all(pool)
    .await?;
    found.into_iter().map(Product::try_from).collect()
}

/// The product's row is locked before its stock is looked at; an import locks it too, before it adds some.
async fn put(pool: &PgPool, mut product: Product, by: &By) -> Result<PutProduct, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let known: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM categories WHERE category_id = $1)")
        .bind(&product.category_id)
        .fetch_one(&mut *transaction)
        .await?;
    if !known {
        return Ok(PutProduct::CategoryNotFound);
    }
    let known: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM vendors WHERE vendor_id = $1)")
        .bind(&product.vendor)
        .fetch_one(&mut *transaction)
        .await?;
    if !known {
        return Ok(PutProduct::VendorNotFound);
    }
    let before = lock(&mut transaction, &product.product_id).await?;
    if let Some(before) = &before {
        if before.currency != product.currency {
            return Ok(PutProduct::CurrencyFixed);
        }
        if before.brand != product.brand && has_stock(&mut transaction, &product.product_id).await? {
            return Ok(PutProduct::BrandFixed);
        }
    }
    product.updated_at = write(&mut transaction, &product).await?;
    let deed = Deed {
        action: "product.put",
        subject: product.product_id.as_str(),
    };
    let (shown_before, shown) = (before.as_ref().map(ShownProduct::of), ShownProduct::of(&product));
    audit::write(&mut transaction, by, deed, shown_before.as_ref(), Some(&shown)).await?;
    transaction.commit().await?;
    Ok(if before.is_some() {
        PutProduct::Replaced(product)
    } else {
        PutProduct::Created(product)
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

/// Whether stock was ever imported: its chunks stay when they are sold out.
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
    .bind(route_word(product.route))
    .bind(approval_word(product.approval))
    .bind(product.returnable)
    .bind(i32::from(product.min_validity_days))
    .bind(i32::try_from(product.low_stock_at).unwrap_or(i32::MAX))
    .bind(product.discontinued)
    .fetch_one(connection)
    .await
}
