//! Seeded bugs: patches of `tests/mutants`, each with the test that fails with it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A patch with the fields of its header.
pub(crate) struct Mutant {
    pub(crate) file: PathBuf,
    pub(crate) name: String,
    bug: String,
    /// The path of the test within its target.
    pub(crate) test: String,
}

impl Mutant {
    fn parse(file: PathBuf, text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        Some(Self {
            bug: field("Bug: ")?.to_owned(),
            test: field("Test: ")?.rsplit(' ').next()?.to_owned(),
            name: file.file_stem()?.to_str()?.to_owned(),
            file,
        })
    }
}

/// Reads the patches, by name.
pub(crate) fn read(directory: &Path) -> Vec<Mutant> {
    let entries = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|file| file.extension().is_some_and(|extension| extension == "patch"))
        .collect();
    files.sort();
    let parsed = files.into_iter().map(|file| {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.display().to_string();
        Mutant::parse(file, &text).unwrap_or_else(|| panic!("{name}: a header has the lines Bug and Test"))
    });
    parsed.collect()
}

/// The error of `git apply` if the patch does not apply to the repository.
pub(crate) fn find_conflict(repository: &Path, patch: &Path) -> Option<String> {
    let mut apply = Command::new("git");
    apply
        .current_dir(repository)
        .args(["apply", "--check"])
        .arg(patch);
    let output = apply.output().unwrap();
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The table of docs/reliability.md.
pub(crate) fn table(mutants: &[Mutant]) -> String {
    let mut table = String::from("| Bug | Patch | Test |\n|---|---|---|\n");
    for Mutant { name, bug, test, .. } in mutants {
        let bug = bug.trim_end_matches('.');
        writeln!(table, "| {bug} | `{name}` | `{test}` |").unwrap();
    }
    table
}
