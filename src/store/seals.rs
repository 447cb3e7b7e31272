//! The operators' trail, sealed: from then on an entry that is changed, removed or slipped in is found by `verify`.
//!
//! A seal is the SHA-256 of the seal before it and of the texts of the entries it names, in the order of their numbers. Who
//! writes an entry knows nothing of it and waits for nobody: entries are sealed once they are committed, by one node at a
//! time. They become visible in another order than that of their numbers, so a seal names them one by one, and a late one is
//! in a later seal.
//!
//! Rule: a number that is older than the newest sealed one by [`LATE_BY`] is sealed or was never there. What seals cannot
//! tell is that the newest of them were removed together with their entries; that is why each is also a line in the log.

use sqlx::PgPool;

use super::PgStore;
use super::audit::rows;

/// How many numbers an entry may come late: at several thousand code readings a second this is longer than a statement and
/// an idle transaction may last. `audit.sealed` says the same number.
const LATE_BY: i64 = 100_000;

/// How many entries one seal names: some hundred kilobytes of text in one statement.
const ENTRIES_AT_ONCE: usize = 1_000;

/// Taken while a seal is made: two would follow the same one. Any number that nothing else uses.
const SEALING_TURN: i64 = 0x5653_7365_616c_0000;

/// A seal that was made.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Seal {
    /// Its number, from 1.
    pub seal: i64,
    /// How many entries it names.
    pub entries: i32,
    /// Its hash, in hexadecimal digits.
    pub hash: String,
}

impl Seal {
    /// Whether there may be more to seal.
    #[must_use]
    pub fn is_full(&self) -> bool {
        usize::try_from(self.entries).is_ok_and(|entries| entries >= ENTRIES_AT_ONCE)
    }
}

impl PgStore {
    /// Seals some of the entries that are not sealed yet, oldest first; `None` where there are none, or where another node is
    /// at it.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer; what was not sealed is sealed the next time.
    pub async fn seal_trail(&self) -> Result<Option<Seal>, sqlx::Error> {
        self.run(|pool| async move { seal(&pool).await }).await
    }
}

async fn seal(pool: &PgPool) -> Result<Option<Seal>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let mine: bool = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)")
        .bind(SEALING_TURN)
        .fetch_one(&mut *transaction)
        .await?;
    if !mine {
        return Ok(None);
    }
    // A statement of its own: it sees the seal of whoever had the turn before.
    let made = sqlx::query_as(
        "WITH floor AS MATERIALIZED (
            SELECT COALESCE(max(s.entries[cardinality(s.entries)]), $1) - $1 AS audit_id FROM audit_seals AS s
         ), sealed AS MATERIALIZED (
            SELECT e.audit_id
              FROM audit_seals AS s
             CROSS JOIN unnest(s.entries) AS e (audit_id)
             WHERE s.entries[cardinality(s.entries)] > (SELECT f.audit_id FROM floor AS f)
         ), open AS MATERIALIZED (
            SELECT a.audit_id, audit_text(a) AS text
              FROM audit_log AS a
             WHERE a.audit_id > (SELECT f.audit_id FROM floor AS f)
               AND a.audit_id NOT IN (SELECT d.audit_id FROM sealed AS d)
             ORDER BY a.audit_id
             LIMIT $2
         ), last AS MATERIALIZED (
            SELECT s.seal, s.hash FROM audit_seals AS s ORDER BY s.seal DESC LIMIT 1
         )
         INSERT INTO audit_seals AS made (seal, entries, hash)
         SELECT COALESCE((SELECT l.seal FROM last AS l), 0) + 1,
                array_agg(o.audit_id ORDER BY o.audit_id),
                sha256(COALESCE((SELECT l.hash FROM last AS l), '')
                       || convert_to(string_agg(o.text, E'\\n' ORDER BY o.audit_id), 'UTF8'))
           FROM open AS o
         HAVING count(*) > 0
         RETURNING made.seal, cardinality(made.entries) AS entries, encode(made.hash, 'hex') AS hash",
    )
    .bind(LATE_BY)
    .bind(rows(ENTRIES_AT_ONCE))
    .fetch_optional(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(made)
}
