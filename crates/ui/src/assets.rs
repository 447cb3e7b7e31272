//! Embedded files of the pages, served under paths with their hash.
//!
//! `assets/third-party` has files of other projects; its README names their packages, versions and licences.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// Colours in light and dark, shared with the documentation.
pub const DESIGN_TOKENS: &str = include_str!("../assets/tokens.css");

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// A file with its path.
pub struct Asset {
    pub path: String,
    pub content_type: &'static str,
    pub text: String,
}

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let parts = [
        DESIGN_TOKENS,
        include_str!("../assets/third-party/uPlot.min.css"),
        include_str!("../assets/console.css"),
    ];
    Asset::new("css", "text/css; charset=utf-8", &parts)
});

/// Pages work without it, except for live figures and charts.
static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let parts = [
        include_str!("../assets/third-party/htmx.min.js"),
        include_str!("../assets/third-party/htmx-sse.min.js"),
        include_str!("../assets/console.js"),
    ];
    Asset::new("js", JAVASCRIPT, &parts)
});

/// Draws charts: half of all script, which few pages need.
static CHART_SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let parts = [include_str!("../assets/third-party/uPlot.iife.min.js")];
    Asset::new("js", JAVASCRIPT, &parts)
});

impl Asset {
    fn new(extension: &str, content_type: &'static str, parts: &[&str]) -> Self {
        let text = parts.join("\n");
        let hash = hex::encode(&Sha256::digest(&text)[..8]);
        Self {
            path: format!("/assets/console-{hash}.{extension}"),
            content_type,
            text,
        }
    }
}

/// The file at this path. Its content never changes.
#[must_use]
pub fn asset(path: &str) -> Option<&'static Asset> {
    let assets = [&*STYLE, &*SCRIPT, &*CHART_SCRIPT];
    assets.into_iter().find(|asset| asset.path == path)
}

pub(crate) fn style_path() -> &'static str {
    &STYLE.path
}

pub(crate) fn script_path() -> &'static str {
    &SCRIPT.path
}

pub(crate) fn chart_script_path() -> &'static str {
    &CHART_SCRIPT.path
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn files(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let of_entry = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
        entries.flat_map(of_entry).collect()
    }

    #[test]
    fn vendored_files_are_those_of_the_readme() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/third-party");
        let readme = fs::read_to_string(directory.join("README.md")).unwrap();
        let names = files(&directory).into_iter().map(|path| {
            let name = path.strip_prefix(&directory).unwrap();
            name.to_str().unwrap().to_owned()
        });
        let mut names: Vec<_> = names
            .filter(|name| name != "README.md" && !name.starts_with("LICENSE-"))
            .collect();
        names.sort_unstable();
        let rows = readme.lines().filter(|line| line.starts_with("| `")).map(|line| {
            let cells: Vec<_> = line
                .split('|')
                .map(|cell| cell.trim().trim_matches('`'))
                .collect();
            let file = fs::read(directory.join(cells[1])).unwrap();
            assert_eq!(hex::encode(Sha256::digest(file)), cells[5], "{}", cells[1]);
            let package = cells[2].split(' ').next().unwrap();
            let package = package.trim_end_matches(".org").trim_end_matches("-static");
            assert!(directory.join(format!("LICENSE-{package}")).exists(), "{package}");
            cells[1].to_owned()
        });
        let mut listed: Vec<_> = rows.collect();
        listed.sort_unstable();
        assert_eq!(names, listed);
    }

    #[test]
    fn path_of_an_asset_changes_with_its_content() {
        let [one, other] = ["a", "b"].map(|text| Asset::new("css", "text/css", &[text]));
        assert_ne!(one.path, other.path);
        for path in [style_path(), script_path(), chart_script_path()] {
            assert!(asset(path).is_some(), "{path}");
        }
        assert!(asset("/assets/console-0000000000000000.js").is_none());
    }
}
