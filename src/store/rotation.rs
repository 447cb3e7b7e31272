//! Rotation: a credential asks for the one that follows it, and for how long it goes on itself.
//!
//! | Step, in one transaction | Why |
//! |---|---|
//! | lock the partner, then the one that asks | two rotations at once do not both count four |
//! | take back what it asked for before and nobody has used | the answer that named it was lost |
//! | write the end of the one that asks | a later rotation may bring it nearer and never puts it off |
//! | count the live ones | at most [`MAX_LIVE_CREDENTIALS`](super::MAX_LIVE_CREDENTIALS) |
//! | write the new one, with the allowlist of the one that asks | a rotation widens nothing |
//!
//! Whether a new one was used is decided by its row: its first use and its being taken back are both conditional on the
//! other not having happened, and the row's lock puts them in order.

use sqlx::{PgConnection, PgPool};
use time::{Duration, OffsetDateTime};
use vouchsafe_actors::domain::ids::CredentialId;

use super::audit::{self, By, Deed};
use super::credentials::{self, CredentialRow, CredentialSummary, MAX_LIVE_CREDENTIALS};
use super::{PgStore, partners};
use crate::access::credential::Credential;

/// What a credential asks for.
#[derive(Debug, Clone)]
pub struct Rotation {
    /// The one that asks.
    pub asking: CredentialId,
    /// The one that follows it, as it was minted.
    pub next: Credential,
    /// How long the one that asks goes on.
    pub overlap: Duration,
    pub now: OffsetDateTime,
}

/// What became of it.
#[derive(Debug, Clone)]
pub enum Rotated {
    /// The new one is in force.
    Rotated(Box<Succession>),
    /// The one that asked is no longer in force.
    Ended,
    /// The partner has [`MAX_LIVE_CREDENTIALS`].
    TooMany,
}

/// Which credential follows which.
#[derive(Debug, Clone)]
pub struct Succession {
    /// The one that asked, with its end.
    pub previous: Credential,
    pub previous_ends_at: OffsetDateTime,
    pub next: Credential,
    /// Those it had asked for before and that were taken back.
    pub taken_back: Vec<CredentialId>,
}

impl PgStore {
    /// Puts a new credential in the place of the one that asks for it, and gives that one an end.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn rotate_credential(&self, rotation: Rotation, by: By) -> Result<Rotated, sqlx::Error> {
        self.run(move |pool| async move { rotate(&pool, rotation, &by).await })
            .await
    }

    /// Writes down that a credential from a rotation is used, and says when that was first so; `None` if it was taken
    /// back before.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn record_first_use(
        &self,
        credential_id: CredentialId,
    ) -> Result<Option<OffsetDateTime>, sqlx::Error> {
        self.run(move |pool| async move {
            sqlx::query_scalar(
                "UPDATE credentials
                    SET first_used_at = COALESCE(first_used_at, clock_timestamp())
                  WHERE credential_id = $1
                    AND revoked_at IS NULL
                 RETURNING first_used_at",
            )
            .bind(credential_id.as_uuid())
            .fetch_optional(&pool)
            .await
        })
        .await
    }
}

async fn rotate(pool: &PgPool, rotation: Rotation, by: &By) -> Result<Rotated, sqlx::Error> {
    let Rotation {
        asking,
        next,
        overlap,
        now,
    } = rotation;
    let mut transaction = pool.begin().await?;
    let partner = partners::lock(&mut transaction, next.partner_id).await?;
    let before = credentials::lock(&mut transaction, asking).await?;
    let Some(before) = before.filter(|before| partner.is_some() && before.is_live(now)) else {
        return Ok(Rotated::Ended);
    };
    let taken_back = take_back_unused(&mut transaction, asking, by).await?;
    let end = now + overlap;
    let previous_ends_at = before.not_after.map_or(end, |set| set.min(end));
    let previous = Credential {
        not_after: Some(previous_ends_at),
        rotated_at: Some(now),
        ..before.clone()
    };
    write_end(&mut transaction, &before, &previous, by).await?;
    if credentials::count_live(&mut transaction, before.partner_id).await? >= MAX_LIVE_CREDENTIALS {
        return Ok(Rotated::TooMany);
    }
    let next = Credential {
        allowlist: before.allowlist,
        rotated_from: Some(asking),
        ..next
    };
    credentials::insert(&mut transaction, &next, by).await?;
    transaction.commit().await?;
    Ok(Rotated::Rotated(Box::new(Succession {
        previous,
        previous_ends_at,
        next,
        taken_back,
    })))
}

/// There is one at most, unless an operator meddles with the rows.
async fn take_back_unused(
    connection: &mut PgConnection,
    asking: CredentialId,
    by: &By,
) -> Result<Vec<CredentialId>, sqlx::Error> {
    let unused: Vec<CredentialRow> = sqlx::query_as(
        "SELECT *
           FROM credentials
          WHERE rotated_from = $1
            AND revoked_at IS NULL
            AND first_used_at IS NULL
          ORDER BY credential_id
            FOR NO KEY UPDATE",
    )
    .bind(asking.as_uuid())
    .fetch_all(&mut *connection)
    .await?;
    let mut taken_back = Vec::with_capacity(unused.len());
    for row in unused {
        let credential = Credential::try_from(row)?;
        credentials::take_back(connection, &credential, by).await?;
        taken_back.push(credential.credential_id);
    }
    Ok(taken_back)
}

async fn write_end(
    connection: &mut PgConnection,
    before: &Credential,
    after: &Credential,
    by: &By,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE credentials
            SET not_after = $2,
                rotated_at = $3
          WHERE credential_id = $1",
    )
    .bind(after.credential_id.as_uuid())
    .bind(after.not_after)
    .bind(after.rotated_at)
    .execute(&mut *connection)
    .await?;
    let subject = after.credential_id.to_string();
    let deed = Deed {
        action: "credential.rotate",
        subject: &subject,
    };
    let (before, after) = (CredentialSummary::from(before), CredentialSummary::from(after));
    audit::write(connection, by, deed, Some(&before), Some(&after)).await
}
