//! Calls of the operator API within this process, in the name of an operator.
//!
//! Each worker has a second copy of the routes of `/admin/v1`, which a call enters with the operator of the
//! outer request. Roles, second operators, validation and audit entries are those of the API.

use std::rc::Rc;

use actix_http::Request;
use actix_service::boxed::BoxService;
use actix_service::{IntoServiceFactory as _, ServiceFactory as _, boxed};
use actix_web::dev::{AppConfig, Payload, Service as _, ServiceResponse};
use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use actix_web::http::{Method, Uri};
use actix_web::{App, HttpMessage as _, HttpRequest, HttpResponse};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::OnceCell;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::operation::ADMIN_PREFIX;

use super::OperatorRoutes;
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::operator::Operator;

/// The routes of the operator API.
#[derive(Clone)]
pub(in crate::api) struct InnerApi {
    routes: OperatorRoutes,
    /// Those of this worker thread, made by the first call.
    on_this_thread: Rc<OnceCell<BoxService<Request, ServiceResponse, actix_web::Error>>>,
}

/// A request of the operator API.
pub(in crate::api) struct InnerRequest {
    method: Method,
    /// Path below `/admin/v1`, with the query.
    target: String,
    headers: HeaderMap,
    payload: Payload,
}

impl InnerRequest {
    pub(in crate::api) fn new(method: Method, target: String) -> Self {
        Self {
            method,
            target,
            headers: HeaderMap::new(),
            payload: Payload::None,
        }
    }

    pub(in crate::api) fn json(mut self, body: String) -> Self {
        self.headers.insert(CONTENT_LENGTH, body.len().into());
        let payload = Box::pin(stream::iter([Ok(Bytes::from(body))]));
        self.stream("application/json", Payload::Stream { payload })
    }

    pub(in crate::api) fn stream(mut self, content_type: &'static str, payload: Payload) -> Self {
        self.headers
            .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        Self { payload, ..self }
    }

    pub(in crate::api) fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }
}

impl InnerApi {
    pub(super) fn new(routes: OperatorRoutes) -> Self {
        Self {
            routes,
            on_this_thread: Rc::default(),
        }
    }

    /// That of the application of this request.
    ///
    /// # Errors
    /// `SERVICE_UNAVAILABLE` if the application has none, which is a bug.
    pub(in crate::api) fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        request
            .app_data::<Self>()
            .cloned()
            .ok_or_else(ApiError::unavailable)
    }

    /// The response, also if the API refuses the request.
    ///
    /// # Errors
    /// `ROUTE_NOT_FOUND` for a target that is too long.
    pub(in crate::api) async fn call(&self, operator: Operator, request: InnerRequest) -> ApiResult {
        let routes = self.on_this_thread.get_or_try_init(async || {
            let app = App::new()
                .app_data(self.clone())
                .configure(|config| self.routes.configure_authenticated(config));
            let routes = app.into_factory().new_service(AppConfig::default()).await;
            routes.map(boxed::service).map_err(|()| ApiError::unavailable())
        });
        let uri: Result<Uri, _> = format!("{ADMIN_PREFIX}{}", request.target).parse();
        let uri = uri.map_err(|_| ApiError::new(Code::RouteNotFound, "the address is too long"))?;
        let mut inner = Request::with_payload(request.payload);
        // A head from actix's pool keeps what an earlier request has set.
        let head = inner.head_mut();
        head.method = request.method;
        head.uri = uri;
        head.headers = request.headers;
        inner.extensions_mut().insert(operator);
        Ok(match routes.await?.call(inner).await {
            Ok(response) => HttpResponse::from(response),
            Err(error) => error.error_response(),
        })
    }
}
