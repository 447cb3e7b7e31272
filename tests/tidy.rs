//! Rules that the compiler does not check: module circles, the crates' dependencies, file length, words,
//! retired folder names.
//!
//! Each rule has an example that breaks it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests panic on failure")]

#[path = "tidy/campaigns.rs"]
mod campaigns;
#[path = "tidy/lock_order.rs"]
mod lock_order;
#[path = "tidy/modules/mod.rs"]
mod modules;
#[path = "tidy/mutants.rs"]
mod mutants;
#[path = "tidy/named_tests.rs"]
mod named_tests;
#[path = "tidy/released.rs"]
mod released;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/text.rs"]
mod text;
#[path = "tidy/workspace.rs"]
mod workspace;
#[path = "tidy/workspace_tests.rs"]
mod workspace_tests;

use std::fs;
use std::path::Path;

use crate::lock_order::{LockOrder, Unsorted};
use crate::modules::{ModuleTree, PURE_CORES, impure_references, module_circles};
use crate::rules::{FORBIDDEN_WORDS, MAX_LINES, violations};
use crate::workspace::{Workspace, generated_block};

#[test]
fn modules_have_no_circles() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let roots = Workspace::read(repository).crate_roots();
    assert!(roots.len() > 3, "only {} crates were found", roots.len());
    let trees = roots
        .iter()
        .map(|root| ModuleTree::read(&root.name, &root.file, repository));
    let found: Vec<_> = trees.flat_map(|tree| module_circles(&tree)).collect();
    assert!(
        found.is_empty(),
        "{} circles; move what both need to a module below both:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn pure_cores_use_only_the_domain() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let roots = Workspace::read(repository).crate_roots();
    let engine = roots.iter().find(|root| root.name == "vouchsafe_actors").unwrap();
    let tree = ModuleTree::read(&engine.name, &engine.file, repository);
    let found = impure_references(&tree, &PURE_CORES);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn crates_follow_rules() {
    let found = Workspace::read(Path::new(env!("CARGO_MANIFEST_DIR"))).violations();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn architecture_page_lists_the_crates() {
    let table = Workspace::read(Path::new(env!("CARGO_MANIFEST_DIR"))).dependency_table();
    assert_block_is_generated("ARCHITECTURE.md", "crates", &table, "architecture_page");
}

#[test]
fn reliability_page_lists_the_seeded_bugs() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mutants = mutants::read(&repository.join("tests/mutants"));
    assert!(mutants.len() >= 20, "only {} patches were found", mutants.len());
    assert_block_is_generated(
        "docs/reliability.md",
        "mutants",
        &mutants::table(&mutants),
        "reliability_page",
    );
    let conflicts = mutants
        .iter()
        .filter_map(|mutant| mutants::find_conflict(repository, &mutant.file));
    let conflicts: String = conflicts.collect();
    assert!(
        conflicts.is_empty(),
        "make these patches of tests/mutants again for the changed source:\n{conflicts}"
    );
    let mut missing: Vec<_> = mutants
        .iter()
        .map(|mutant| mutant.test.rsplit("::").next().unwrap())
        .collect();
    for_each_file(repository, "", &mut |path, text| {
        missing.retain(|test| !path.ends_with(".rs") || !named_tests::defines(text, test));
    });
    assert_eq!(missing, [] as [&str; 0]);
}

#[test]
fn reliability_page_has_the_totals_of_the_campaigns() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reliability/campaigns.jsonl");
    let table = campaigns::table(&fs::read_to_string(file).unwrap());
    assert_block_is_generated("docs/reliability.md", "campaigns", &table, "reliability_page");
}

#[test]
fn patch_that_does_not_apply_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let patch = directory.path().join("outdated.patch");
    let text = "Bug: x\nTest: x\n\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n";
    fs::write(&patch, text).unwrap();
    for (source, applies) in [("old\n", true), ("other\n", false)] {
        fs::write(directory.path().join("f"), source).unwrap();
        assert_eq!(
            mutants::find_conflict(directory.path(), &patch).is_none(),
            applies,
            "{source}"
        );
    }
}

