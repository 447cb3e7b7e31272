//! Streaming file upload with a progress bar.
//!
//! The file is never in memory as a whole. The bar appears on standard error if that is a terminal and
//! `--json` is not set.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures_util::stream;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Body;
use serde::Serialize;

use super::admin::AdminClient;
use super::target::Target;

/// Bytes read at once.
const PART_BYTES: usize = 64 * 1024;

const BAR_WITH_LENGTH: &str = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

const BAR_WITHOUT_LENGTH: &str = "{spinner} {bytes}, {bytes_per_sec}";

/// An input file or standard input.
pub(super) struct UploadSource {
    pub(super) reader: Box<dyn Read + Send>,
    /// Bytes, if known.
    length: Option<u64>,
}

impl UploadSource {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// If it cannot be opened or is a directory.
    pub(super) fn open(file: &Path) -> anyhow::Result<Self> {
        if file == Path::new("-") {
            return Ok(Self {
                reader: Box::new(io::stdin()),
                length: None,
            });
        }
        let cannot = || format!("cannot read {}", file.display());
        let opened = File::open(file).with_context(cannot)?;
        let metadata = opened.metadata().with_context(cannot)?;
        if metadata.is_dir() {
            bail!("{} is a directory; name a file in it", file.display());
        }
        Ok(Self {
            reader: Box::new(opened),
            // A named pipe has no length.
            length: metadata.is_file().then_some(metadata.len()),
        })
    }
}

/// Uploads a source and shows the progress.
pub(super) async fn send<Q: Serialize, R>(
    source: UploadSource,
    target: impl Into<Target<Q, R>>,
    query: &Q,
    content_type: &str,
    admin: &AdminClient,
) -> anyhow::Result<String> {
    let UploadSource { reader, length } = source;
    let bar = if admin.is_json_output() {
        ProgressBar::hidden()
    } else {
        progress_bar(length)?
    };
    let body = body_stream(bar.wrap_read(reader));
    let response = admin.send_stream(target, query, content_type, body).await;
    bar.finish_and_clear();
    response
}

/// A bar for a known or unknown number of bytes.
fn progress_bar(bytes: Option<u64>) -> anyhow::Result<ProgressBar> {
    let (bar, template) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), BAR_WITH_LENGTH),
        None => (ProgressBar::no_length(), BAR_WITHOUT_LENGTH),
    };
    Ok(bar.with_style(ProgressStyle::with_template(template)?))
}

fn body_stream(source: impl Read + Send + 'static) -> Body {
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
