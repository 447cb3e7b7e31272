//! Check of audit checkpoints against what the database does not hold: the key of their HMACs, and the file
//! that the service exports.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context as _, bail};
use sqlx::PgConnection;
use vouchsafe_domain::audit_export::{CheckpointRecord, ExportLine, checkpoint_hash};
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;
use vouchsafe_store::{ExportContent, read_archived_checkpoints, read_checkpoints};
use vouchsafe_verify::Finding;

/// Checkpoints per statement.
const PAGE: usize = 1_000;

/// Violations that are shown.
const MAX_ROWS: usize = 20;

/// A file that the service exported.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExportedFile<'a> {
    pub(super) path: &'a Path,
    pub(super) content: ExportContent,
}

/// Checks all checkpoints: their HMACs if there is a key, and their equality with those of a file, whose
/// entries are checked, too.
pub(super) async fn check(
    connection: &mut PgConnection,
    key: Option<CheckpointKey>,
    file: Option<ExportedFile<'_>>,
) -> anyhow::Result<Vec<Finding>> {
    let mut exported = file
        .map(|file| ExportCheck::open(file, key.clone()))
        .transpose()?;
    let mut macs = key.map(|key| MacCheck::new("audit.checkpoints.mac", key));
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
    if let Some(macs) = &mut macs {
        check_archived(connection, macs).await?;
    }
    let mut findings = Vec::new();
    findings.extend(macs.map(|macs| macs.violations.into_finding()));
    if let Some(exported) = exported {
        findings.extend(exported.finish()?);
    }
    Ok(findings)
}

async fn check_archived(connection: &mut PgConnection, macs: &mut MacCheck) -> Result<(), sqlx::Error> {
    let mut first = 1;
    loop {
        let records = read_archived_checkpoints(connection, first, PAGE).await?;
        for record in &records {
            macs.check_archived(record);
        }
        match records.last() {
            Some(last) if records.len() == PAGE => first = last.number + 1,
            _ => return Ok(()),
        }
    }
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
    violations: Violations,
}

impl MacCheck {
    fn new(name: &'static str, key: CheckpointKey) -> Self {
        let description = "audit checkpoints have their HMAC under the vault's key";
        Self {
            key,
            violations: Violations::new(name, description),
        }
    }

    fn check(&mut self, record: &CheckpointRecord) {
        self.check_number(record, record.number, "");
    }

    /// The HMAC of what stays of an archived checkpoint has the negative number.
    fn check_archived(&mut self, record: &CheckpointRecord) {
        self.check_number(record, -record.number, "what stays of ");
    }

    /// Checks the HMAC of a record under this number.
    fn check_number(&mut self, record: &CheckpointRecord, signed_number: i64, part: &str) {
        let CheckpointRecord {
            number,
            at,
            hash,
            mac,
        } = record;
        if !self.key.is_mac_of(mac, signed_number, *at, hash) {
            self.violations
                .add(format!("{part}checkpoint {number} has a wrong HMAC"));
        }
    }
}

/// Compares the checkpoints of a file, in the order of their numbers, with those of the database.
struct ExportCheck<'a, R> {
    file: ExportedFile<'a>,
    lines: R,
    next: Option<CheckpointRecord>,
    checkpoints: Violations,
    entries: Violations,
    macs: Option<MacCheck>,
}

impl<'a> ExportCheck<'a, BufReader<File>> {
    fn open(file: ExportedFile<'a>, key: Option<CheckpointKey>) -> anyhow::Result<Self> {
        let path = file.path.display();
        let opened = File::open(file.path).with_context(|| format!("cannot read {path}"))?;
        Self::new(file, key, BufReader::new(opened))
    }
}

impl<'a, R: BufRead> ExportCheck<'a, R> {
    fn new(file: ExportedFile<'a>, key: Option<CheckpointKey>, lines: R) -> anyhow::Result<Self> {
        let checkpoints = "audit checkpoints are those that the service has exported";
        let entries = "exported audit entries are those that their checkpoints cover";
        let mut check = Self {
            file,
            lines,
            next: None,
            checkpoints: Violations::new("audit.checkpoints.exported", checkpoints),
            entries: Violations::new("audit.entries.exported", entries),
            macs: key.map(|key| MacCheck::new("audit.checkpoints.exported.mac", key)),
        };
        check.advance()?;
        if check.next.is_none() {
            bail!(
                "{} has no checkpoint: is it the file that the service exports?",
                file.path.display()
            );
        }
        Ok(check)
    }

    /// Reads the next checkpoint with its entries. A file may begin with a checkpoint without entries, the
    /// last one of another file.
    fn advance(&mut self) -> anyhow::Result<()> {
        let mut entries = Vec::new();
        let previous = self.next.take();
        self.next = loop {
            match self.read_line()? {
                Some(ExportLine::AuditEntry(entry)) => entries.push(entry),
                Some(ExportLine::AuditCheckpoint(checkpoint)) => break Some(checkpoint),
                None => break None,
            }
        };
        if let (Some(next), Some(macs)) = (&self.next, &mut self.macs) {
            macs.check(next);
        }
        if let Some(next) = &self.next
            && self.file.content == ExportContent::Entries
            && !(previous.is_none() && entries.is_empty())
            && checkpoint_hash(previous.as_ref(), &entries) != next.hash
        {
            let row = format!("the entries of checkpoint {} differ", next.number);
            self.entries.add(row);
        }
        Ok(())
    }

