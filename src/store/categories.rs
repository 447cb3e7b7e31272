//! Categories: the shelves of the catalogue, each with a parent or none.

use serde::Serialize;
use sqlx::{PgConnection, PgPool};
use utoipa::ToSchema;

use super::PgStore;
use super::audit::{self, By, Deed};

/// A category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow, ToSchema)]
pub struct Category {
    /// Its id, chosen by the operator.
    pub category_id: String,
    /// What it is called.
    pub name: String,
    /// What it is a part of.
    #[schema(required)]
    pub parent_id: Option<String>,
}

/// What became of a wish to put something in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutCategory {
    Created,
    /// It was there, and is as asked for now.
    Replaced,
    /// There is no such parent.
    ParentNotFound,
    /// It would be its own ancestor.
    Cycle,
}

/// Deepest nesting that is followed upwards. A tree that people browse is far flatter.
const MAX_DEPTH: i32 = 16;

impl PgStore {
    /// Puts a category in, or in the place of the one with its id.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn put_category(&self, category: Category, by: By) -> Result<PutCategory, sqlx::Error> {
        self.run(move |pool| async move { put(&pool, &category, &by).await })
            .await
    }

    /// All categories, by the bytes of their ids.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_categories(&self) -> Result<Vec<Category>, sqlx::Error> {
        self.run(|pool| async move {
            sqlx::query_as(
                "SELECT category_id, name, parent_id FROM categories ORDER BY category_id COLLATE \"C\"",
            )
            .fetch_all(&pool)
            .await
        })
        .await
    }
}

/// The whole table is locked against other writers: two moves at once could make a circle that neither sees.
async fn put(pool: &PgPool, category: &Category, by: &By) -> Result<PutCategory, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    sqlx::query("LOCK TABLE categories IN SHARE ROW EXCLUSIVE MODE")
        .execute(&mut *transaction)
        .await?;
    if let Some(parent_id) = &category.parent_id {
        match path_up(&mut transaction, parent_id).await? {
            path if path.is_empty() => return Ok(PutCategory::ParentNotFound),
            path if path.contains(&category.category_id) => return Ok(PutCategory::Cycle),
            _ => {}
        }
    }
    let before: Option<Category> =
        sqlx::query_as("SELECT category_id, name, parent_id FROM categories WHERE category_id = $1")
            .bind(&category.category_id)
            .fetch_optional(&mut *transaction)
            .await?;
    write(&mut transaction, category).await?;
    let deed = Deed {
        action: "category.put",
        subject: &category.category_id,
    };
    audit::write(&mut transaction, by, deed, before.as_ref(), Some(category)).await?;
    transaction.commit().await?;
    Ok(if before.is_some() {
        PutCategory::Replaced
    } else {
        PutCategory::Created
    })
}

/// A category and what it is a part of, from below upwards; empty if there is no such category.
async fn path_up(connection: &mut PgConnection, category_id: &str) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(
        "WITH RECURSIVE path AS (
            SELECT category_id, parent_id, 1 AS depth FROM categories WHERE category_id = $1
             UNION ALL
            SELECT c.category_id, c.parent_id, p.depth + 1
              FROM path AS p
              JOIN categories AS c ON c.category_id = p.parent_id
             WHERE p.depth < $2
         )
         SELECT category_id FROM path",
    )
    .bind(category_id)
    .bind(MAX_DEPTH)
    .fetch_all(connection)
    .await
}

async fn write(connection: &mut PgConnection, category: &Category) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO categories (category_id, name, parent_id)
         VALUES ($1, $2, $3)
         ON CONFLICT (category_id) DO UPDATE
            SET name = EXCLUDED.name,
                parent_id = EXCLUDED.parent_id",
    )
    .bind(&category.category_id)
    .bind(&category.name)
    .bind(&category.parent_id)
    .execute(connection)
    .await
    .map(drop)
}
