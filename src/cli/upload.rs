//! How does a file get to the service, and how far is it? A part at a time, with a bar for people.
//!
//! Rule: the file is never held whole. The bar is on the standard error, only where that is a terminal, and not where
//! the answer is shown as it came.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures_util::stream;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Body;

use super::admin::{Admin, Parameter};

/// How much of a file is read at once. Bytes.
const PART_BYTES: usize = 64 * 1024;

const TO_AN_END: &str = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go";

const WITHOUT_END: &str = "{spinner} {bytes}, {bytes_per_sec}";

/// What is read, and how long it is where that is known.
pub(super) struct Source {
    pub(super) reader: Box<dyn Read + Send>,
    /// In bytes.
    length: Option<u64>,
}

impl Source {
    /// A file, or the standard input for `-`.
    ///
    /// # Errors
    /// When it cannot be opened, or is a directory.
    pub(super) fn open(file: &Path) -> anyhow::Result<Self> {
        if file == Path::new("-") {
            return Ok(Self {
                reader: Box::new(io::stdin()),
                length: None,
            });
        }
        let cannot = || format!("cannot read {}", file.display());
        let opened = File::open(file).with_context(cannot)?;
        let about = opened.metadata().with_context(cannot)?;
        if about.is_dir() {
            bail!("{} is a directory; name a file in it", file.display());
        }
        Ok(Self {
            reader: Box::new(opened),
            // A pipe has a name and no length.
            length: about.is_file().then_some(about.len()),
        })
    }
}

/// Sends a source there, and shows to people how far it is.
pub(super) async fn send(
    source: Source,
    path: &str,
    query: &[Parameter],
    content_type: &str,
    admin: &Admin,
) -> anyhow::Result<String> {
    let Source { reader, length } = source;
    let bar = if admin.shows_json() {
        ProgressBar::hidden()
    } else {
        bar(length)?
    };
    let body = streamed(bar.wrap_read(reader));
    let answer = admin.stream(path, query, content_type, body).await;
    bar.finish_and_clear();
    answer
}

/// A bar for so many bytes, or for as many as come.
fn bar(bytes: Option<u64>) -> anyhow::Result<ProgressBar> {
    let (bar, template) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), TO_AN_END),
        None => (ProgressBar::no_length(), WITHOUT_END),
    };
    Ok(bar.with_style(ProgressStyle::with_template(template)?))
}

/// As the service takes it.
fn streamed(source: impl Read + Send + 'static) -> Body {
    Body::wrap_stream(stream::unfold(source, |mut source| async move {
        let mut part = vec![0; PART_BYTES];
        match source.read(&mut part) {
            Ok(0) => None,
            Ok(read) => {
                part.truncate(read);
                Some((Ok(Bytes::from(part)), source))
            }
            Err(error) => Some((Err(error), source)),
        }
    }))
}
