//! Reader of the console's forms: fields, and a file that is read while it arrives.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use actix_multipart::{Field, Multipart};
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap};
use actix_web::web;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use vouchsafe_console::{Form, parse_form};
use vouchsafe_wire::error_code::Code;

use crate::api::body::{self, media_type};
use crate::api::error::ApiError;

/// Everything before the content of the file: fields with their names and headers.
const MAX_FIELD_BYTES: usize = 256 * 1024;

/// A form that is kept for an operator whose session has ended. The longest texts that a person types have
/// some kilobytes.
const MAX_KEPT_BYTES: usize = 64 * 1024;

/// Time for everything before the content of the file.
const FIELDS_DEADLINE: Duration = Duration::from_secs(10);

/// The parser cuts two bytes off both ends of a line that is as long as the boundary.
const MIN_BOUNDARY: usize = 4;

pub(super) type FileStream = Pin<Box<dyn Stream<Item = Result<Bytes, PayloadError>>>>;

/// A form that a browser sent.
#[derive(Default)]
pub(super) struct ReceivedForm {
    /// The file's field has its name.
    pub(super) fields: Form,
    pub(super) file: Option<FileStream>,
}

/// Reads a form without a file.
async fn read_fields(headers: &HeaderMap, payload: web::Payload) -> Result<Form, ApiError> {
    let body = body::read(headers, payload.into_inner()).await?;
    Ok(parse_form(&body))
}

/// Reads a form that is only shown again, because the session of its sender has ended.
pub(super) async fn read_kept_fields(headers: &HeaderMap, payload: web::Payload) -> Result<Form, ApiError> {
    let body = body::read_at_most(MAX_KEPT_BYTES, headers, payload.into_inner()).await?;
    Ok(parse_form(&body))
}

/// Whether a form may have a file.
pub(super) fn is_multipart(headers: &HeaderMap) -> bool {
    media_type(headers).as_deref() == Some("multipart/form-data")
}

/// Reads a form up to the content of its file, which ends it.
pub(super) async fn read(headers: &HeaderMap, payload: web::Payload) -> Result<ReceivedForm, ApiError> {
    if !is_multipart(headers) {
        return Ok(ReceivedForm {
            fields: read_fields(headers, payload).await?,
            file: None,
        });
    }
    check_boundary(headers)?;
    match tokio::time::timeout(FIELDS_DEADLINE, read_parts(headers, payload)).await {
        Ok(form) => form,
        Err(_) => Err(ApiError::new(
            Code::RequestTimeout,
            "the fields of the form did not arrive within 10 seconds; send it again",
        )),
    }
}

fn check_boundary(headers: &HeaderMap) -> Result<(), ApiError> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let boundary = content_type.and_then(|value| value.split_once("boundary="));
    let length = boundary.map_or(0, |(_, boundary)| boundary.trim_matches('"').len());
    if length < MIN_BOUNDARY {
        let message = "the boundary of the form is too short; browsers send a longer one";
        return Err(ApiError::new(Code::MalformedRequest, message));
    }
    Ok(())
}

async fn read_parts(headers: &HeaderMap, payload: web::Payload) -> Result<ReceivedForm, ApiError> {
    let is_in_file = Rc::new(Cell::new(false));
    let mut form = ReceivedForm::default();
    let mut parts = Multipart::new(headers, limit_fields(payload, Rc::clone(&is_in_file)));
    while let Some(mut field) = parts.try_next().await.map_err(|error| refused(&error))? {
        let name = field.name().unwrap_or_default().to_owned();
        let file_name = field.content_disposition().and_then(|part| part.get_filename());
        if let Some(file_name) = file_name {
            is_in_file.set(true);
            form.fields.push((name, file_name.to_owned()));
            form.file = Some(file_stream(parts, field));
            return Ok(form);
        }
        let value = field.bytes(MAX_FIELD_BYTES).await;
        let value = value.map_err(|_| too_large())?.map_err(|error| refused(&error))?;
        let value = String::from_utf8_lossy(&value).into_owned();
        form.fields.push((name, value));
    }
    Ok(form)
}

/// The body, which fails after [`MAX_FIELD_BYTES`] unless the content of the file has begun. The parser holds
/// names, headers and lines of any length.
fn limit_fields(
    payload: web::Payload,
    is_in_file: Rc<Cell<bool>>,
) -> impl Stream<Item = Result<Bytes, PayloadError>> {
    let mut received = 0;
    payload.map(move |chunk| {
        let chunk = chunk?;
        received += chunk.len();
        if received > MAX_FIELD_BYTES && !is_in_file.get() {
            return Err(PayloadError::Overflow);
        }
        Ok(chunk)
    })
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

fn refused(error: &actix_multipart::MultipartError) -> ApiError {
    match error {
        actix_multipart::MultipartError::Payload(PayloadError::Overflow) => too_large(),
        _ => body::incomplete(),
    }
}

fn too_large() -> ApiError {
    ApiError::new(
        Code::PayloadTooLarge,
        format!("the fields of the form exceed {MAX_FIELD_BYTES} bytes; send less"),
    )
}
