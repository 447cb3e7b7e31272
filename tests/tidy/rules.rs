//! Source rules as tables: imports per layer, file length, forbidden words, module headers, retired names.
//!
//! The functions below only apply the tables. Rules about imports do not apply to `tests` modules.

use crate::text::{
    code_without_comments, declared_types, first_sentence_of_header, has_word, imported_modules,
};

/// A longer file has more than one subject, or a reason in [`LONG_FILES`].
pub(crate) const MAX_LINES: usize = 400;

/// Files that may be longer, each with its reason.
const LONG_FILES: [(&str, &str); 0] = [];

/// Marks of unfinished work and of a single machine. Each is split in two, so that this file does not contain it.
pub(crate) const FORBIDDEN_WORDS: [(&str, &str); 7] = [
    ("TO", "DO"),
    ("FIX", "ME"),
    ("/wo", "rk/"),
    ("/ro", "ot/."),
    ("Cla", "ude"),
    ("Anth", "ropic"),
    ("Chat", "GPT"),
];

/// Macros and attributes of unfinished work and leftover debugging.
const UNFINISHED_CODE: [&str; 4] = ["todo!", "unimplemented!", "dbg!", "#[ignore"];

/// Type names that were replaced by the field's terms, by the path where they are retired.
pub(crate) const RETIRED_TYPES: [(&str, &str); 9] = [
    (
        "",
        "Apart Asked Aviary Because Bell Beside Books By Came Crowd Deck Deed Desk Drawer Elsewhere Errand Eyes \
         Gone HeldBack Keeps Kept Letter Look Made Nonsense Papers Parcel Said Stand Story Succession Swept Teller \
         Then Told Troubles Wanted What Who Whose Wish YesStore",
    ),
    ("actors/src/delivery/", "Grounds Places Turn"),
    ("src/access/", "Draws Reading"),
    ("src/certification/", "Point"),
    ("src/delivery/", "Grounds Places Turn"),
    ("src/http/", "Arrival Gate Seat Watch"),
    ("src/store/", "Line Rest"),
    ("load/", "Shop"),
    ("tests/", "Scene Shop World"),
];

/// Folders that were moved, each with its new place.
const RETIRED_FOLDERS: [(&str, &str); 1] = [("src/vendor/", "src/procurement/")];

/// Pure cores: decisions on plain data, with time and randomness as arguments.
const PURE_CORES: [&str; 5] = [
    "actors/src/inventory/shelf",
    "actors/src/wallet/purse",
    "actors/src/procurement/queue",
    "actors/src/delivery/queue",
    "actors/src/delivery/retry",
];

/// Parts of the paths whose files may use the actor framework.
const ACTIX_MODULES: [&str; 6] = [
    "/actor.rs",
    "/actor/",
    "/hold.rs",
    "/supervisor/",
    "src/engine",
    "src/testing/",
];

/// Folders of procurement that are no vendor adapters and use the store or HTTP.
const VENDOR_SERVICE: [&str; 2] = ["src/procurement/service/", "src/procurement/simulator/"];

/// Names that the files of a layer must not use.
struct Restriction {
    applies_to: fn(&str) -> bool,
    names: &'static [&'static str],
    reason: &'static str,
}

const RESTRICTIONS: [Restriction; 11] = [
    Restriction {
        applies_to: |path| path.starts_with("actors/"),
        names: &["sqlx", "actix_web", "reqwest", "hyper"],
        reason: "the engine must not depend on SQL or HTTP",
    },
    Restriction {
        applies_to: |path| {
            path.starts_with("actors/src/") && !ACTIX_MODULES.iter().any(|part| path.contains(part))
        },
        names: &["actix", "actix_rt"],
        reason: "only actor shells, holds, the supervisor and the engine may use actix",
    },
    Restriction {
        applies_to: is_pure_core,
        names: &[
            "actix",
            "actix_rt",
            "tokio",
            "tracing",
            "rand",
            "dashmap",
            "Instant::now",
            "async",
            "super::super",
        ],
        reason: "a pure core imports only the domain and receives time and randomness as arguments",
    },
    Restriction {
        applies_to: is_root_of_pure_core,
        names: &["super"],
        reason: "a pure core imports only the domain and its own submodules",
    },
    Restriction {
        applies_to: is_domain,
        names: &["super::super", "actix", "tokio"],
        reason: "the domain must not import other modules",
    },
    Restriction {
        applies_to: |path| path.starts_with("src/store/"),
        names: &["actix_web", "reqwest", "hyper", "crate::http"],
        reason: "the store must not depend on HTTP",
    },
    Restriction {
        applies_to: |path| path.starts_with("src/http/"),
        names: &["Addr", "Recipient", "actix", "sqlx"],
        reason: "HTTP handlers use the engine and the store's reads, not actors",
    },
    Restriction {
        applies_to: |path| path.starts_with("src/access/"),
        names: &["actix_web", "sqlx"],
        reason: "access decides on bytes and names, independent of their transport",
    },
    Restriction {
        applies_to: |path| {
            path.starts_with("src/procurement/")
                && !VENDOR_SERVICE.iter().any(|folder| path.starts_with(folder))
        },
        names: &["actix_web", "sqlx", "crate::store", "crate::http"],
        reason: "a vendor adapter must not depend on the store or on HTTP handlers",
    },
    Restriction {
        applies_to: |path| path.starts_with("load/"),
        names: &["vouchsafe", "vouchsafe_actors"],
        reason: "the load generator must use only the public HTTP interface",
    },
    Restriction {
        applies_to: |path| path.starts_with("actors/src/flows/") || path.starts_with("actors/src/journal/"),
        names: &["Addr", "Context"],
        reason: "flows and journal reach actors only through the engine",
    },
];

