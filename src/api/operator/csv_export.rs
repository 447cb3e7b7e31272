//! Lists as CSV: streams the whole filtered list, page by page, to clients that accept `text/csv`.
//!
//! It calls the handler of the list for each page, so filters, errors and masked fields are those of the
//! list, and no more than one page is in memory.

use actix_web::body::{BodyStream, BoxBody, to_bytes};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, VARY};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage as _, HttpRequest, HttpResponse, ResponseError as _};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::{Instrument as _, Span};
use vouchsafe_wire::csv::{self, CsvTable};
use vouchsafe_wire::limit::PageLimit;
use vouchsafe_wire::operator::operation::Route;
use vouchsafe_wire::page::{ListPurpose, is_page_parameter};
use vouchsafe_wire::query;

use crate::api::error::ApiError;
use crate::api::header::accepts;
use crate::api::list_request::PageQuery;

const END_OF_LINE: &str = "\r\n";

/// The fields of a page that a CSV needs.
#[derive(Deserialize)]
struct ListPage<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    next_cursor: Option<String>,
}

/// A list that is read page by page.
struct ListReader {
    request: HttpRequest,
    handler: Next<BoxBody>,
    table: CsvTable,
    filters: query::Pairs,
    /// `None` at the beginning of the list.
    cursor: Option<String>,
}

/// Lines of a list, and what follows them; `None` at the end of the list.
type Lines = (Bytes, Option<ListReader>);

impl ListReader {
    /// The lines of the next page, or the error response.
    async fn read(mut self) -> Result<Lines, HttpResponse> {
        let mut query = self.filters.clone();
        query.push(("limit".to_owned(), PageLimit::HIGHEST.get().to_string()));
        query.extend(self.cursor.take().map(|cursor| ("cursor".to_owned(), cursor)));
        let query = query::to_string(&query).map_err(|_| ApiError::unavailable().error_response())?;
        self.request
            .extensions_mut()
            .insert(PageQuery(query, ListPurpose::Page));
        let request = ServiceRequest::from_request(self.request.clone());
        let response = match self.handler.call(request).await {
            Ok(response) => HttpResponse::from(response),
            Err(error) => error.error_response(),
        };
        if response.status() != StatusCode::OK {
            return Err(response);
        }
        let body = to_bytes(response.into_body()).await;
        let body = body.map_err(|_| ApiError::unavailable().error_response())?;
        self.into_lines(&body)
            .map_err(|error| ApiError::from(error).error_response())
    }

    fn into_lines(mut self, page: &[u8]) -> serde_json::Result<Lines> {
        let page: ListPage<'_> = serde_json::from_slice(page)?;
        let mut lines = String::new();
        for entry in page.data {
            lines += &self.table.line(entry)?;
            lines += END_OF_LINE;
        }
        let next = page.next_cursor.map(|cursor| {
            self.cursor = Some(cursor);
            self
        });
        Ok((lines.into(), next))
    }
}

/// Middleware of a list.
pub(super) async fn export_list(
    route: Route,
    request: ServiceRequest,
    handler: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if !accepts(request.request(), csv::MEDIA_TYPE) {
        return handler.call(request).await;
    }
    let (request, _) = request.into_parts();
    let table = CsvTable::of(route.columns);
    let heading = Bytes::from(table.header() + END_OF_LINE);
    let reader = parse_filters(&request).map(|filters| ListReader {
        request: request.clone(),
        handler,
        table,
        filters,
        cursor: None,
    });
    let first = match reader {
        Ok(reader) => reader.read().await,
        Err(error) => Err(error.error_response()),
    };
    let response = match first {
        Ok(lines) => respond(&route, heading, lines),
        Err(response) => response,
    };
    Ok(ServiceResponse::new(request, response))
}

/// The filters of a request, which names no page.
fn parse_filters(request: &HttpRequest) -> Result<query::Pairs, ApiError> {
    let filters = query::split(request.query_string())?;
    match filters.iter().find(|(name, _)| is_page_parameter(name)) {
        Some((name, _)) => Err(ApiError::invalid_field(
            name,
            "a CSV has the whole list; remove it, or accept application/json",
        )),
        None => Ok(filters),
    }
}

fn respond(route: &Route, heading: Bytes, (first, rest): Lines) -> HttpResponse {
    let span = Span::current();
    let pages = stream::try_unfold(rest, move |rest| {
        let read = async {
            let Some(reader) = rest else { return Ok(None) };
            reader.read().await.map(Some).map_err(|response| {
                tracing::warn!(
                    http.status = response.status().as_u16(),
                    "CSV of a list ended early"
                );
                // The response has begun: only the end of the connection tells that it is incomplete.
                ApiError::unavailable()
            })
        };
        read.instrument(span.clone())
    });
    let begin = stream::iter([Ok(heading), Ok(first)]);
    let file = route.path.rsplit('/').find(|part| !part.starts_with('{'));
    let disposition = format!("attachment; filename=\"{}.csv\"", file.unwrap_or("list"));
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, csv::MEDIA_TYPE))
        .insert_header((CONTENT_DISPOSITION, disposition))
        .insert_header((VARY, "Accept"))
        .body(BodyStream::new(futures_util::StreamExt::chain(begin, pages)))
}
