//! Pure cores of the engine: decisions on plain data, with time and randomness as arguments.

use super::resolve::resolve;
use super::tree::{ModulePath, ModuleTree};

/// Modules of the engine that use only their own submodules and the domain.
pub(crate) const PURE_CORES: [&str; 5] = [
    "delivery::queue",
    "delivery::retry",
    "inventory::shelf",
    "procurement::queue",
    "wallet::purse",
];

/// Crates and functions that bring I/O, time, randomness or shared state.
const IMPURE: [&str; 10] = [
    "actix",
    "actix_rt",
    "tokio",
    "tracing",
    "rand",
    "dashmap",
    "std::fs",
    "std::net",
    "Instant::now",
    "OffsetDateTime::now_utc",
];

/// Returns a line for each reference of these modules to another module or to something impure.
pub(crate) fn impure_references(tree: &ModuleTree, cores: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for core in cores {
        let core: ModulePath = core.split("::").map(str::to_owned).collect();
        if !tree.modules.contains_key(&core) {
            found.push(format!(
                "{}: no such module in {}",
                core.join("::"),
                tree.crate_name
            ));
        }
        for (path, module) in tree.modules.iter().filter(|(path, _)| path.starts_with(&core)) {
            for reference in &module.references {
                let written = reference.path.join("::");
                let is_allowed = match resolve(tree, path, &reference.path) {
                    Some(target) => target.module.starts_with(&core),
                    None => !IMPURE.iter().any(|impure| contains_path(&written, impure)),
                };
                if !is_allowed {
                    let (file, line) = (&module.file, reference.line);
                    found.push(format!("{file}:{line}: a pure core must not use {written}"));
                }
            }
        }
    }
    found
}

fn contains_path(path: &str, part: &str) -> bool {
    format!("::{path}::").contains(&format!("::{part}::"))
}
