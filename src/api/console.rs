//! Mount of the operators' console under `/` of the operators' listener.
//!
//! The console calls the operator API within this process, in the name of the operator of the request.

mod form_reader;

use std::cell::{Cell, RefCell};
use std::sync::LazyLock;

use actix_web::body::to_bytes;
use actix_web::dev::Payload;
use actix_web::http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, LOCATION};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::from_fn;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};
use uuid::Uuid;
use vouchsafe_console::{
    AdminApi, ApiBody, ApiRequest, ApiResponse, Error, Request as PageRequest, Response, SentForms, Viewer,
};
use vouchsafe_telemetry::trace::current_trace_id;
use vouchsafe_ui::{ASSET_HEADERS, PAGE_HEADERS};
use vouchsafe_wire::csv;

use self::form_reader::{FileStream, ReceivedForm};
use super::error::{ApiError, ApiResult, ErrorCode};
use super::middleware::compression::compress_page;
use super::middleware::operator::{EndedSession, Operator, authenticate_page};
use super::operator::follow_as_rows;
use super::operator::inner_api::{InnerApi, InnerRequest};
use super::operator::reports::REPLICA_LAG;
use super::routing::{resource, route_not_found};
use crate::service::Service;

/// Forms of all workers.
static SENT_FORMS: LazyLock<SentForms> = LazyLock::new(SentForms::default);

/// Registers the pages, their files, and the response to unknown paths.
pub(crate) fn configure(config: &mut web::ServiceConfig) {
    for path in vouchsafe_console::paths() {
        let page = resource(&path, "GET, HEAD, POST")
            .route(web::get().to(serve).wrap(from_fn(compress_page)))
            .route(web::head().to(serve))
            .route(web::post().to(serve));
        config.service(page.wrap(from_fn(authenticate_page)));
    }
    for path in vouchsafe_console::csv_paths() {
        let download = resource(&path, "GET").route(web::get().to(download));
        config.service(download.wrap(from_fn(authenticate_page)));
    }
    let live = resource("/live", "GET").route(follow_as_rows());
    config
        .service(live.wrap(from_fn(authenticate_page)))
        .service(
            resource("/assets/{file}", "GET").route(web::get().to(serve_asset).wrap(from_fn(compress_page))),
        )
        .default_service(web::to(not_found));
}

/// The operator API in the name of an operator.
struct OperatorApi {
    routes: InnerApi,
    operator: Operator,
    /// The file of the form, which one call sends.
    file: RefCell<Option<FileStream>>,
    /// Code of the last call that was refused: the page counts as refused with the same code.
    refused: Cell<Option<ErrorCode>>,
}

impl AdminApi for OperatorApi {
    async fn call(&self, request: ApiRequest) -> ApiResponse {
        match self.dispatch(request).await {
            Ok(response) => response,
            Err(error) => ApiResponse {
                status: error.code.status(),
                replica_lag: None,
                body: error.body().to_vec(),
            },
        }
    }
}

impl OperatorApi {
    async fn dispatch(&self, request: ApiRequest) -> Result<ApiResponse, ApiError> {
        let request = self.inner_request(request);
        let response = self.routes.call(self.operator.clone(), request).await?;
        if let Some(code) = response.extensions().get::<ErrorCode>() {
            self.refused.set(Some(*code));
        }
        let status = response.status().as_u16();
        let replica_lag = response.headers().get(REPLICA_LAG);
        let replica_lag = replica_lag.and_then(|lag| Some(lag.to_str().ok()?.to_owned()));
        let body = to_bytes(response.into_body()).await;
        let body = body.map_err(|_| ApiError::unavailable())?.to_vec();
        Ok(ApiResponse {
            status,
            replica_lag,
            body,
        })
    }

    fn inner_request(&self, request: ApiRequest) -> InnerRequest {
        let method = <&str>::from(request.method).as_bytes();
        let method = Method::from_bytes(method).unwrap_or(Method::GET);
        let inner = InnerRequest::new(method, request.target);
        match request.body {
            None => inner,
            Some(ApiBody::Json(text)) => inner.json(text),
            Some(ApiBody::File { content_type }) => {
                let file = self.file.take();
                inner.stream(
                    content_type,
                    file.map_or(Payload::None, |payload| Payload::Stream { payload }),
                )
            }
        }
    }
}

