//! Reader of the console's forms: fields, and a file that is read while it arrives.

use std::pin::Pin;
use std::time::Duration;

use actix_multipart::{Field, Multipart};
use actix_web::error::PayloadError;
use actix_web::http::header::HeaderMap;
use actix_web::web;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use vouchsafe_console::{Form, parse_form};
use vouchsafe_wire::error_code::Code;

use crate::api::body::{self, media_type};
use crate::api::error::ApiError;

/// All fields before the file.
const MAX_FIELD_BYTES: usize = 256 * 1024;

/// Longest pause before a field.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

pub(super) type FileStream = Pin<Box<dyn Stream<Item = Result<Bytes, PayloadError>>>>;

/// A form that a browser sent.
#[derive(Default)]
pub(super) struct ReceivedForm {
    /// The file's field has its name.
    pub(super) fields: Form,
    pub(super) file: Option<FileStream>,
}

/// Reads the fields up to the file, which ends the form.
pub(super) async fn read(headers: &HeaderMap, payload: web::Payload) -> Result<ReceivedForm, ApiError> {
    if media_type(headers).as_deref() != Some("multipart/form-data") {
        let body = body::read(headers, payload.into_inner()).await?;
        return Ok(ReceivedForm {
            fields: parse_form(&body),
            file: None,
        });
    }
    let mut form = ReceivedForm::default();
    let mut parts = Multipart::new(headers, payload);
    let mut left = MAX_FIELD_BYTES;
    while let Some(mut field) = next_field(&mut parts).await? {
        let name = field.name().unwrap_or_default().to_owned();
        let file_name = field.content_disposition().and_then(|part| part.get_filename());
        if let Some(file_name) = file_name {
            form.fields.push((name, file_name.to_owned()));
            form.file = Some(file_stream(parts, field));
            return Ok(form);
        }
        let value = field.bytes(left).await.map_err(|_| too_large())?;
        let value = value.map_err(|_| body::incomplete())?;
        left -= value.len();
        form.fields
            .push((name, String::from_utf8_lossy(&value).into_owned()));
    }
    Ok(form)
}

async fn next_field(parts: &mut Multipart) -> Result<Option<Field>, ApiError> {
    match tokio::time::timeout(IDLE_LIMIT, parts.try_next()).await {
        Ok(next) => next.map_err(|_| body::incomplete()),
        Err(_) => Err(ApiError::new(
            Code::RequestTimeout,
            "the form did not arrive within 10 seconds; send it again",
        )),
    }
}

/// The content of a file. The parts stay alive: the field reads through them.
fn file_stream(parts: Multipart, field: Field) -> FileStream {
    let chunks = stream::unfold((parts, field), async |(parts, mut field)| {
        let chunk = field.next().await?;
        Some((chunk.map_err(|_| PayloadError::Incomplete(None)), (parts, field)))
    });
    // Its reader asks once more after the end, where the stream would panic.
    Box::pin(chunks.fuse())
}

fn too_large() -> ApiError {
    ApiError::new(
        Code::PayloadTooLarge,
        format!("the fields of the form exceed {MAX_FIELD_BYTES} bytes; send less"),
    )
}