/// Compares a block of a page with its source, or writes it with `VOUCHSAFE_REWRITE_DOCS`.
fn assert_block_is_generated(file: &str, name: &str, expected: &str, test: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let mut page = fs::read_to_string(&path).unwrap();
    let block = generated_block(&page, name).unwrap_or_else(|| panic!("{file} has no markers of {name}"));
    if std::env::var_os("VOUCHSAFE_REWRITE_DOCS").is_some() {
        page.replace_range(block.clone(), expected);
        fs::write(&path, &page).unwrap();
    }
    assert!(
        page[block.start..].starts_with(&format!("{expected}<!--")),
        "{name} of {file} differ from their source; regenerate them with\n    \
         VOUCHSAFE_REWRITE_DOCS=1 cargo test -p vouchsafe --test tidy {test}"
    );
}

#[test]
fn sources_follow_rules() {
    let mut found = Vec::new();
    let mut file_count = 0;
    for_each_file(Path::new(env!("CARGO_MANIFEST_DIR")), "", &mut |path, text| {
        file_count += 1;
        found.extend(violations(path, text));
    });
    assert!(file_count > 20, "only {file_count} files were found");
    assert!(
        found.is_empty(),
        "{} violations:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn tests_named_in_reliability_and_security_pages_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages =
        ["docs/reliability.md", "docs/security.md"].map(|page| fs::read_to_string(root.join(page)).unwrap());
    let mut missing: Vec<_> = pages
        .iter()
        .flat_map(|page| named_tests::named_tests(page))
        .collect();
    assert!(missing.len() > 150, "the pages name only {} tests", missing.len());
    missing.push(("cancellation", "a_missing_test"));
    for_each_file(root, "", &mut |path, text| {
        missing.retain(|test| !named_tests::is_defined_in(path, text, *test));
    });
    assert_eq!(missing, [("cancellation", "a_missing_test")]);
}

#[test]
fn multi_row_locks_are_sorted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let order = LockOrder::parse(&fs::read_to_string(root.join("docs/reliability.md")).unwrap());
    let is_of_the_program = |path: &str| {
        let is_tested = ![
            "tests/",
            "load/",
            "benches/",
            "crates/simulation/",
            "crates/test-harness/",
        ]
        .iter()
        .any(|folder| path.starts_with(folder));
        is_tested && (path.ends_with(".rs") || path.ends_with(".sql"))
    };
    let (mut found, mut file_count) = (Unsorted::new(), 0);
    for_each_file(root, "", &mut |path, text| {
        if is_of_the_program(path) {
            file_count += 1;
            order.find_unsorted(path, text, &mut found);
        }
    });
    assert!(file_count > 100, "only {file_count} files were found");
    assert_eq!(
        found, order.exceptions,
        "sort the rows in the query that locks them, or explain the statement in docs/reliability.md, \"Lock order\""
    );
}

#[test]
fn unsorted_lock_is_found() {
    let page = "\n## Lock order\n\n| `chunks` | `chunk_id` |\n| `orders` | `partner_id`, `order_id` |\n";
    let order = LockOrder::parse(page);
    let find = |path: &str, text: &str| {
        let mut found = Unsorted::new();
        order.find_unsorted(path, text, &mut found);
        found
            .into_iter()
            .map(|((_, statement), number)| (statement, number))
            .collect::<Vec<_>>()
    };
    let unsorted = [
        (
            "UPDATE chunks AS c SET node = $2 WHERE c.reservation_id = $1",
            "UPDATE chunks",
        ),
        (
            "UPDATE chunks SET emptied = true WHERE chunk_id = ANY ($1)",
            "UPDATE chunks",
        ),
        (
            "DELETE FROM chunks WHERE chunk_id IN (SELECT f.chunk_id FROM found AS f)",
            "DELETE FROM chunks",
        ),
        (
            "SELECT * FROM chunks WHERE emptied FOR SHARE",
            "SELECT FROM chunks",
        ),
        (
            "SELECT * FROM chunks ORDER BY first_expiry FOR UPDATE",
            "SELECT FROM chunks",
        ),
        (
            "SELECT * FROM orders ORDER BY order_id, partner_id FOR NO KEY UPDATE",
            "SELECT FROM orders",
        ),
        (
            "PERFORM FROM orders AS o WHERE o.partner_id = v_partner FOR UPDATE",
            "SELECT FROM orders",
        ),
    ];
    for (text, expected) in unsorted {
        assert_eq!(find("f.sql", text), [(expected.to_owned(), 1)], "{text}");
        let source = format!("//! \"Quoted\".\nfn f() {{ query!(r#\"{text}\"#, '\"'); query!(\"{text}\") }}");
        assert_eq!(find("f.rs", &source), [(expected.to_owned(), 2)], "{text}");
    }
    for sorted in [
        "UPDATE chunks SET emptied = true WHERE chunk_id = $1",
        "PERFORM FROM orders AS o WHERE o.partner_id = v_row.partner_id AND o.order_id = v_row.order_id FOR UPDATE",
        "SELECT * FROM orders AS o ORDER BY o.partner_id, o.order_id FOR NO KEY UPDATE OF o",
        "SELECT * FROM chunks AS c JOIN orders AS o ON true ORDER BY c.chunk_id FOR SHARE OF c",
        "WITH f AS (SELECT chunk_id FROM chunks ORDER BY chunk_id FOR UPDATE) UPDATE chunks SET node = 'a'",
        "UPDATE chunks SET emptied = true WHERE chunk_id IN (SELECT chunk_id FROM chunks FOR UPDATE SKIP LOCKED)",
        "INSERT INTO chunks (chunk_id) VALUES (1) ON CONFLICT (chunk_id) DO UPDATE SET node = 'a'",
        "UPDATE products SET name = $1 -- UPDATE chunks",
    ] {
        assert_eq!(find("f.sql", sorted), [], "{sorted}");
    }
}

