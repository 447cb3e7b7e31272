//! Which rules are there, and which of them does a file break?
//!
//! The tables are the rules; what follows only applies them. What a `tests` module imports is its own affair.

use crate::text::{code_without_comments, has_word, imported_modules};

/// Lines of a file from which on it needs a reason in [`LONG_FILES`]: what is longer answers more than one question.
pub(crate) const MAX_LINES: usize = 400;

/// Files that may be longer, each with its reason.
const LONG_FILES: [(&str, &str); 0] = [];

/// Words that appear nowhere, in parts so that they do not appear here: unfinished work, and what is of one machine.
pub(crate) const FORBIDDEN_WORDS: [(&str, &str); 7] = [
    ("TO", "DO"),
    ("FIX", "ME"),
    ("/wo", "rk/"),
    ("/ro", "ot/."),
    ("Cla", "ude"),
    ("Anth", "ropic"),
    ("Chat", "GPT"),
];

/// Macros and attributes that stand for work not done or a look that was forgotten.
const UNFINISHED_CODE: [&str; 4] = ["todo!", "unimplemented!", "dbg!", "#[ignore"];

/// Pure cores: decisions on plain data, with time and chance as arguments.
const PURE_CORES: [&str; 5] = [
    "actors/src/inventory/shelf",
    "actors/src/wallet/purse",
    "actors/src/procurement/queue",
    "actors/src/delivery/queue",
    "actors/src/delivery/schedule",
];

/// Where actors meet their framework.
const ACTIX_MODULES: [&str; 6] = [
    "/actor.rs",
    "/actor/",
    "/hold.rs",
    "/supervisor/",
    "src/engine",
    "src/testing/",
];

/// One line of the design: these files never use these names.
struct Restriction {
    applies_to: fn(&str) -> bool,
    names: &'static [&'static str],
    reason: &'static str,
}

const RESTRICTIONS: [Restriction; 10] = [
    Restriction {
        applies_to: |path| path.starts_with("actors/"),
        names: &["sqlx", "actix_web", "reqwest", "hyper"],
        reason: "the engine knows neither SQL nor HTTP",
    },
    Restriction {
        applies_to: |path| path.starts_with("actors/src/") && !ACTIX_MODULES.iter().any(|shell| path.contains(shell)),
        names: &["actix", "actix_rt"],
        reason: "actix is for shells, holds, the supervisor and the engine",
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
            "super",
        ],
        reason: "a pure core imports the domain alone, and is handed time and chance",
    },
    Restriction {
        applies_to: is_domain,
        names: &["super::super", "actix", "tokio"],
        reason: "the domain imports nothing of ours",
    },
    Restriction {
        applies_to: |path| path.starts_with("src/store/"),
        names: &["actix_web", "reqwest", "hyper", "crate::http"],
        reason: "the store knows no HTTP",
    },
    Restriction {
        applies_to: |path| path.starts_with("src/http/"),
        names: &["Addr", "Recipient", "actix", "sqlx"],
        reason: "HTTP sees the engine and reads of the store, never an actor",
    },
    Restriction {
        applies_to: |path| path.starts_with("src/access/"),
        names: &["actix_web", "sqlx"],
        reason: "access decides on bytes and names, whatever carries them",
    },
    Restriction {
        applies_to: |path| {
            path.starts_with("src/procurement/")
                && !path.starts_with("src/procurement/simulator/")
                && !path.starts_with("src/procurement/service/")
        },
        names: &["actix_web", "sqlx", "crate::store", "crate::http"],
        reason: "an adapter knows its vendor, not who keeps or serves what it buys",
    },
    Restriction {
        applies_to: |path| path.starts_with("load/"),
        names: &["vouchsafe", "vouchsafe_actors"],
        reason: "the load generator knows the wire alone",
    },
    Restriction {
        applies_to: |path| path.starts_with("actors/src/flows/") || path.starts_with("actors/src/journal/"),
        names: &["Addr", "Context"],
        reason: "flows and journal ask through the engine's parts",
    },
];

/// Packages that may not depend on these, whatever their sources do.
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

fn is_domain(path: &str) -> bool {
    path.starts_with("actors/src/domain/") && !is_test_file(path)
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs")
}

/// Everything that is wrong with a file, a line each.
pub(crate) fn violations(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (begin, end) in FORBIDDEN_WORDS {
        let word = [begin, end].concat();
        if text.contains(&word) {
            found.push(format!("{path}: {word} appears"));
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
    let mut found = Vec::new();
    if !text.starts_with("//!") {
        found.push(format!(
            "{path}: does not begin with //!, which says what question it answers"
        ));
    }
    let lines = text.lines().count();
    let may_be_long = LONG_FILES.iter().any(|(long, _)| *long == path);
    match (lines > MAX_LINES, may_be_long) {
        (true, false) => found.push(format!("{path}: {lines} lines")),
        (false, true) => found.push(format!("{path}: no longer long, and still excused")),
        _ => {}
    }
    let code = code_without_comments(text);
    for word in UNFINISHED_CODE {
        if code.contains(word) {
            found.push(format!("{path}: {word}"));
        }
    }
    // What tests beside the code import is their own affair.
    let imports = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    for rule in RESTRICTIONS.iter().filter(|rule| (rule.applies_to)(path)) {
        for name in rule.names.iter().filter(|name| has_word(imports, name)) {
            found.push(format!("{path}: {name}: {}", rule.reason));
        }
    }
    if is_pure_core(path) || is_domain(path) {
        let foreign = imported_modules(imports)
            .into_iter()
            .filter(|module| module != "domain");
        found
            .extend(foreign.map(|module| {
                format!("{path}: imports crate::{module}, and may import crate::domain alone")
            }));
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
        .map(|name| format!("{path}: depends on {name}"))
        .collect()
}
