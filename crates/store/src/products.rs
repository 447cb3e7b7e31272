//! Catalogue products.
//!
//! The currency of a product never changes, and its brand is fixed once it has had stock: the brand is part
//! of the keyed hash that detects duplicate codes, and a face value in minor units means something else in
//! another currency.

use sqlx::PgConnection;
use sqlx::types::Json;
use time::OffsetDateTime;
use vouchsafe_audit_log::{self as audit, AuditActor};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::to_bigint;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::expiry_policy::ExpiryPolicy;
use vouchsafe_domain::language::Language;
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::product::content::{ProductContent, Redemption, Translation};
use vouchsafe_domain::product::{
    ApprovalPolicy, CodeCase, CodeIdentity, CodeScope, DenominationRange, Product, ProductId, SupplyRoute,
};

use vouchsafe_database::database::Database;
use vouchsafe_domain::product_search::ProductSearch;

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
    /// Rejected: the blind indexes of the brand's stock depend on it.
    CodeCaseFixed,
}

/// Key of the advisory lock around the rule of a brand for the case of its codes. Any otherwise unused
/// number.
const CODE_CASE_LOCK: i64 = 0x5653_6361_7365_0000;

/// Selects products with the rest of a statement.
macro_rules! select_products {
    ($rest:literal $(, $argument:expr)* $(,)?) => {
        sqlx::query!(
            r#"SELECT product_id AS "product_id: ProductId", name, brand, category_id, vendor,
                      currency AS "currency: Currency", countries, denominations AS "denominations: Vec<Amount>",
                      range_min AS "range_min: Amount", range_max AS "range_max: Amount",
                      range_step AS "range_step: Amount", expiry_policy AS "expiry_policy: Json<ExpiryPolicy>",
                      redemption AS "redemption: Json<Redemption>", content AS "content: Json<ProductContent>",
                      translations AS "translations: Json<Vec<Translation>>", route AS "route: SupplyRoute",
                      approval AS "approval: ApprovalPolicy", returnable, code_identity AS "code_identity: CodeIdentity",
                      code_case AS "code_case: CodeCase",
                      min_validity_days, low_stock_at, discontinued, updated_at
                 FROM products "# + $rest
            $(, $argument)*
        )
        .try_map(|row| {
            let currency = row.currency;
            let range = row.range_min.zip(row.range_max).zip(row.range_step);
            let min_validity_days = u16::try_from(row.min_validity_days);
            Ok(Product {
                product_id: row.product_id,
                name: row.name,
                brand: row.brand,
                category_id: row.category_id,
                vendor: row.vendor,
                currency,
                countries: row.countries,
                denominations: row.denominations.into_iter().map(|amount| amount.of(currency)).collect(),
                denomination_range: range.map(|((min, max), step)| DenominationRange::new([min, max, step], currency)),
                expiry_policy: row.expiry_policy.0,
                redemption: row.redemption.0,
                content: row.content.0,
                translations: row.translations.0,
                route: row.route,
                approval: row.approval,
                returnable: row.returnable,
                code_identity: row.code_identity,
                code_case: row.code_case,
                min_validity_days: min_validity_days.map_err(|error| sqlx::Error::Decode(error.into()))?,
                low_stock_at: row.low_stock_at.cast_unsigned(),
                discontinued: row.discontinued,
                updated_at: row.updated_at,
            })
        })
    };
}

/// Products of the catalogue.
#[derive(Debug, Clone)]
pub struct Products(pub(super) Database);

impl Products {
    /// Loads all products, at the start.
    #[boxed]
    pub async fn load_all(&self) -> Result<Vec<Product>, StoreError> {
        self.0.fetch_all(select_products!("")).await
    }

    /// Finds a product.
    #[boxed]
    pub async fn find(&self, product_id: ProductId) -> Result<Option<Product>, StoreError> {
        let statement = select_products!("WHERE product_id = $1", product_id as _);
        self.0.fetch_optional(statement).await
    }

