//! Stored responses by idempotency key, valid for 24 hours by the database clock.

use sqlx::PgPool;

use super::order::{IdempotencyKey, StoredResponse};
use super::refusal::Refusal;

/// Stores a refusal unless the key already has a response; returns the stored response.
pub(super) async fn store_refusal(
    pool: &PgPool,
    key: &IdempotencyKey,
    refusal: &Refusal,
) -> Result<StoredResponse, Refusal> {
    let (status, body) = (refusal.status().as_u16(), refusal.body());
    let inserted = sqlx::query(
        "INSERT INTO idempotency_keys AS k (key, fingerprint, status, body, expires_at)
         VALUES ($1, $2, $3, $4, now() + interval '24 hours')
         ON CONFLICT (key) DO UPDATE
            SET fingerprint = EXCLUDED.fingerprint,
                status = EXCLUDED.status,
                body = EXCLUDED.body,
                expires_at = EXCLUDED.expires_at
          WHERE k.expires_at <= now()",
    )
    .bind(key.hash)
    .bind(&key.fingerprint[..])
    .bind(i16::try_from(status).unwrap_or_default())
    .bind(&body)
    .execute(pool)
    .await
    .map_err(|_| Refusal::ServiceUnavailable)?;
    if inserted.rows_affected() == 0 {
        return read(pool, key).await;
    }
    Ok(StoredResponse {
        status,
        body,
        replayed: false,
    })
}

/// Reads the stored response.
pub(super) async fn read(pool: &PgPool, key: &IdempotencyKey) -> Result<StoredResponse, Refusal> {
    let (fingerprint, status, body) = sqlx::query_as::<_, (Vec<u8>, i16, Vec<u8>)>(
        "SELECT fingerprint,
                status,
                body
           FROM idempotency_keys
          WHERE key = $1
            AND expires_at > now()",
    )
    .bind(key.hash)
    .fetch_optional(pool)
    .await
    .ok()
    .flatten()
    .ok_or(Refusal::ServiceUnavailable)?;
    replay(key, &fingerprint, status, body)
}

/// Converts a stored row to a replayed response.
pub(super) fn replay(
    key: &IdempotencyKey,
    fingerprint: &[u8],
    status: i16,
    body: Vec<u8>,
) -> Result<StoredResponse, Refusal> {
    if fingerprint != key.fingerprint {
        return Err(Refusal::IdempotencyKeyReused);
    }
    Ok(StoredResponse {
        status: u16::try_from(status).unwrap_or_default(),
        body,
        replayed: true,
    })
}
