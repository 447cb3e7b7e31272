//! Mount of the operators' console under `/` of the operators' listener.
//!
//! The console calls the operator API within this process: each worker has a second copy of the routes of `/admin/v1`, which a call
//! enters with the operator of the outer request. Roles, second operators, validation and audit entries are those of the API.

use std::cell::Cell;
use std::rc::Rc;

use actix_http::Request;
use actix_service::boxed::BoxService;
use actix_service::{IntoServiceFactory as _, ServiceFactory as _, boxed};
use actix_web::body::to_bytes;
use actix_web::dev::{AppConfig, Payload, Service as _, ServiceResponse};
use actix_web::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use actix_web::http::{Method, StatusCode, Uri};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpMessage as _, HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::stream;
use time::Duration;
use tokio::sync::OnceCell;
use vouchsafe_console::{
    ASSET_HEADERS, AdminApi, ApiRequest, ApiResponse, Error, PAGE_HEADERS, Request as PageRequest, Response,
    Viewer,
};
use vouchsafe_domain::operator::Role;
use vouchsafe_wire::error_code::Code;

use super::body;
use super::error::{ApiError, ErrorCode};
use super::middleware::operator::{Operator, authenticate_page};
use super::operator::{ADMIN_PREFIX, configure_authenticated_routes};
use super::routing::{resource, route_not_found};
use crate::service::Service;
use crate::telemetry::trace::current_trace_id;

/// Registers the pages, their files, and the response to unknown paths.
pub(crate) fn configure(config: &mut web::ServiceConfig) {
    config.app_data(Routes::default());
    for path in vouchsafe_console::paths() {
        let page = resource(&path, "GET, HEAD, POST")
            .route(web::get().to(serve))
            .route(web::head().to(serve))
            .route(web::post().to(serve));
        config.service(page.wrap(from_fn(authenticate_page)));
    }
    config
        .service(resource("/assets/{file}", "GET").route(web::get().to(serve_asset)))
        .default_service(web::to(not_found));
}

/// The routes of the operator API on this worker thread, made by the first call.
#[derive(Clone, Default)]
struct Routes(Rc<OnceCell<BoxService<Request, ServiceResponse, actix_web::Error>>>);

/// The operator API in the name of an operator.
struct OperatorApi {
    service: web::Data<Service>,
    routes: Routes,
    operator: Operator,
    /// Of the last call that was refused: the page counts as refused with the same code.
    refused: Cell<Option<ErrorCode>>,
}

impl AdminApi for OperatorApi {
    async fn call(&self, request: ApiRequest) -> ApiResponse {
        match self.dispatch(request).await {
            Ok(response) => response,
            Err(error) => ApiResponse {
                status: error.code.status(),
                body: error.body().to_vec(),
            },
        }
    }
}

impl OperatorApi {
    async fn dispatch(&self, request: ApiRequest) -> Result<ApiResponse, ApiError> {
        let routes = self.routes.0.get_or_try_init(async || {
            let app = App::new()
                .app_data(self.service.clone())
                .configure(configure_authenticated_routes);
            let routes = app.into_factory().new_service(AppConfig::default()).await;
            routes.map(boxed::service).map_err(|()| ApiError::unavailable())
        });
        let request = inner_request(request, self.operator.clone())?;
        let response = match routes.await?.call(request).await {
            Ok(response) => HttpResponse::from(response),
            Err(error) => error.error_response(),
        };
        if let Some(code) = response.extensions().get::<ErrorCode>() {
            self.refused.set(Some(*code));
        }
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body()).await;
        let body = body.map_err(|_| ApiError::unavailable())?.to_vec();
        Ok(ApiResponse { status, body })
    }
}

fn inner_request(request: ApiRequest, operator: Operator) -> Result<Request, ApiError> {
    let uri: Result<Uri, _> = format!("{ADMIN_PREFIX}{}", request.target).parse();
    let uri = uri.map_err(|_| ApiError::new(Code::RouteNotFound, "the address is too long"))?;
    let mut headers = HeaderMap::new();
    let payload: Payload = match request.body {
        None => Payload::None,
        Some(body) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(body.content_type));
            headers.insert(CONTENT_LENGTH, body.text.len().into());
            let body = Bytes::from(body.text);
            Payload::Stream {
                payload: Box::pin(stream::iter([Ok(body)])),
            }
        }
    };
    let mut inner: Request = Request::with_payload(payload);
    let head = inner.head_mut();
    head.method = Method::from_bytes(<&str>::from(request.method).as_bytes()).unwrap_or(Method::GET);
    head.uri = uri;
    head.headers = headers;
    inner.extensions_mut().insert(operator);
    Ok(inner)
}

/// A page or a form.
async fn serve(
    service: web::Data<Service>,
    operator: Operator,
    request: HttpRequest,
    payload: web::Payload,
) -> HttpResponse {
    let roles = [Role::Admin, Role::Operator];
    let role = roles.into_iter().find(|role| operator.has_role(*role));
    let viewer = Viewer {
        name: operator.name().to_string(),
        role: role.unwrap_or(Role::Viewer),
        environment: service.environment.into_str(),
        yesterday: (service.clock.now() - Duration::DAY).date().to_string(),
    };
    let is_post = request.method() == Method::POST;
    let form = if is_post {
        body::read(request.headers(), payload.into_inner()).await
    } else {
        Ok(Bytes::new())
    };
    let form = match form {
        Ok(form) => form,
        Err(error) => return html(error_page(Some(&viewer), error.code.status(), &error.message)),
    };
    let Some(routes) = request.app_data::<Routes>().cloned() else {
        let error = ApiError::unavailable();
        return html(error_page(Some(&viewer), error.code.status(), &error.message));
    };
    let api = OperatorApi {
        service,
        routes,
        operator,
        refused: Cell::default(),
    };
    let request = PageRequest {
        is_post,
        path: request.uri().path(),
        query: request.query_string(),
        body: &form,
    };
    let mut response = html(vouchsafe_console::respond(&api, &viewer, &request).await);
    if let Some(code) = api.refused.get()
        && response.status().as_u16() >= 400
    {
        response.extensions_mut().insert(code);
    }
    response
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
    let Some(asset) = vouchsafe_console::asset(request.path()) else {
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
