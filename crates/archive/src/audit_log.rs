//! Archive of the audit log: the checkpoints of a month with all their entries, which prove themselves
//! without a database.
//!
//! Only reads of codes are removed: they are nearly all entries, and orders name them. What operators did
//! stays, and with it a hash and an HMAC of the entries of the checkpoint that stay.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;

use crate::file::{LineWriter, read_lines};
use crate::manifest::ArchivedFile;
use crate::{ArchiveError, Log, Month, at, damaged, to_line};

const CHECKPOINTS_FILE: &str = "checkpoints.ndjson.gz";
const ENTRIES_FILE: &str = "entries.ndjson.gz";

#[derive(Debug, Serialize, Deserialize)]
struct CheckpointLine {
    number: i64,
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    /// Of the checkpoint before, in hexadecimal digits; empty: there is none.
    previous: String,
    hash: String,
    mac: String,
    entries: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct EntryLine {
    checkpoint: i64,
    /// Outside the hash.
    partner_id: Option<Uuid>,
    /// The JSON array that is hashed: number, microseconds since 1970, operator, action, subject, before,
    /// after, trace.
    entry: String,
}

pub(crate) async fn list_months(connection: &mut PgConnection) -> Result<Vec<Month>, sqlx::Error> {
    let days = sqlx::query_scalar!(
        r#"SELECT DISTINCT date_trunc('month', at AT TIME ZONE 'UTC')::date AS "day!" FROM audit_checkpoints"#
    );
    let days = days.fetch_all(connection).await?;
    Ok(days.into_iter().map(Month::of).collect())
}

pub(crate) async fn write(
    connection: &mut PgConnection,
    month: Month,
    directory: &Path,
) -> Result<Vec<ArchivedFile>, ArchiveError> {
    // The numbers between the first checkpoints of this month and of the next. A clock that was set back
    // moves none into another month later.
    let lines = sqlx::query!(
        r#"WITH bounds AS MATERIALIZED (
            SELECT (SELECT min(c.number) FROM audit_checkpoints AS c WHERE c.at >= $1::date::timestamp AT TIME ZONE 'UTC') AS first,
                   (SELECT min(c.number) FROM audit_checkpoints AS c WHERE c.at >= $2::date::timestamp AT TIME ZONE 'UTC') AS next
         )
         SELECT c.number, c.at, COALESCE(encode(p.hash, 'hex'), '') AS "previous!", encode(c.hash, 'hex') AS "hash!",
                encode(c.mac, 'hex') AS "mac!", cardinality(c.entries)::bigint AS "entries!"
           FROM bounds AS b
           JOIN audit_checkpoints AS c ON c.number >= b.first AND (b.next IS NULL OR c.number < b.next)
           LEFT JOIN audit_checkpoints AS p ON p.number = c.number - 1
          ORDER BY c.number"#,
        month.first_day(),
        month.next().first_day(),
    );
    let lines = lines.map(|row| CheckpointLine {
        number: row.number,
        at: row.at,
        previous: row.previous,
        hash: row.hash,
        mac: row.mac,
        entries: row.entries.cast_unsigned(),
    });
    let mut checkpoints = LineWriter::create(directory, CHECKPOINTS_FILE)?;
    let mut entries = LineWriter::create(directory, ENTRIES_FILE)?;
    for line in lines.fetch_all(&mut *connection).await? {
        checkpoints.push(&to_line(directory, &line)?)?;
        write_entries(connection, line.number, directory, &mut entries).await?;
    }
    Ok(vec![checkpoints.finish()?, entries.finish()?])
}

async fn write_entries(
    connection: &mut PgConnection,
    number: i64,
    directory: &Path,
    file: &mut LineWriter,
) -> Result<(), ArchiveError> {
    let rows = sqlx::query!(
        r#"SELECT a.partner_id, audit_entry_text_v1(a) AS "entry!"
             FROM audit_checkpoints AS c
            CROSS JOIN unnest(c.entries) AS e (audit_id)
            CROSS JOIN LATERAL (SELECT * FROM audit_log AS a WHERE a.audit_id = e.audit_id OFFSET 0) AS a
            WHERE c.number = $1
            ORDER BY a.audit_id"#,
        number,
    );
    let mut rows = rows.fetch(connection);
    while let Some(row) = rows.try_next().await? {
        let line = EntryLine {
            checkpoint: number,
            partner_id: row.partner_id,
            entry: row.entry,
        };
        file.push(&to_line(directory, &line)?)?;
    }
    Ok(())
}

/// Recomputes the hash chain of an archive.
pub(crate) fn check(directory: &Path) -> Result<(), ArchiveError> {
    let path = directory.join(CHECKPOINTS_FILE);
    let checkpoints: Vec<CheckpointLine> = read_lines(&path)?;
    let mut chains = checkpoints.iter().zip(checkpoints.iter().skip(1));
    if let Some((_, later)) =
        chains.find(|(one, next)| next.number != one.number + 1 || next.previous != one.hash)
    {
        let reason = format!("checkpoint {} does not follow the one before", later.number);
        return Err(damaged(&path, reason));
    }
    let mut entries = EntryReader::open(directory)?;
    for checkpoint in &checkpoints {
        let texts = entries.read_texts(checkpoint)?;
        let hash = hash_entries(&checkpoint.previous, texts.iter().map(String::as_str));
        if hex::encode(hash) != checkpoint.hash {
            let reason = format!(
                "the entries of checkpoint {} do not have its hash",
                checkpoint.number
            );
            return Err(damaged(&path, reason));
        }
    }
    match entries.next()? {
        None => Ok(()),
        Some(line) => Err(damaged(
            &path,
            format!("an entry of checkpoint {} too much", line.checkpoint),
        )),
    }
}