/// A list as CSV.
async fn download(service: web::Data<Service>, operator: Operator, request: HttpRequest) -> ApiResult {
    let viewer = viewer(&service, &operator);
    let target = request
        .uri()
        .path_and_query()
        .map_or("", |target| target.as_str());
    let list = vouchsafe_console::list_of_csv(target).unwrap_or_default();
    let mut inner = InnerRequest::new(Method::GET, list.to_owned());
    inner
        .headers_mut()
        .insert(ACCEPT, HeaderValue::from_static(csv::MEDIA_TYPE));
    let response = InnerApi::of(&request)?.call(operator, inner).await?;
    if response.status() == StatusCode::OK {
        return Ok(response);
    }
    let status = response.status().as_u16();
    let code = response.extensions().get::<ErrorCode>().copied();
    let body = to_bytes(response.into_body()).await.unwrap_or_default();
    let mut page = html(vouchsafe_console::respond_refusal(&viewer, status, &body));
    if let Some(code) = code {
        page.extensions_mut().insert(code);
    }
    Ok(page)
}

/// A page or a form.
async fn serve(
    service: web::Data<Service>,
    operator: Result<Operator, ApiError>,
    request: HttpRequest,
    payload: web::Payload,
) -> HttpResponse {
    let viewer = operator.as_ref().ok().map(|operator| viewer(&service, operator));
    let page = respond(operator, viewer.as_ref(), &request, payload).await;
    page.unwrap_or_else(|error| html(error_page(viewer.as_ref(), error.code.status(), &error.message)))
}

fn viewer(service: &Service, operator: &Operator) -> Viewer {
    Viewer {
        name: operator.name().to_string(),
        role: operator.role(),
        environment: service.environment.into_str(),
        page_id: Uuid::new_v4().simple().to_string(),
    }
}

async fn respond(
    operator: Result<Operator, ApiError>,
    viewer: Option<&Viewer>,
    request: &HttpRequest,
    payload: web::Payload,
) -> ApiResult {
    let is_post = request.method() == Method::POST;
    let headers = request.headers();
    let form = match operator {
        Ok(_) if is_post => form_reader::read(headers, payload).await?,
        // The sender was an operator. A form with a file, which must be chosen again anyway, is not read.
        Err(_) if request.extensions().contains::<EndedSession>() && !form_reader::is_multipart(headers) => {
            ReceivedForm {
                fields: form_reader::read_kept_fields(headers, payload).await?,
                file: None,
            }
        }
        _ => ReceivedForm::default(),
    };
    let page_request = PageRequest {
        is_post,
        path: request.uri().path(),
        query: request.query_string(),
        form: form.fields,
    };
    let (operator, viewer) = match (operator, viewer) {
        (Ok(operator), Some(viewer)) => (operator, viewer),
        // The middleware lets through the form of an operator whose session has ended.
        _ => return Ok(html(vouchsafe_console::respond_session_ended(page_request))),
    };
    let api = OperatorApi {
        routes: InnerApi::of(request)?,
        operator,
        file: RefCell::new(form.file),
        refused: Cell::default(),
    };
    let page = vouchsafe_console::respond(&api, viewer, page_request, &SENT_FORMS).await;
    let mut response = html(page);
    if let Some(code) = api.refused.get()
        && response.status().as_u16() >= 400
    {
        response.extensions_mut().insert(code);
    }
    Ok(response)
}

fn error_page(viewer: Option<&Viewer>, status: u16, message: &str) -> Response {
    let error = Error {
        status,
        message,
        trace_id: &current_trace_id(),
    };
    vouchsafe_console::respond_error(viewer, &error)
}

fn html(page: Response) -> HttpResponse {
    let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = HttpResponse::build(status);
    for header in PAGE_HEADERS {
        response.insert_header(header);
    }
    if let Some(location) = page.location {
        response.insert_header((LOCATION, location));
    }
    response.body(page.html)
}

async fn serve_asset(request: HttpRequest) -> HttpResponse {
    let Some(asset) = vouchsafe_ui::asset(request.path()) else {
        return route_not_found().await;
    };
    let mut response = HttpResponse::Ok();
    for header in ASSET_HEADERS {
        response.insert_header(header);
    }
    response
        .insert_header((CONTENT_TYPE, asset.content_type))
        .body(asset.text.as_str())
}

/// A page for browsers, the error body of the API for other clients.
async fn not_found(request: HttpRequest) -> HttpResponse {
    let accept = request
        .headers()
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("text/html")) {
        return html(error_page(None, 404, "There is no page at this address."));
    }
    route_not_found().await
}