#[test]
fn released_migrations_and_functions_are_unchanged() {
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let list = fs::read_to_string(migrations.join("released.sha256")).unwrap();
    let read = |file: &str| fs::read(migrations.join(file)).ok();
    let found = released::violations(&list, read);
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(
        list.contains("# 1.0.0-rc.1\n"),
        "the files of the first release are listed"
    );
}

#[test]
fn each_rule_rejects_its_snippet() {
    let long = format!("//! Doc.\n{}", "fn f() {}\n".repeat(MAX_LINES));
    let wide = format!("//! Doc.\n    /// {}", "word ".repeat(22));
    let forbidden = format!("//! {}{} later", FORBIDDEN_WORDS[0].0, FORBIDDEN_WORDS[0].1);
    let rejected = [
        ("src/config.rs", "fn f() { todo!() }", "todo!"),
        ("src/config.rs", "fn f() { unimplemented!() }", "unimplemented!"),
        ("src/config.rs", "fn f() { dbg!(1); }", "dbg!"),
        (
            "tests/it/orders.rs",
            "#[test]\n#[ignore = \"slow\"]\nfn f() {}",
            "#[ignore",
        ),
        ("src/config.rs", long.as_str(), "split the file"),
        ("src/config.rs", wide.as_str(), "config.rs:2: wrap the comment"),
        (
            "src/config.rs",
            "//! Which port is free?\n//!\n//! The first one.",
            "starts with a question",
        ),
        (
            "src/config.rs",
            "//! Which settings\n//! are missing? All.",
            "starts with a question",
        ),
        (
            "crates/x/src/vendor/http/mod.rs",
            "use std::fs;",
            "use procurement",
        ),
        ("docs/performance.md", forbidden.as_str(), "remove it"),
    ];
    for (path, text, expected) in rejected {
        let text = if path.ends_with(".rs") && !text.starts_with("//!") {
            format!("//! Doc.\n{text}")
        } else {
            text.to_owned()
        };
        let found = violations(path, &text);
        assert!(
            found.iter().any(|violation| violation.contains(expected)),
            "{path}: {text:.80} gave {found:?}"
        );
    }
    assert!(violations("src/config.rs", "use std::fs;\n")[0].contains("starts without a //! header"));
}

#[test]
fn allowed_snippets_pass() {
    let allowed = [
        ("src/config.rs", "//! Settings v1.2 of a server. Why here?"),
        (
            "src/config.rs",
            "fn f<'a>(c: char) -> bool { c == '\"' }\nfn g() { h(r#\"dbg!(\"#) }",
        ),
    ];
    for (path, text) in allowed {
        let text = if path.ends_with(".rs") && !text.starts_with("//!") {
            format!("//! Doc.\n{text}")
        } else {
            text.to_owned()
        };
        assert_eq!(violations(path, &text), Vec::<String>::new(), "{path}: {text}");
    }
}

/// Visits each text file of the repository, except build output, installed packages and Cargo.lock.
fn for_each_file(directory: &Path, prefix: &str, visit: &mut impl FnMut(&str, &str)) {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{prefix}{name}");
        let is_generated = ["target", "Cargo.lock", "node_modules"].contains(&name.as_str());
        if is_generated || (name.starts_with('.') && name != ".ci" && name != ".gitignore") {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            for_each_file(&entry.path(), &format!("{path}/"), visit);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            visit(&path, &text);
        }
    }
}
