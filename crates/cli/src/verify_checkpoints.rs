//! Check of audit checkpoints against what the database does not hold: the key of their HMACs, and the file that the service exports.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context as _, bail};
use sqlx::PgConnection;
use time::{Duration, OffsetDateTime};
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;
use vouchsafe_store::{CheckpointRecord, read_checkpoints};
use vouchsafe_verify::Finding;

/// Checkpoints per statement.
const PAGE: usize = 1_000;

/// Violations that are shown.
const MAX_ROWS: usize = 20;

/// During an upgrade from version 0.2.0 nodes of that version may still write checkpoints without an HMAC.
const UPGRADE: Duration = Duration::days(1);

/// Checks all checkpoints: their HMACs if there is a key, and their equality with the records of a file.
pub(super) async fn check(
    connection: &mut PgConnection,
    key: Option<CheckpointKey>,
    file: Option<&Path>,
) -> anyhow::Result<Vec<Finding>> {
    let mut macs = key.map(MacCheck::new);
    let mut exported = file.map(ExportCheck::open).transpose()?;
    let mut first = 1;
    loop {
        let records = read_checkpoints(connection, first, PAGE).await?;
        for record in &records {
            if let Some(macs) = &mut macs {
                macs.check(record);
            }
            if let Some(exported) = &mut exported {
                exported.check(record)?;
            }
        }
        match records.last() {
            Some(last) if records.len() == PAGE => first = last.number + 1,
            _ => break,
        }
    }
    let mut findings = Vec::new();
    findings.extend(macs.map(|macs| macs.violations.into_finding()));
    if let Some(exported) = exported {
        findings.push(exported.finish()?);
    }
    Ok(findings)
}

struct Violations {
    name: &'static str,
    description: &'static str,
    rows: Vec<String>,
    has_more: bool,
}

impl Violations {
    fn new(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            description,
            rows: Vec::new(),
            has_more: false,
        }
    }

    fn add(&mut self, row: String) {
        if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        } else {
            self.has_more = true;
        }
    }

    fn into_finding(self) -> Finding {
        Finding {
            name: self.name,
            description: self.description,
            holds: self.rows.is_empty(),
            rows: self.rows,
            has_more: self.has_more,
        }
    }
}

struct MacCheck {
    key: CheckpointKey,
    /// Time of the first checkpoint with an HMAC.
    since: Option<OffsetDateTime>,
    is_upgraded: bool,
    violations: Violations,
}

impl MacCheck {
    fn new(key: CheckpointKey) -> Self {
        let description =
            "audit checkpoints have an HMAC under the vault's key, from the first one that has it";
        Self {
            key,
            since: None,
            is_upgraded: false,
            violations: Violations::new("audit.checkpoints.mac", description),
        }
    }

    fn check(&mut self, record: &CheckpointRecord) {
        let CheckpointRecord {
            number,
            at,
            hash,
            mac,
        } = record;
        match mac {
            Some(mac) if self.key.is_mac_of(mac, *number, *at, hash) => {
                let since = *self.since.get_or_insert(*at);
                self.is_upgraded |= *at - since > UPGRADE;
            }
            Some(_) => self
                .violations
                .add(format!("checkpoint {number} has a wrong HMAC")),
            None if self.is_upgraded => self.violations.add(format!("checkpoint {number} has no HMAC")),
            None => {}
        }
    }
}

/// Compares the records of a file, in the order of their numbers, with those of the database.
struct ExportCheck<'a, R> {
    path: &'a Path,
    lines: R,
    next: Option<CheckpointRecord>,
    violations: Violations,
}

impl<'a> ExportCheck<'a, BufReader<File>> {
    fn open(path: &'a Path) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::new(path, BufReader::new(file))
    }
}

impl<'a, R: BufRead> ExportCheck<'a, R> {
    fn new(path: &'a Path, lines: R) -> anyhow::Result<Self> {
        let description = "audit checkpoints are those that the service has exported";
        let mut check = Self {
            path,
            lines,
            next: None,
            violations: Violations::new("audit.checkpoints.exported", description),
        };
        check.advance()?;
        if check.next.is_none() {
            bail!(
                "{} has no checkpoint: is it the file that the service exports?",
                path.display()
            );
        }
        Ok(check)
    }

