//! Which rules are there, and which of them does a file break?
//!
//! The tables are the rules; what follows only applies them. What a `tests` module imports is its own affair.

use crate::text::{code_of, has_word, own_modules};

/// Lines of a file from which on it needs a reason in [`LONG_FILES`]: what is longer answers more than one question.
pub(crate) const MAX_LINES: usize = 400;

/// Files that may be longer, each with its reason.
const LONG_FILES: [(&str, &str); 0] = [];

/// Words that appear nowhere, in parts so that they do not appear here: unfinished work, and what is of one machine.
pub(crate) const NOWHERE: [(&str, &str); 7] = [
    ("TO", "DO"),
    ("FIX", "ME"),
    ("/wo", "rk/"),
    ("/ro", "ot/."),
    ("Cla", "ude"),
    ("Anth", "ropic"),
    ("Chat", "GPT"),
];

/// Macros and attributes that stand for work not done or a look that was forgotten.
const UNFINISHED: [&str; 4] = ["todo!", "unimplemented!", "dbg!", "#[ignore"];

/// Pure cores: decisions on plain data, with time and chance as arguments.
const CORES: [&str; 5] = [
    "actors/src/inventory/shelf",
    "actors/src/wallet/purse",
    "actors/src/procurement/queue",
    "actors/src/delivery/queue",
    "actors/src/delivery/schedule",
];

/// Where actors meet their framework.
const SHELLS: [&str; 6] = [
    "/actor.rs",
    "/actor/",
    "/hold.rs",
    "/supervisor/",
    "src/engine",
    "src/testing/",
];

/// One line of the design: these files never use these names.
struct Never {
    whose: fn(&str) -> bool,
    names: &'static [&'static str],
    why: &'static str,
}

const NEVER: [Never; 10] = [
    Never {
        whose: |path| path.starts_with("actors/"),
        names: &["sqlx", "actix_web", "reqwest", "hyper"],
        why: "the engine knows neither SQL nor HTTP",
    },
    Never {
        whose: |path| path.starts_with("actors/src/") && !SHELLS.iter().any(|shell| path.contains(shell)),
        names: &["actix", "actix_rt"],
        why: "actix is for shells, holds, the supervisor and the engine",
    },
    Never {
        whose: is_core,
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
        why: "a pure core imports the domain alone, and is handed time and chance",
    },
    Never {
        whose: is_domain,
        names: &["super::super", "actix", "tokio"],
        why: "the domain imports nothing of ours",
    },
    Never {
        whose: |path| path.starts_with("src/store/"),
        names: &["actix_web", "reqwest", "hyper", "crate::http"],
        why: "the store knows no HTTP",
    },
    Never {
        whose: |path| path.starts_with("src/http/"),
        names: &["Addr", "Recipient", "actix", "sqlx"],
        why: "HTTP sees the engine and reads of the store, never an actor",
    },
    Never {
        whose: |path| path.starts_with("src/access/"),
        names: &["actix_web", "sqlx"],
        why: "access decides on bytes and names, whatever carries them",
    },
    Never {
        whose: |path| path.starts_with("src/vendor/") && !path.starts_with("src/vendor/simulator/"),
        names: &["actix_web", "sqlx", "crate::store", "crate::http"],
        why: "an adapter knows its vendor, not who keeps or serves what it buys",
    },
    Never {
        whose: |path| path.starts_with("load/"),
        names: &["vouchsafe", "vouchsafe_actors"],
        why: "the load generator knows the wire alone",
    },
    Never {
        whose: |path| path.starts_with("actors/src/flows/") || path.starts_with("actors/src/journal/"),
        names: &["Addr", "Context"],
        why: "flows and journal ask through the engine's parts",
    },
];

/// Packages that may not depend on these, whatever their sources do.
const NO_DEPENDENCY: [(&str, &[&str]); 2] = [
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

fn is_core(path: &str) -> bool {
    CORES.iter().any(|core| path.starts_with(core)) && !is_test_file(path)
}

fn is_domain(path: &str) -> bool {
    path.starts_with("actors/src/domain/") && !is_test_file(path)
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs")
}

/// Everything that is wrong with a file, a line each.
pub(crate) fn breaches(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (begin, end) in NOWHERE {
        let word = [begin, end].concat();
        if text.contains(&word) {
            found.push(format!("{path}: {word} appears"));
        }
    }
    for (manifest, names) in NO_DEPENDENCY {
        if path == manifest {
            found.extend(forbidden_dependencies(path, text, names));
        }
    }
    if path.ends_with(".rs") {
        found.extend(breaches_of_rust(path, text));
    }
    found
}

fn breaches_of_rust(path: &str, text: &str) -> Vec<String> {
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
    let code = code_of(text);
    for word in UNFINISHED {
        if code.contains(word) {
            found.push(format!("{path}: {word}"));
        }
    }
    // What tests beside the code import is their own affair.
    let imports = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    for rule in NEVER.iter().filter(|rule| (rule.whose)(path)) {
        for name in rule.names.iter().filter(|name| has_word(imports, name)) {
            found.push(format!("{path}: {name}: {}", rule.why));
        }
    }
    if is_core(path) || is_domain(path) {
        let foreign = own_modules(imports)
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
