//! Design of the pages of console, sign-in and documentation: colours, styles, script, headers, and the frame
//! of a page.

mod assets;
pub mod icon;
mod page;

pub use assets::{Asset, DESIGN_TOKENS, asset};
pub use page::{chart_script, head, render_bare, visible};

/// Headers of every page. Scripts and styles come from files of this crate only.
pub const PAGE_HEADERS: [(&str, &str); 5] = [
    ("content-type", "text/html; charset=utf-8"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
];

/// Headers of a file: its path has its hash.
pub const ASSET_HEADERS: [(&str, &str); 2] = [
    ("cache-control", "public, max-age=31536000, immutable"),
    ("x-content-type-options", "nosniff"),
];
