//! Rules for migrations: each declares its kind, and one that adds removes nothing.

use super::*;

/// Migrations up to this one declare no kind: they are released, and remove nothing that a program needs.
const LAST_UNDECLARED: i64 = 9;

/// Statements after which a program fails that has used the object, or that has written rows without it. `*`
/// is any word.
const CONTRACTIONS: [&[&str]; 9] = [
    &["DROP", "TABLE"],
    &["DROP", "COLUMN"],
    &["DROP", "FUNCTION"],
    &["DROP", "VIEW"],
    &["DROP", "SEQUENCE"],
    &["RENAME"],
    &["SET", "NOT", "NULL"],
    &["COLUMN", "*", "TYPE"],
    &["DATA", "TYPE"],
];

/// What is wrong with a migration; `earlier` are the versions before it.
fn violation(version: i64, text: &str, earlier: &[i64]) -> Option<String> {
    let kind = match MigrationKind::parse(text) {
        None if version > LAST_UNDECLARED => {
            return Some(
                "declares no kind: begin with `-- expand`, or `-- contract: MIGRATION (VERSION)`".to_owned(),
            );
        }
        None => MigrationKind::Expand,
        Some(kind) => kind,
    };
    match kind {
        MigrationKind::Contract(required) if earlier.contains(&required.migration) => None,
        MigrationKind::Contract(required) => Some(format!(
            "requires migration {}, which does not come before it",
            required.migration
        )),
        MigrationKind::Expand => find_contraction(text).map(|found| {
            format!("is to add, and contains {found}: remove it with a contract migration of a later release")
        }),
    }
}

fn find_contraction(text: &str) -> Option<String> {
    let lines = text
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join(" ").to_uppercase();
    let words: Vec<_> = code
        .split(|next: char| !next.is_alphanumeric() && next != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let is_found = |contraction: &&&[&str]| {
        let mut parts = words.windows(contraction.len());
        parts.any(|part| {
            part.iter()
                .zip(**contraction)
                .all(|(word, expected)| word == expected || *expected == "*")
        })
    };
    let found = CONTRACTIONS.iter().find(is_found)?;
    Some(found.join(" "))
}

#[test]
fn migrations_declare_their_kind_and_those_that_add_remove_nothing() {
    let migrations = Migrations::of_program();
    let texts: Vec<_> = migrations
        .0
        .iter()
        .map(|migration| (migration.version, migration.sql.as_str()))
        .collect();
    assert!(texts.len() > 8, "only {} were found", texts.len());
    let versions: Vec<_> = texts.iter().map(|(version, _)| *version).collect();
    let violations = texts.iter().enumerate().filter_map(|(index, (version, text))| {
        let violation = violation(*version, text, &versions[..index])?;
        Some(format!("migration {version} {violation}"))
    });
    assert_eq!(violations.collect::<Vec<_>>(), [] as [String; 0]);
}

#[test]
fn each_violation_is_found() {
    for (version, text, expected) in [
        (10, "ALTER TABLE a ADD COLUMN b text;", "declares no kind"),
        (10, "-- contract\nDROP TABLE a;", "declares no kind"),
        (
            10,
            "-- contract: 10 (1.1.0)\nDROP TABLE a;",
            "requires migration 10",
        ),
        (10, "-- expand\nDROP TABLE a;", "DROP TABLE"),
        (10, "-- expand\nALTER TABLE a\n    DROP COLUMN b;", "DROP COLUMN"),
        (
            9,
            "-- no-transaction\n-- expand\nALTER TABLE a RENAME TO b;",
            "RENAME",
        ),
        (
            9,
            "-- expand\nALTER TABLE a ALTER COLUMN b SET NOT NULL;",
            "SET NOT NULL",
        ),
        (9, "ALTER TABLE a ALTER COLUMN b TYPE bigint;", "TYPE"),
        (9, "ALTER TABLE a ALTER b SET DATA TYPE bigint;", "DATA TYPE"),
    ] {
        let found = violation(version, text, &[8, 9]).unwrap_or_default();
        assert!(found.contains(expected), "{text}: {found}");
    }
    for text in [
        "-- expand\n-- Replaces what DROP TABLE would remove.\nALTER TABLE a ADD COLUMN b text NOT NULL DEFAULT '';",
        "-- no-transaction\n-- contract: 9 (1.0.0)\nDROP INDEX CONCURRENTLY IF EXISTS a;",
        "-- expand\nALTER TABLE a ALTER COLUMN b DROP DEFAULT;",
    ] {
        assert_eq!(violation(10, text, &[8, 9]), None, "{text}");
    }
}
