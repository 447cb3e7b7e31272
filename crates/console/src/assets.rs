//! Embedded files of the pages, served under paths with their hash.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// Colours in light and dark, shared with the documentation.
pub const DESIGN_TOKENS: &str = include_str!("../assets/tokens.css");

/// A file with its path.
pub struct Asset {
    pub path: String,
    pub content_type: &'static str,
    pub text: String,
}

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let text = [DESIGN_TOKENS, include_str!("../assets/console.css")].concat();
    let hash = hex::encode(&Sha256::digest(&text)[..8]);
    Asset {
        path: format!("/assets/console-{hash}.css"),
        content_type: "text/css; charset=utf-8",
        text,
    }
});

/// The file at this path. Its content never changes.
#[must_use]
pub fn asset(path: &str) -> Option<&'static Asset> {
    Some(&*STYLE).filter(|style| style.path == path)
}

pub(crate) fn style_path() -> &'static str {
    &STYLE.path
}