    fn read_line(&mut self) -> anyhow::Result<Option<ExportLine>> {
        let cannot = || format!("cannot read the checkpoints of {}", self.file.path.display());
        let mut line = Vec::new();
        self.lines.read_until(b'\n', &mut line).with_context(cannot)?;
        // The service may be writing the last line, which then has no end. Every other line is a record.
        let record = line.strip_suffix(b"\n").map(ExportLine::parse);
        record.transpose().with_context(cannot)
    }

    fn check(&mut self, record: &CheckpointRecord) -> anyhow::Result<()> {
        while let Some(exported) = &self.next
            && exported.number <= record.number
        {
            if exported.number < record.number {
                self.checkpoints
                    .add(format!("checkpoint {} is gone", exported.number));
            } else if exported != record {
                self.checkpoints
                    .add(format!("checkpoint {} differs", exported.number));
            }
            self.advance()?;
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<Vec<Finding>> {
        while let Some(exported) = &self.next {
            self.checkpoints
                .add(format!("checkpoint {} is gone", exported.number));
            self.advance()?;
        }
        let mut findings = vec![self.checkpoints.into_finding()];
        if self.file.content == ExportContent::Entries {
            findings.push(self.entries.into_finding());
        }
        findings.extend(self.macs.map(|macs| macs.violations.into_finding()));
        Ok(findings)
    }
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;
    use vouchsafe_domain::audit_export::to_ndjson;
    use vouchsafe_domain::audit_log::AuditRow;
    use vouchsafe_domain::fixtures::audit_entry;

    use super::*;

    #[test]
    fn checkpoint_with_the_mac_of_another_hash_is_reported() {
        let key = CheckpointKey::new([1; 32]);
        let mut check = MacCheck::new("name", key.clone());
        for (number, hash) in [(1, "ab"), (2, "cd"), (3, "ab")] {
            check.check(&CheckpointRecord {
                mac: key.mac(number, OffsetDateTime::UNIX_EPOCH, hash),
                ..record(number)
            });
        }
        assert_eq!(check.violations.rows, ["checkpoint 2 has a wrong HMAC"]);
    }

    fn record(number: i64) -> CheckpointRecord {
        CheckpointRecord {
            number,
            at: OffsetDateTime::UNIX_EPOCH,
            hash: "ab".to_owned(),
            mac: "ef".repeat(32),
        }
    }

    /// Compares the text of a file with these checkpoints. Returns what is found in the checkpoints, then in
    /// the entries.
    fn compare(
        file: &str,
        content: ExportContent,
        records: &[CheckpointRecord],
    ) -> anyhow::Result<Vec<Vec<String>>> {
        let path = Path::new("exported.ndjson");
        let mut check = ExportCheck::new(ExportedFile { path, content }, None, file.as_bytes())?;
        for record in records {
            check.check(record)?;
        }
        Ok(check.finish()?.into_iter().map(|finding| finding.rows).collect())
    }

    fn text(lines: &[ExportLine]) -> String {
        String::from_utf8(to_ndjson(lines).unwrap()).unwrap()
    }

    #[test]
    fn exported_file_is_compared_to_its_end_or_refused() {
        let records = [record(1), record(2), record(3)];
        let compare = |file: &str| -> anyhow::Result<Vec<String>> {
            Ok(compare(file, ExportContent::Checkpoints, &records)?.concat())
        };
        let line = |number| text(&[ExportLine::AuditCheckpoint(record(number))]);
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

    #[test]
    fn changed_removed_and_added_entries_of_a_file_are_found() {
        let covers = |number, previous, entries: &[AuditRow]| CheckpointRecord {
            hash: checkpoint_hash(previous, entries),
            ..record(number)
        };
        let one = covers(1, None, &[audit_entry(1), audit_entry(2)]);
        let two = covers(2, Some(&one), &[audit_entry(3)]);
        let records = [one.clone(), two.clone()];
        let compare = |file: &str| compare(file, ExportContent::Entries, &records).unwrap();
        let line_of = |audit_id| text(&[ExportLine::AuditEntry(audit_entry(audit_id))]);
        let (one, two) = (
            text(&[ExportLine::AuditCheckpoint(one)]),
            text(&[ExportLine::AuditCheckpoint(two)]),
        );
        let whole = [line_of(1), line_of(2), one.clone(), line_of(3), two.clone()].concat();
        assert_eq!(compare(&whole), [[""; 0]; 2]);
        let continued = [one.clone(), line_of(3), two.clone()].concat();
        assert_eq!(
            compare(&continued),
            [[""; 0]; 2],
            "begins with the end of another file"
        );
        for changed in [
            whole.replacen("\"a\": 1", "\"a\": 2", 1),
            whole.replacen(&line_of(2), "", 1),
            whole.replacen(&line_of(2), &(line_of(2) + &line_of(2)), 1),
        ] {
            let found = compare(&changed);
            assert_eq!(
                found,
                [vec![], vec!["the entries of checkpoint 1 differ".to_owned()]]
            );
        }
        let stripped = [one, two].concat();
        assert_eq!(compare(&stripped)[1], ["the entries of checkpoint 2 differ"]);
    }
}