    fn advance(&mut self) -> anyhow::Result<()> {
        let cannot = || format!("cannot read the checkpoints of {}", self.path.display());
        let mut line = Vec::new();
        self.lines.read_until(b'\n', &mut line).with_context(cannot)?;
        // The service may be writing the last line, which then has no end. Every other line is a record.
        let record = line.strip_suffix(b"\n").map(serde_json::from_slice);
        self.next = record.transpose().with_context(cannot)?;
        Ok(())
    }

    fn check(&mut self, record: &CheckpointRecord) -> anyhow::Result<()> {
        while let Some(exported) = self.next.take_if(|exported| exported.number <= record.number) {
            if exported.number < record.number {
                self.violations
                    .add(format!("checkpoint {} is gone", exported.number));
            } else if exported != *record {
                self.violations
                    .add(format!("checkpoint {} differs", exported.number));
            }
            self.advance()?;
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<Finding> {
        while let Some(exported) = self.next.take() {
            self.violations
                .add(format!("checkpoint {} is gone", exported.number));
            self.advance()?;
        }
        Ok(self.violations.into_finding())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the checkpoints, written on these days, that are reported.
    fn reported(checkpoints: &[(i64, Option<bool>)]) -> Vec<String> {
        let key = CheckpointKey::new([1; 32]);
        let mut check = MacCheck::new(key.clone());
        for (number, (day, is_right)) in (1..).zip(checkpoints) {
            let at = OffsetDateTime::UNIX_EPOCH + Duration::days(*day);
            let mac = is_right.map(|is_right| key.mac(number, at, if is_right { "ab" } else { "cd" }));
            let hash = "ab".to_owned();
            check.check(&CheckpointRecord {
                number,
                at,
                hash,
                mac,
            });
        }
        check.violations.rows
    }

    #[test]
    fn checkpoint_without_mac_is_reported_once_all_nodes_are_upgraded() {
        let (with, without) = (Some(true), None);
        let upgrade = [(0, without), (1, without), (1, with), (2, without), (2, with)];
        assert_eq!(reported(&upgrade), [""; 0]);
        let later = [&upgrade[..], &[(4, with), (4, without), (4, with)]].concat();
        assert_eq!(reported(&later), ["checkpoint 7 has no HMAC"]);
        assert_eq!(
            reported(&[(0, with), (0, Some(false))]),
            ["checkpoint 2 has a wrong HMAC"]
        );
    }

    fn record(number: i64) -> CheckpointRecord {
        CheckpointRecord {
            number,
            at: OffsetDateTime::UNIX_EPOCH,
            hash: "ab".to_owned(),
            mac: None,
        }
    }

    /// Compares the text of a file with the checkpoints 1 to 3.
    fn compare(file: &str) -> anyhow::Result<Vec<String>> {
        let mut check = ExportCheck::new(Path::new("checkpoints.ndjson"), file.as_bytes())?;
        for number in 1..=3 {
            check.check(&record(number))?;
        }
        Ok(check.finish()?.rows)
    }

    #[test]
    fn exported_file_is_compared_to_its_end_or_refused() {
        let line = |number| serde_json::to_string(&record(number)).unwrap() + "\n";
        let (one, two, three, four) = (line(1), line(2), line(3), line(4));
        let all = [&*one, &two, &three].concat();
        assert_eq!(compare(&all).unwrap(), [""; 0]);
        assert_eq!(
            compare(&[&*all, &four].concat()).unwrap(),
            ["checkpoint 4 is gone"]
        );
        let other = all.replacen("\"ab\"", "\"cd\"", 1);
        assert_eq!(compare(&other).unwrap(), ["checkpoint 1 differs"]);
        let unfinished = [&*one, &two[..20]].concat();
        assert_eq!(compare(&unfinished).unwrap(), [""; 0]);
        for refused in [
            String::new(),
            one[..20].to_owned(),
            [&two[..20], "\n", &three].concat(),
            [&*one, "\n", &three].concat(),
            [&*one, &two[..20], "\n"].concat(),
            [&*one, "\0\0\n", &three, &four].concat(),
        ] {
            assert!(compare(&refused).is_err(), "{refused:?}");
        }
    }
}