    /// Lists up to `limit` products by id, after the id `after`.
    #[boxed]
    pub async fn list(
        &self,
        search: ProductSearch,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<Product>, StoreError> {
        let statement = select_products!(
            "WHERE ($1::text IS NULL OR product_id > $1)
               AND ($3::text IS NULL OR strpos(lower(concat_ws(' ', product_id, name, brand)), lower($3)) > 0)
               AND ($4::text IS NULL OR category_id = $4)
               AND ($5::text IS NULL OR vendor = $5)
               AND ($6::boolean IS NULL OR discontinued = $6)
             ORDER BY product_id
             LIMIT $2",
            after,
            to_bigint(limit),
            search.name,
            search.category_id,
            search.vendor,
            search.discontinued,
        );
        self.0.fetch_all(statement).await
    }

    /// Creates a product or replaces the one with its id. The database sets `updated_at`.
    #[boxed]
    pub async fn put(&self, product: Product, actor: AuditActor) -> Result<PutProductOutcome, StoreError> {
        transaction!(self.0, "product.put", async |transaction| {
            put(transaction, product, &actor).await
        })
    }

    /// Adds or replaces the texts of a product in a language, and returns the product; `None` if it does not
    /// exist.
    #[boxed]
    pub async fn put_translation(
        &self,
        product_id: ProductId,
        translation: Translation,
        actor: AuditActor,
    ) -> Result<Option<Product>, StoreError> {
        transaction!(self.0, "product.put_translation", async |transaction| {
            let put = |product: &mut Product| {
                product.put_translation(translation);
                true
            };
            change_translations(transaction, &product_id, put, &actor).await
        })
    }

    /// Removes the texts of a product in a language, if there are any, and returns the product; `None` if it
    /// does not exist.
    #[boxed]
    pub async fn delete_translation(
        &self,
        product_id: ProductId,
        language: Language,
        actor: AuditActor,
    ) -> Result<Option<Product>, StoreError> {
        transaction!(self.0, "product.delete_translation", async |transaction| {
            let delete = |product: &mut Product| product.remove_translation(&language);
            change_translations(transaction, &product_id, delete, &actor).await
        })
    }
}

async fn change_translations(
    transaction: &mut PgConnection,
    product_id: &ProductId,
    change: impl FnOnce(&mut Product) -> bool,
    actor: &AuditActor,
) -> Result<Option<Product>, sqlx::Error> {
    let Some(before) = lock(transaction, product_id).await? else {
        return Ok(None);
    };
    let mut product = before.clone();
    if !change(&mut product) {
        return Ok(Some(before));
    }
    product.updated_at = sqlx::query_scalar!(
        "UPDATE products SET translations = $2, updated_at = now() WHERE product_id = $1 RETURNING updated_at",
        product_id as _,
        Json(&product.translations) as _,
    )
    .fetch_one(&mut *transaction)
    .await?;
    audit::write(
        transaction,
        actor,
        AuditAction::PutProduct,
        product_id,
        Some(&before),
        Some(&product),
    )
    .await?;
    Ok(Some(product))
}

async fn put(
    transaction: &mut PgConnection,
    mut product: Product,
    actor: &AuditActor,
) -> Result<PutProductOutcome, sqlx::Error> {
    let known = sqlx::query!(
        r#"SELECT EXISTS (SELECT FROM categories WHERE category_id = $1) AS "category!",
                  EXISTS (SELECT FROM vendors WHERE vendor_id = $2) AS "vendor!""#,
        product.category_id,
        product.vendor,
    );
    let known = known.fetch_one(&mut *transaction).await?;
    if !known.category {
        return Ok(PutProductOutcome::CategoryNotFound);
    }
    if !known.vendor {
        return Ok(PutProductOutcome::VendorNotFound);
    }
    // An import locks the row, too, so no stock can be added between the check below and the commit.
    let before = lock(transaction, &product.product_id).await?;
    if let Some(before) = &before {
        if before.currency != product.currency {
            return Ok(PutProductOutcome::CurrencyFixed);
        }
        if before.brand != product.brand && has_stock(transaction, &product.product_id).await? {
            return Ok(PutProductOutcome::BrandFixed);
        }
    }
    if !agree_on_code_case(transaction, before.as_ref(), &product).await? {
        return Ok(PutProductOutcome::CodeCaseFixed);
    }
    if let Some(before) = &before {
        product.translations.clone_from(&before.translations);
    }
    product.updated_at = write(transaction, &product).await?;
    audit::write(
        transaction,
        actor,
        AuditAction::PutProduct,
        &product.product_id,
        before.as_ref(),
        Some(&product),
    )
    .await?;
    Ok(if before.is_some() {
        PutProductOutcome::Replaced(product)
    } else {
        PutProductOutcome::Created(product)
    })
}

async fn lock(connection: &mut PgConnection, product_id: &ProductId) -> Result<Option<Product>, sqlx::Error> {
    select_products!("WHERE product_id = $1 FOR NO KEY UPDATE", product_id as _)
        .fetch_optional(connection)
        .await
}

/// Gives the other products of the brand the same rule for the case of codes. Returns `false` if one of the
/// products has stock whose indexes follow another rule.
async fn agree_on_code_case(
    connection: &mut PgConnection,
    before: Option<&Product>,
    product: &Product,
) -> Result<bool, sqlx::Error> {
    // Two new products of one brand do not see each other.
    sqlx::query!("SELECT pg_advisory_xact_lock($1)", CODE_CASE_LOCK)
        .execute(&mut *connection)
        .await?;
    if before.is_some_and(|before| before.code_case != product.code_case)
        && has_stock(connection, &product.product_id).await?
    {
        return Ok(false);
    }
    let others = sqlx::query!(
        r#"SELECT product_id AS "product_id: ProductId", brand
             FROM products
            WHERE product_id <> $1 AND code_case <> $2
            ORDER BY product_id
              FOR NO KEY UPDATE"#,
        product.product_id as _,
        product.code_case as _,
    );
    let brand_key = product.code_scope().brand_key();
    let others = others.fetch_all(&mut *connection).await?.into_iter();
    let others = others.filter(|other| CodeScope::exact(&other.brand).brand_key() == brand_key);
    let others: Vec<ProductId> = others.map(|other| other.product_id).collect();
    for product_id in &others {
        if has_stock(connection, product_id).await? {
            return Ok(false);
        }
    }
    let ids: Vec<&str> = others.iter().map(ProductId::as_str).collect();
    sqlx::query!(
        "UPDATE products SET code_case = $2, updated_at = now() WHERE product_id = ANY ($1)",
        &ids as _,
        product.code_case as _,
    )
    .execute(connection)
    .await?;
    Ok(true)
}

/// Whether stock was ever imported. Chunks are not deleted when they are sold out.
async fn has_stock(connection: &mut PgConnection, product_id: &ProductId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM chunks WHERE product_id = $1 AND voided IS NULL)
                   OR EXISTS (SELECT FROM stock_totals WHERE product_id = $1) AS "exists!""#,
        product_id as _,
    )
    .fetch_one(connection)
    .await
}

