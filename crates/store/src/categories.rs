//! Catalogue categories: a tree with an optional parent per category.

use sqlx::PgConnection;
use vouchsafe_audit_log::{self as audit, AuditActor};
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::category::Category;

use vouchsafe_database::database::Database;

/// Result of creating or replacing a category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutCategoryOutcome {
    Created,
    Replaced,
    ParentNotFound,
    /// The category would be its own ancestor.
    Cycle,
}

/// Bounds the ancestor query. Real category trees are far flatter.
const MAX_DEPTH: i32 = 16;

/// Categories of products.
#[derive(Debug, Clone)]
pub struct Categories(pub(super) Database);

impl Categories {
    /// Creates a category or replaces the one with its id.
    #[boxed]
    pub async fn put(&self, category: Category, actor: AuditActor) -> Result<PutCategoryOutcome, StoreError> {
        transaction!(self.0, "category.put", async |transaction| {
            // Two concurrent moves could create a cycle that neither sees.
            sqlx::query!("LOCK TABLE categories IN SHARE ROW EXCLUSIVE MODE")
                .execute(&mut **transaction)
                .await?;
            if let Some(parent_id) = &category.parent_id {
                match load_ancestors(transaction, parent_id).await? {
                    path if path.is_empty() => return Ok(PutCategoryOutcome::ParentNotFound),
                    path if path.contains(&category.category_id) => return Ok(PutCategoryOutcome::Cycle),
                    _ => {}
                }
            }
            let before = sqlx::query_as!(
                Category,
                "SELECT category_id, name, parent_id FROM categories WHERE category_id = $1",
                category.category_id,
            );
            let before = before.fetch_optional(&mut **transaction).await?;
            write(transaction, &category).await?;
            let subject = &category.category_id;
            audit::write(
                transaction,
                &actor,
                AuditAction::PutCategory,
                subject,
                before.as_ref(),
                Some(&category),
            )
            .await?;
            Ok(if before.is_some() {
                PutCategoryOutcome::Replaced
            } else {
                PutCategoryOutcome::Created
            })
        })
    }

    /// Lists all categories in byte order of their ids.
    #[boxed]
    pub async fn list(&self) -> Result<Vec<Category>, StoreError> {
        let statement = sqlx::query_as!(
            Category,
            r#"SELECT category_id, name, parent_id FROM categories ORDER BY category_id COLLATE "C""#,
        );
        self.0.fetch_all(statement).await
    }
}

/// Loads the ids of a category and its ancestors, from the category upwards; empty if the category does not
/// exist.
async fn load_ancestors(
    connection: &mut PgConnection,
    category_id: &str,
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"WITH RECURSIVE path AS (
            SELECT category_id, parent_id, 1 AS depth FROM categories WHERE category_id = $1
             UNION ALL
            SELECT c.category_id, c.parent_id, p.depth + 1
              FROM path AS p
              JOIN categories AS c ON c.category_id = p.parent_id
             WHERE p.depth < $2
         )
         SELECT category_id AS "category_id!" FROM path"#,
        category_id,
        MAX_DEPTH,
    )
    .fetch_all(connection)
    .await
}

async fn write(connection: &mut PgConnection, category: &Category) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO categories (category_id, name, parent_id)
         VALUES ($1, $2, $3)
         ON CONFLICT (category_id) DO UPDATE
            SET name = EXCLUDED.name,
                parent_id = EXCLUDED.parent_id",
        &category.category_id,
        &category.name,
        category.parent_id.as_deref(),
    )
    .execute(connection)
    .await
    .map(drop)
}