/// Dependencies that a package must not declare.
const FORBIDDEN_DEPENDENCIES: [(&str, &[&str]); 2] = [
    (
        "actors/Cargo.toml",
        &[
            "sqlx",
            "actix-web",
            "reqwest",
            "hyper",
            "vouchsafe",
            "vouchsafe-load",
        ],
    ),
    ("load/Cargo.toml", &["vouchsafe", "vouchsafe-actors"]),
];

fn is_pure_core(path: &str) -> bool {
    PURE_CORES.iter().any(|core| path.starts_with(core)) && !is_test_file(path)
}

/// Submodules of a pure core may use `super`, which is the core itself.
fn is_root_of_pure_core(path: &str) -> bool {
    PURE_CORES
        .iter()
        .any(|core| path.strip_prefix(core) == Some(".rs"))
}

fn is_domain(path: &str) -> bool {
    path.starts_with("actors/src/domain/") && !is_test_file(path)
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Returns the rule violations of a file, one line each.
pub(crate) fn violations(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (begin, end) in FORBIDDEN_WORDS {
        let word = [begin, end].concat();
        if text.contains(&word) {
            found.push(format!("{path}: contains {word}; remove it"));
        }
    }
    for (folder, replacement) in RETIRED_FOLDERS {
        if path.starts_with(folder) {
            found.push(format!(
                "{path}: the folder {folder} is retired; use {replacement}"
            ));
        }
    }
    for (manifest, names) in FORBIDDEN_DEPENDENCIES {
        if path == manifest {
            found.extend(forbidden_dependencies(path, text, names));
        }
    }
    if path.ends_with(".rs") {
        found.extend(rust_violations(path, text));
    }
    found
}

fn rust_violations(path: &str, text: &str) -> Vec<String> {
    let mut found = header_violations(path, text);
    let lines = text.lines().count();
    let may_be_long = LONG_FILES.iter().any(|(long, _)| *long == path);
    match (lines > MAX_LINES, may_be_long) {
        (true, false) => found.push(format!(
            "{path}: {lines} lines exceed the limit of {MAX_LINES}; split the file"
        )),
        (false, true) => found.push(format!("{path}: short enough; remove it from LONG_FILES")),
        _ => {}
    }
    let code = code_without_comments(text);
    for word in UNFINISHED_CODE {
        if code.contains(word) {
            found.push(format!("{path}: contains {word}; remove it"));
        }
    }
    let declared = declared_types(&code);
    for (_, names) in RETIRED_TYPES
        .iter()
        .filter(|(prefix, _)| path.starts_with(prefix))
    {
        for name in names.split_whitespace().filter(|name| declared.contains(name)) {
            found.push(format!(
                "{path}: the type name {name} is retired; use the field's term"
            ));
        }
    }
    found.extend(import_violations(path, &code));
    found
}

fn header_violations(path: &str, text: &str) -> Vec<String> {
    if !text.starts_with("//!") {
        return vec![format!(
            "{path}: starts without a //! header; add one that names the subject"
        )];
    }
    let is_question = first_sentence_of_header(text).ends_with('?');
    let message = || format!("{path}: the header starts with a question; write a noun phrase or a statement");
    is_question.then(message).into_iter().collect()
}

fn import_violations(path: &str, code: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Unit tests may import anything.
    let imports = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    for rule in RESTRICTIONS.iter().filter(|rule| (rule.applies_to)(path)) {
        for name in rule.names.iter().filter(|name| has_word(imports, name)) {
            found.push(format!("{path}: uses {name}: {}", rule.reason));
        }
    }
    if is_pure_core(path) || is_domain(path) {
        let modules = imported_modules(imports).into_iter();
        let other = modules.filter(|module| module != "domain");
        found.extend(
            other.map(|module| format!("{path}: imports crate::{module}; only crate::domain is allowed")),
        );
    }
    found
}

fn forbidden_dependencies(path: &str, manifest: &str, names: &[&str]) -> Vec<String> {
    let own_name = |line: &str| line.contains("path = \".\"");
    let dependencies = manifest
        .lines()
        .filter(|line| !own_name(line))
        .filter_map(|line| {
            let end = line.find(['.', '=', ' '])?;
            Some(line[..end].trim())
        });
    dependencies
        .filter(|name| names.contains(name))
        .map(|name| format!("{path}: depends on {name}; remove the dependency"))
        .collect()
}
