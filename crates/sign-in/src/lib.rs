//! Sign-in of operators in the browser: pages, cookies, OpenID Connect, and the page that a browser returns
//! to.
//!
//! Independent of the web framework: header values arrive as text, and each function returns a text or
//! markup.

pub mod cookies;
pub mod next_path;
pub mod oidc;
pub mod pages;