/// SHA-256 of a hash in hexadecimal digits and of texts, as Postgres computes it.
fn hash_entries<'a>(before: &str, texts: impl Iterator<Item = &'a str>) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(hex::decode(before).unwrap_or_default());
    for (index, text) in texts.enumerate() {
        if index > 0 {
            hash.update(b"\n");
        }
        hash.update(text);
    }
    hash.finalize().into()
}

/// Reads entries one by one: a month may have millions.
struct EntryReader {
    path: std::path::PathBuf,
    lines: std::io::Lines<BufReader<MultiGzDecoder<BufReader<File>>>>,
}

impl EntryReader {
    fn open(directory: &Path) -> Result<Self, ArchiveError> {
        let path = directory.join(ENTRIES_FILE);
        let file = BufReader::new(File::open(&path).map_err(at(&path))?);
        let lines = BufReader::new(MultiGzDecoder::new(file)).lines();
        Ok(Self { path, lines })
    }

    fn next(&mut self) -> Result<Option<EntryLine>, ArchiveError> {
        let Some(line) = self.lines.next() else {
            return Ok(None);
        };
        let line = line.map_err(at(&self.path))?;
        let line = serde_json::from_str(&line).map_err(|error| damaged(&self.path, error.to_string()))?;
        Ok(Some(line))
    }

    fn read_texts(&mut self, checkpoint: &CheckpointLine) -> Result<Vec<String>, ArchiveError> {
        let mut texts = Vec::new();
        for _ in 0..checkpoint.entries {
            match self.next()? {
                Some(line) if line.checkpoint == checkpoint.number => texts.push(line.entry),
                _ => {
                    let reason = format!("entries of checkpoint {} are missing", checkpoint.number);
                    return Err(damaged(&self.path, reason));
                }
            }
        }
        Ok(texts)
    }
}

/// Refuses the removal while an endpoint of the audit export has not got the month. An endpoint that got
/// nothing for a month is no longer set.
pub(crate) async fn check_removable(
    connection: &mut PgConnection,
    month: Month,
    directory: &Path,
) -> Result<(), ArchiveError> {
    let checkpoints: Vec<CheckpointLine> = read_lines(&directory.join(CHECKPOINTS_FILE))?;
    let last = checkpoints.last().map_or(0, |last| last.number);
    let is_behind = sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM audit_exports AS x WHERE x.position < $1 AND x.leased_until > now() - interval '30 days'
              ) AS "is_behind!""#,
        last,
    );
    match is_behind.fetch_one(connection).await? {
        true => Err(ArchiveError::Busy {
            log: Log::AuditLog.name(),
            month,
            reason: "an endpoint of the audit export has not got these entries yet",
        }),
        false => Ok(()),
    }
}

/// Removes the reads of codes, a checkpoint per transaction.
pub(crate) async fn remove(
    connection: &mut PgConnection,
    month: Month,
    directory: &Path,
    key: &CheckpointKey,
) -> Result<(), ArchiveError> {
    let mut entries = EntryReader::open(directory)?;
    for checkpoint in read_lines::<CheckpointLine>(&directory.join(CHECKPOINTS_FILE))? {
        let texts = entries.read_texts(&checkpoint)?;
        let kept: Vec<_> = texts.iter().filter(|text| !is_read_of_codes(text)).collect();
        if kept.len() == texts.len() {
            continue;
        }
        let stored = sqlx::query!(
            r#"SELECT encode(c.hash, 'hex') AS "hash!", x.number IS NOT NULL AS "is_removed!"
                 FROM audit_checkpoints AS c
                 LEFT JOIN archived_checkpoints AS x ON x.number = c.number
                WHERE c.number = $1"#,
            checkpoint.number,
        );
        let stored = stored.fetch_optional(&mut *connection).await?;
        match stored {
            // By an earlier run.
            Some(stored) if stored.is_removed && stored.hash == checkpoint.hash => continue,
            Some(stored) if stored.hash == checkpoint.hash => {}
            _ => return Err(ArchiveError::Replaced(directory.to_owned())),
        }
        let hash = hash_entries(&checkpoint.hash, kept.iter().map(|text| text.as_str()));
        let mac = key.mac(-checkpoint.number, checkpoint.at, &hex::encode(hash));
        let removed = sqlx::query_scalar!(
            r#"SELECT remove_archived_reads_v1($1, $2, $3, decode($4, 'hex')) AS "removed!""#,
            month.first_day(),
            checkpoint.number,
            &hash[..],
            mac,
        );
        removed.fetch_one(&mut *connection).await?;
    }
    Ok(())
}

/// Whether the text of an entry is that of a read of codes. The action is its fourth element.
fn is_read_of_codes(text: &str) -> bool {
    let entry: Result<Vec<serde_json::Value>, _> = serde_json::from_str(text);
    entry.is_ok_and(|entry| {
        entry
            .get(3)
            .is_some_and(|action| action == AuditAction::RetrieveCodes.into_str())
    })
}
