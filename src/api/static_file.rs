//! Static responses: a body that stays the same while the process runs, with `ETag`, gzip and 304.

use std::io::Write as _;
use std::sync::OnceLock;

use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_ENCODING, AcceptEncoding, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, Encoding,
    EntityTag, Header as _, VARY,
};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use vouchsafe_api_docs::TextFile;

use super::etag::{entity_tag, is_cached_by_client};

/// A file in its served form.
#[derive(Debug)]
pub(crate) struct StaticFile {
    pub(crate) content_type: &'static str,
    /// A weak tag: it is the same with and without compression.
    etag: EntityTag,
    pub(crate) body: Bytes,
    gzip: OnceLock<Bytes>,
}

impl StaticFile {
    pub(crate) fn new(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self {
            content_type,
            etag: EntityTag::new_weak(entity_tag(&body).tag().to_owned()),
            body,
            gzip: OnceLock::new(),
        }
    }

    /// Responds with the file, or with 304 if the client already has it.
    pub(crate) fn respond(&self, request: &HttpRequest) -> HttpResponse {
        if is_cached_by_client(request, &self.etag) {
            return self.response(StatusCode::NOT_MODIFIED).finish();
        }
        self.respond_with(StatusCode::OK, request)
    }

    /// Responds with the file and this status.
    pub(crate) fn respond_with(&self, status: StatusCode, request: &HttpRequest) -> HttpResponse {
        let mut response = self.response(status);
        response.insert_header((CONTENT_TYPE, self.content_type));
        if accepts_gzip(request) {
            return response
                .insert_header((CONTENT_ENCODING, "gzip"))
                .body(self.gzip());
        }
        response.body(self.body.clone())
    }

    /// A response with the headers that the file and its 304 share. The file changes with the program:
    /// clients revalidate it.
    fn response(&self, status: StatusCode) -> HttpResponseBuilder {
        let mut response = HttpResponse::build(status);
        response
            .insert_header((CACHE_CONTROL, "no-cache"))
            .insert_header((ETAG, self.etag.clone()))
            .insert_header((VARY, "Accept-Encoding"));
        response
    }

    /// The compressed body. It is compressed once, for the first client that accepts it.
    fn gzip(&self) -> Bytes {
        let compress = || gzip(&self.body, Compression::best());
        self.gzip.get_or_init(compress).clone()
    }
}

impl From<TextFile> for StaticFile {
    fn from(file: TextFile) -> Self {
        Self::new(file.content_type, file.text.into_owned())
    }
}

pub(crate) fn gzip(bytes: &[u8], level: Compression) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    // Writing to memory does not fail.
    written.unwrap_or_default().into()
}

pub(crate) fn accepts_gzip(request: &HttpRequest) -> bool {
    // Without the header any encoding is acceptable, but simple clients do not decode.
    let is_sent = request.headers().contains_key(ACCEPT_ENCODING);
    let accepted = AcceptEncoding::parse(request).ok().filter(|_| is_sent);
    let supported = [Encoding::gzip(), Encoding::identity()];
    accepted.and_then(|accepted| accepted.negotiate(supported.iter())) == Some(Encoding::gzip())
}
