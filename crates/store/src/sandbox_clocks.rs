//! Test clocks of partners in the sandbox: what an advance changes in the database.

use sqlx::PgConnection;
use sqlx::types::Json;
use vouchsafe_database::database::Database;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::{boxed, transaction};
use vouchsafe_domain::idempotency::KeyHash;
use vouchsafe_domain::ids::{PartnerId, WebhookId};
use vouchsafe_domain::sandbox_clock::{ClockAdvances, SandboxClocks};

/// Test clocks of partners.
#[derive(Debug, Clone)]
pub struct SandboxClockStore(pub(super) Database);

/// A clock after an advance.
#[derive(Debug)]
pub struct AdvancedClock {
    pub advances: ClockAdvances,
    /// The endpoints of the partner, whose nodes must read their deliveries again.
    pub webhooks: Vec<WebhookId>,
}

impl SandboxClockStore {
    /// Reads the clocks of all partners, which advance them at any node. Returns whether there is news:
    /// responses in memory may have ended.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn refresh(&self, clocks: &SandboxClocks) -> Result<bool, StoreError> {
        let mut has_news = false;
        for (partner_id, advances) in self.load_all().await? {
            has_news |= clocks.put(partner_id, advances);
        }
        Ok(has_news)
    }

    #[boxed]
    async fn load_all(&self) -> Result<Vec<(PartnerId, ClockAdvances)>, StoreError> {
        let clocks = sqlx::query!(
            r#"SELECT partner_id AS "partner_id: PartnerId", advances AS "advances: Json<ClockAdvances>" FROM sandbox_clocks"#
        );
        let clocks = self
            .0
            .fetch_all(clocks.map(|row| (row.partner_id, row.advances.0)));
        clocks.await
    }

    /// Advances the clock of a partner, with the deliveries that wait for its endpoints.
    #[boxed]
    pub async fn advance(&self, partner_id: PartnerId, seconds: u32) -> Result<AdvancedClock, StoreError> {
        transaction!(self.0, "sandbox_clock.advance", async |transaction| {
            let advances = record(transaction, partner_id, seconds).await?;
            let webhooks = advance_deliveries(transaction, partner_id, seconds).await?;
            Ok(AdvancedClock { advances, webhooks })
        })
    }

    /// Deletes the response under a key whose 24 hours have passed by these advances.
    #[boxed]
    pub async fn expire_key(&self, key: KeyHash, advances: ClockAdvances) -> Result<(), StoreError> {
        let (times, seconds) = advances.bounded();
        let deletion = sqlx::query!(
            "DELETE FROM idempotency_keys AS k
              WHERE k.key = $1
                AND k.expires_at <= clock_timestamp() + COALESCE((
                        SELECT sum(a.seconds)
                          FROM unnest($2::timestamptz[], $3::bigint[]) AS a (at, seconds)
                         WHERE a.at > k.expires_at - interval '24 hours'), 0)::integer * interval '1 second'",
            key as _,
            &times,
            &seconds,
        );
        self.0.execute(deletion).await.map(drop)
    }
}

async fn record(
    connection: &mut PgConnection,
    partner_id: PartnerId,
    seconds: u32,
) -> Result<ClockAdvances, sqlx::Error> {
    sqlx::query!(
        "INSERT INTO sandbox_clocks (partner_id) VALUES ($1) ON CONFLICT DO NOTHING",
        partner_id as _,
    )
    .execute(&mut *connection)
    .await?;
    let clock = sqlx::query!(
        r#"SELECT advances AS "advances: Json<ClockAdvances>", clock_timestamp() AS "now!"
             FROM sandbox_clocks
            WHERE partner_id = $1
              FOR UPDATE"#,
        partner_id as _,
    );
    let clock = clock.fetch_one(&mut *connection).await?;
    let mut advances = clock.advances.0;
    advances.advance(clock.now, seconds);
    sqlx::query!(
        "UPDATE sandbox_clocks SET advances = $2 WHERE partner_id = $1",
        partner_id as _,
        Json(&advances) as _,
    )
    .execute(connection)
    .await?;
    Ok(advances)
}

/// Lock order: endpoints, then their deliveries.
async fn advance_deliveries(
    connection: &mut PgConnection,
    partner_id: PartnerId,
    seconds: u32,
) -> Result<Vec<WebhookId>, sqlx::Error> {
    let seconds = f64::from(seconds);
    // The node that holds an endpoint knows the times before: the lease moves on, and the next holder reads
    // the rows.
    let webhooks = sqlx::query_scalar!(
        r#"UPDATE webhook_progress
              SET due_at = due_at - make_interval(secs => $2),
                  lease = lease + 1,
                  leased_until = NULL
            WHERE partner_id = $1
        RETURNING webhook_id AS "webhook_id: WebhookId""#,
        partner_id as _,
        seconds,
    );
    let webhooks = webhooks.fetch_all(&mut *connection).await?;
    sqlx::query!(
        "UPDATE deliveries
            SET next_at = next_at - make_interval(secs => $2),
                give_up_at = give_up_at - make_interval(secs => $2)
          WHERE partner_id = $1 AND state = 'WAITING'",
        partner_id as _,
        seconds,
    )
    .execute(connection)
    .await?;
    Ok(webhooks)
}
