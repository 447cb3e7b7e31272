//! Discovery of the server programs `initdb` and `postgres`.
//!
//! Only the major version that created a cluster can open it. A new cluster uses the first suitable pair: on
//! the PATH, then in the directories of common distributions, newest version first.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use super::error::{OLDEST_MAJOR, PostgresError};

/// Directories of server programs off the PATH; `*` matches a version.
const SEARCH_PATTERNS: [&str; 6] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/libexec/postgresql*",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
];

/// Both programs, of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerPrograms {
    pub(super) initdb: PathBuf,
    pub(super) postgres: PathBuf,
}

/// Finds the programs: of major version `cluster_version` for an existing cluster, else the first that are
/// new enough.
///
/// # Errors
/// [`PostgresError::ProgramsMissing`], [`PostgresError::VersionMissing`] or [`PostgresError::TooOld`], each
/// of which says what to install.
pub(super) fn find(cluster_version: Option<u32>) -> Result<ServerPrograms, PostgresError> {
    let directories = directories();
    let mut found = Vec::new();
    for programs in directories
        .iter()
        .filter_map(|directory| find_in_directory(directory))
    {
        let version = major_of(&programs.postgres);
        let is_suitable = match cluster_version {
            Some(required) => version == Some(required),
            None => version.is_some_and(|version| version >= OLDEST_MAJOR),
        };
        if is_suitable {
            return Ok(programs);
        }
        let version = version.map_or_else(|| "unknown".to_owned(), |version| version.to_string());
        found.push(format!("{} ({version})", programs.postgres.display()));
    }
    let found_list = found.join(", ");
    Err(match cluster_version {
        _ if found.is_empty() => PostgresError::ProgramsMissing {
            searched: searched_paths(&directories),
        },
        Some(required) => PostgresError::VersionMissing {
            required,
            found: found_list,
        },
        None => PostgresError::TooOld { found: found_list },
    })
}

fn directories() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = env::split_paths(&path)
        .filter(|path| path.is_absolute())
        .collect();
    for pattern in SEARCH_PATTERNS {
        directories.extend(expand(Path::new(pattern)));
    }
    directories
}

/// The existing directories that match a pattern with one `*`, highest version first.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let mut matches = vec![PathBuf::new()];
    for part in pattern {
        matches = matches.iter().flat_map(|base| children(base, part)).collect();
    }
    matches
}

fn children(base: &Path, part: &OsStr) -> Vec<PathBuf> {
    let Some((before, after)) = part.to_str().and_then(|part| part.split_once('*')) else {
        return vec![base.join(part)];
    };
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(base)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name
                .to_str()?
                .strip_prefix(before)?
                .strip_suffix(after)?
                .to_owned();
            Some((
                leading_number(version.trim_start_matches('@')).unwrap_or(0),
                entry.path(),
            ))
        })
        .collect();
    versions.sort_by(|left, right| right.cmp(left));
    versions.into_iter().map(|(_, path)| path).collect()
}

/// Both programs of a directory. Resolves links, because `postgres` finds its libraries relative to itself.
fn find_in_directory(directory: &Path) -> Option<ServerPrograms> {
    let initdb = fs::canonicalize(directory.join("initdb")).ok()?;
    let postgres = fs::canonicalize(directory.join("postgres")).ok()?;
    // Some distributions link both names to one multi-call wrapper, which must be called by its original
    // name.
    let has_name = |path: &Path, name: &str| path.file_name() == Some(OsStr::new(name));
    if has_name(&initdb, "initdb") && has_name(&postgres, "postgres") {
        Some(ServerPrograms { initdb, postgres })
    } else {
        Some(ServerPrograms {
            initdb: directory.join("initdb"),
            postgres: directory.join("postgres"),
        })
    }
}

/// `postgres (PostgreSQL) 15.19 (Debian 15.19-0+deb12u1)` is 15. A program that cannot be run has no version
/// and is skipped.
fn major_of(postgres: &Path) -> Option<u32> {
    let output = Command::new(postgres)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .find_map(leading_number)
}

pub(super) fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

fn searched_paths(directories: &[PathBuf]) -> String {
    let names: Vec<String> = directories
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    format!("{}, {}", names.join(", "), SEARCH_PATTERNS.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_sorted_numerically() {
        let dir = tempfile::tempdir().unwrap();
        for version in ["9", "15", "101"] {
            fs::create_dir_all(dir.path().join(version).join("bin")).unwrap();
        }
        let found = expand(&dir.path().join("*/bin"));
        let versions: Vec<_> = found
            .iter()
            .map(|path| path.strip_prefix(dir.path()).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(versions, ["101/bin", "15/bin", "9/bin"]);
    }

    #[test]
    fn leading_number_is_parsed() {
        for (text, number) in [
            ("15.19", Some(15)),
            ("17beta1", Some(17)),
            ("(Debian", None),
            ("", None),
        ] {
            assert_eq!(leading_number(text), number, "{text}");
        }
    }

    #[test]
    fn missing_version_is_named_in_the_error() {
        let error = find(Some(7)).unwrap_err().to_string();
        assert!(error.contains("PostgreSQL 7"), "{error}");
    }
}
