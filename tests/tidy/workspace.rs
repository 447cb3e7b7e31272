//! Rules on the crates of the workspace: their dependencies and their size, read from `cargo metadata`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// The service's package. Its crate may be longer, because it puts the others together.
const SERVICE: &str = "vouchsafe";

/// Lines of code in `src`, without comments and blank lines.
const MAX_CODE_LINES: usize = 15_000;
const MAX_CODE_LINES_OF_SERVICE: usize = 20_000;

/// Packages that a crate must not use, with the reason.
const FORBIDDEN_DEPENDENCIES: [(&str, &[&str], &str); 4] = [
    (
        "vouchsafe-actors",
        &["actix-web", "hyper", "reqwest", "sqlx"],
        "the engine knows neither SQL nor HTTP",
    ),
    (
        "vouchsafe-domain",
        &["actix", "actix-rt", "actix-web", "hyper", "reqwest", "tokio"],
        "the domain is plain data",
    ),
    (
        "vouchsafe-security",
        &["actix-web", "sqlx"],
        "it decides on bytes and names, independent of their transport and storage",
    ),
    (
        "vouchsafe-store",
        &["actix-web", "hyper", "reqwest"],
        "the store knows no HTTP",
    ),
];

/// Features that no crate may enable, also not as defaults, with the reason.
const FORBIDDEN_FEATURES: [(&str, &str, &str); 1] = [(
    "actix-web",
    "http2",
    "the deadline of a response belongs to its connection, which HTTP/2 shares between responses",
)];

/// The crates of the load generator use each other and the public HTTP interface.
const INDEPENDENT: [&str; 2] = ["vouchsafe-api-client", "vouchsafe-load"];

#[derive(Deserialize)]
pub(crate) struct Workspace {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    kind: Option<String>,
    features: Vec<String>,
    uses_default_features: bool,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

/// A crate that is shipped: its name and root file.
pub(crate) struct CrateRoot {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
}

impl Workspace {
    pub(crate) fn read(repository: &Path) -> Self {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
            .current_dir(repository)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cargo metadata failed: {errors}");
        Self::parse(&String::from_utf8(output.stdout).unwrap())
    }

    pub(crate) fn parse(metadata: &str) -> Self {
        serde_json::from_str(metadata).unwrap()
    }

    /// Returns the libraries and programs, without tests, benches and examples.
    pub(crate) fn crate_roots(&self) -> Vec<CrateRoot> {
        let targets = self.packages.iter().flat_map(|package| &package.targets);
        let shipped = targets.filter(|target| target.kind.iter().any(|kind| kind == "lib" || kind == "bin"));
        let roots = shipped.map(|target| CrateRoot {
            name: target.name.replace('-', "_"),
            file: target.src_path.clone(),
        });
        roots.collect()
    }

    /// Returns a line for each rule that the dependencies or the size of a crate break.
    pub(crate) fn violations(&self) -> Vec<String> {
        let mut found = self.circular_dev_dependencies();
        for package in &self.packages {
            found.extend(self.forbidden_dependencies(package));
            let folder = package.manifest_path.with_file_name("src");
            let lines = count_code_lines(&folder);
            let limit = if package.name == SERVICE {
                MAX_CODE_LINES_OF_SERVICE
            } else {
                MAX_CODE_LINES
            };
            if lines > limit {
                found.push(format!(
                    "{}: {lines} lines of code exceed the limit of {limit}; split the crate",
                    package.name
                ));
            }
        }
        found
    }

    fn circular_dev_dependencies(&self) -> Vec<String> {
        let mut found = Vec::new();
        for package in &self.packages {
            for used in self.members_used_by(package, true) {
                if used == package.name || self.reachable_from(used).contains(package.name.as_str()) {
                    let name = &package.name;
                    found.push(format!(
                        "{name}: its dev-dependency {used} depends on {name}; move the tests that need {used} \
                         to a crate that depends on both"
                    ));
                }
            }
        }
        found
    }

