//! Lines of the audit export: the entries that a checkpoint covers, then the checkpoint, a JSON object each.
//!
//! The lines suffice to compute the hash of a checkpoint again ([`checkpoint_hash`]), without the database.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use crate::audit_log::AuditRow;

/// A checkpoint of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRecord {
    pub number: i64,
    #[serde(with = "crate::timestamp")]
    pub at: OffsetDateTime,
    /// SHA-256 in hexadecimal digits.
    pub hash: String,
    /// HMAC in hexadecimal digits.
    pub mac: String,
}

/// A line of an exported file, or of the body of an exported batch.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ExportLine {
    AuditEntry(AuditRow),
    AuditCheckpoint(CheckpointRecord),
}

impl ExportLine {
    /// Reads a line, with or without its end.
    ///
    /// # Errors
    /// [`serde_json::Error`] if it is no line of an export.
    pub fn parse(line: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Type {
            AuditEntry,
            AuditCheckpoint,
        }
        #[derive(Deserialize)]
        struct Tag {
            r#type: Type,
        }
        // Derived code would parse the states of an entry, whose text is part of the hash.
        match serde_json::from_slice::<Tag>(line)?.r#type {
            Type::AuditEntry => serde_json::from_slice(line).map(Self::AuditEntry),
            Type::AuditCheckpoint => serde_json::from_slice(line).map(Self::AuditCheckpoint),
        }
    }

    /// The checkpoint of this line; `None` for an entry.
    #[must_use]
    pub const fn checkpoint(&self) -> Option<&CheckpointRecord> {
        match self {
            Self::AuditEntry(_) => None,
            Self::AuditCheckpoint(checkpoint) => Some(checkpoint),
        }
    }
}

/// The text of lines, with their ends.
///
/// # Errors
/// [`serde_json::Error`], never in practice.
pub fn to_ndjson(lines: &[ExportLine]) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// The hash of a checkpoint in hexadecimal digits: SHA-256 of the previous checkpoint's hash, which the first
/// one does not have, and of the texts of its entries with a line feed between them. Same as in the database.
#[must_use]
pub fn checkpoint_hash(previous: Option<&CheckpointRecord>, entries: &[AuditRow]) -> String {
    let mut hash = Sha256::new();
    if let Some(previous) = previous {
        // A damaged hash leads to another result.
        hash.update(hex::decode(&previous.hash).unwrap_or_default());
    }
    let texts: Vec<String> = entries.iter().map(canonical_text).collect();
    hash.update(texts.join("\n"));
    hex::encode(hash.finalize())
}

/// The text of an entry that is hashed: an array as Postgres formats `jsonb`. `audit_entry_text_v1` in the
/// database is the same.
fn canonical_text(entry: &AuditRow) -> String {
    let micros = entry.at.unix_timestamp_nanos() / 1_000;
    let text = |text: &str| Value::from(text).to_string();
    let state = |state: &Option<String>| state.clone().unwrap_or_else(|| "null".to_owned());
    format!(
        "[{}, {micros}, {}, {}, {}, {}, {}, {}]",
        entry.audit_id,
        text(&entry.operator),
        text(&entry.action),
        text(&entry.subject),
        state(&entry.before),
        state(&entry.after),
        entry.trace_id.as_deref().map_or_else(|| "null".to_owned(), text),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> AuditRow {
        AuditRow {
            audit_id: 7,
            at: OffsetDateTime::UNIX_EPOCH + time::Duration::microseconds(1),
            operator: "admin \"x\"".to_owned(),
            action: "partner.change".to_owned(),
            subject: "a\u{1}\n€".to_owned(),
            before: None,
            after: Some(r#"{"b": 1.50, "aa": [1, "x"]}"#.to_owned()),
            trace_id: None,
            partner_id: None,
        }
    }

    #[test]
    fn line_keeps_the_text_of_an_entry() {
        let text = r#"[7, 1, "admin \"x\"", "partner.change", "a\u0001\n€", null, {"b": 1.50, "aa": [1, "x"]}, null]"#;
        assert_eq!(canonical_text(&entry()), text);
        let lines = to_ndjson(&[ExportLine::AuditEntry(entry())]).unwrap();
        let ExportLine::AuditEntry(read) = ExportLine::parse(&lines).unwrap() else {
            panic!("another type");
        };
        assert_eq!(canonical_text(&read), text);
        let value: Value = serde_json::from_slice(&lines).unwrap();
        assert_eq!(value["type"], "audit_entry");
        assert_eq!(value["at"], "1970-01-01T00:00:00.000001Z");
    }

    #[test]
    fn checkpoint_is_read_as_it_was_written_and_other_lines_are_refused() {
        let checkpoint = CheckpointRecord {
            number: 1,
            at: OffsetDateTime::UNIX_EPOCH,
            hash: checkpoint_hash(None, &[entry()]),
            mac: "cd".repeat(32),
        };
        let line = to_ndjson(&[ExportLine::AuditCheckpoint(checkpoint.clone())]).unwrap();
        assert_eq!(ExportLine::parse(&line).unwrap().checkpoint(), Some(&checkpoint));
        for refused in [
            "",
            "{}",
            r#"{"type":"other"}"#,
            r#"{"type":"audit_entry"}"#,
            r#"{"number":1}"#,
        ] {
            assert!(ExportLine::parse(refused.as_bytes()).is_err(), "{refused}");
        }
        let mut changed = entry();
        changed.after = Some(r#"{"b": 1.5, "aa": [1, "x"]}"#.to_owned());
        assert_ne!(checkpoint_hash(None, &[changed]), checkpoint.hash);
        assert_ne!(checkpoint_hash(Some(&checkpoint), &[entry()]), checkpoint.hash);
    }
}