async fn write(connection: &mut PgConnection, product: &Product) -> Result<OffsetDateTime, sqlx::Error> {
    let range = product.denomination_range;
    let denominations: Vec<_> = product.denominations.iter().map(|money| money.amount).collect();
    sqlx::query_scalar!(
        "INSERT INTO products (product_id, name, brand, category_id, vendor, currency, countries, denominations,
                               range_min, range_max, range_step, expiry_policy, redemption, route, approval,
                               returnable, code_identity, code_case, min_validity_days, low_stock_at, discontinued,
                               content)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
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
                content = EXCLUDED.content,
                route = EXCLUDED.route,
                approval = EXCLUDED.approval,
                returnable = EXCLUDED.returnable,
                code_identity = EXCLUDED.code_identity,
                code_case = EXCLUDED.code_case,
                min_validity_days = EXCLUDED.min_validity_days,
                low_stock_at = EXCLUDED.low_stock_at,
                discontinued = EXCLUDED.discontinued,
                updated_at = now()
         RETURNING updated_at",
        product.product_id as _,
        product.name,
        product.brand,
        product.category_id,
        product.vendor,
        product.currency as _,
        &product.countries,
        denominations as _,
        range.map(|range| range.min.amount) as _,
        range.map(|range| range.max.amount) as _,
        range.map(|range| range.step.amount) as _,
        Json(&product.expiry_policy) as _,
        Json(&product.redemption) as _,
        product.route as _,
        product.approval as _,
        product.returnable,
        product.code_identity as _,
        product.code_case as _,
        i32::from(product.min_validity_days),
        i32::try_from(product.low_stock_at).unwrap_or(i32::MAX),
        product.discontinued,
        Json(&product.content) as _,
    )
    .fetch_one(connection)
    .await
}