    fn forbidden_dependencies(&self, package: &Package) -> Vec<String> {
        let name = package.name.as_str();
        let mut found = Vec::new();
        for dependency in &package.dependencies {
            let used = dependency.name.as_str();
            for (_, _, reason) in FORBIDDEN_DEPENDENCIES
                .iter()
                .filter(|(user, forbidden, _)| *user == name && forbidden.contains(&used))
            {
                found.push(format!("{name}: must not depend on {used}: {reason}"));
            }
            for (_, feature, reason) in FORBIDDEN_FEATURES.iter().filter(|(of, _, _)| *of == used) {
                if dependency.uses_default_features || dependency.features.iter().any(|on| on == feature) {
                    found.push(format!("{name}: must not enable {feature} of {used}: {reason}"));
                }
            }
            let is_member = self.packages.iter().any(|member| member.name == used);
            if INDEPENDENT.contains(&name) && is_member && !INDEPENDENT.contains(&used) {
                found.push(format!(
                    "{name}: must not depend on {used}: it uses only the public HTTP interface"
                ));
            }
        }
        found
    }

    /// Returns the members that a package uses: in all its builds, or else only in those of its tests and
    /// benches.
    fn members_used_by<'a>(&'a self, package: &'a Package, in_tests: bool) -> BTreeSet<&'a str> {
        let is_member = |name: &str| self.packages.iter().any(|package| package.name == name);
        let dependencies = package.dependencies.iter();
        dependencies
            .filter(|dependency| (dependency.kind.as_deref() == Some("dev")) == in_tests)
            .map(|dependency| dependency.name.as_str())
            .filter(|name| is_member(name))
            .collect()
    }

    /// Returns the members that a build of a package compiles, without itself.
    fn reachable_from<'a>(&'a self, name: &'a str) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut pending = vec![name];
        while let Some(name) = pending.pop() {
            for package in self.packages.iter().filter(|package| package.name == name) {
                let used = self.members_used_by(package, false).into_iter();
                pending.extend(used.filter(|used| reached.insert(*used)));
            }
        }
        reached
    }

    /// Returns the dependencies between members as a table: each crate depends only on rows below it.
    pub(crate) fn dependency_table(&self) -> String {
        let mut packages: Vec<_> = self.packages.iter().collect();
        // A crate reaches more members than each crate that it uses.
        packages.sort_by_key(|package| {
            let reached = self.reachable_from(&package.name).len();
            (usize::MAX - reached, package.name.as_str())
        });
        let mut table = String::from("| Crate | Depends on | Its tests also use |\n|---|---|---|\n");
        for package in packages {
            let used = self.members_used_by(package, false);
            let in_tests = &self.members_used_by(package, true) - &used;
            let (used, in_tests) = (list(&used), list(&in_tests));
            writeln!(table, "| `{}` | {used} | {in_tests} |", short_name(&package.name)).unwrap();
        }
        table
    }
}

fn list(names: &BTreeSet<&str>) -> String {
    let names: Vec<_> = names
        .iter()
        .map(|name| format!("`{}`", short_name(name)))
        .collect();
    names.join(", ")
}

fn short_name(package: &str) -> &str {
    package.strip_prefix("vouchsafe-").unwrap_or(package)
}

fn count_code_lines(folder: &Path) -> usize {
    let mut lines = 0;
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            lines += count_code_lines(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.lines().map(str::trim);
            lines += text
                .filter(|line| !line.is_empty() && !line.starts_with("//"))
                .count();
        }
    }
    lines
}

/// Returns where a page has the lines between `<!-- name: begin … -->` and `<!-- name: end -->`.
pub(crate) fn generated_block(page: &str, name: &str) -> Option<Range<usize>> {
    let begin = page.find(&format!("<!-- {name}: begin"))?;
    let begin = begin + page[begin..].find('\n')? + 1;
    let length = page[begin..].find(&format!("<!-- {name}: end -->"))?;
    Some(begin..begin + length)
}
