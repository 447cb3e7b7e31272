//! Build script: names profile, commit and compiler in the program, for `build_info` and reports of load
//! runs.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var("RUSTC").ok();
    let rustc = rustc.and_then(|rustc| run(&rustc, &["--version"]));
    // `rustc 1.95.0 (59807616e 2026-04-14)`.
    let version = rustc.as_deref().and_then(|text| text.split(' ').nth(1));
    println!(
        "cargo::rustc-env=VOUCHSAFE_RUSTC={}",
        version.unwrap_or("unknown")
    );
    println!("cargo::rustc-env=VOUCHSAFE_PROFILE={}", profile());
    println!(
        "cargo::rustc-env=VOUCHSAFE_COMMIT={}",
        commit().as_deref().unwrap_or("unknown")
    );
}

/// The directory of the profile contains that of all build scripts. `PROFILE` is "release" for each profile
/// that inherits from it.
fn profile() -> String {
    let output = std::env::var("OUT_DIR").unwrap_or_default();
    let parts: Vec<_> = output.split('/').collect();
    let scripts = parts.iter().rposition(|part| *part == "build");
    match scripts.and_then(|at| parts.get(at.checked_sub(1)?)) {
        Some(profile) => (*profile).to_owned(),
        None => std::env::var("PROFILE").unwrap_or_default(),
    }
}

/// The commit, with `-dirty` if sources differ from it. `None` without a repository, and for debug builds,
/// which each commit would build again.
fn commit() -> Option<String> {
    if std::env::var("PROFILE").ok()? == "debug" {
        return None;
    }
    // Sources of an archive may lie in the repository of something else.
    let root = run("git", &["rev-parse", "--show-toplevel"])?;
    let own = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    if Path::new(&root).canonicalize().ok()? != Path::new(&own).canonicalize().ok()? {
        return None;
    }
    let commit = run(
        "git",
        &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
    )?;
    // The log has a line for each commit and checkout. A change of a source builds the program again anyway.
    let log = run("git", &["rev-parse", "--git-path", "logs/HEAD"])?;
    for path in [
        log.as_str(),
        "Cargo.lock",
        "Cargo.toml",
        "actors",
        "crates",
        "migrations",
        "src",
    ] {
        // A path that does not exist would run the script at each build.
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    Some(commit)
}

fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
