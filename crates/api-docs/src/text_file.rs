//! A file of the documentation.

use std::borrow::Cow;

/// A text with the content type with which it is served.
#[derive(Debug)]
pub struct TextFile {
    pub content_type: &'static str,
    pub text: Cow<'static, str>,
}

impl TextFile {
    pub(crate) fn new(content_type: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            content_type,
            text: text.into(),
        }
    }
}
