//! Headers of every response: `nosniff`, `no-store` unless the response has a policy of its own, and HSTS
//! where clients use https.

use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{
    CACHE_CONTROL, HeaderMap, HeaderValue, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};

const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Two years. Without subdomains: they belong to other services.
const TWO_YEARS: HeaderValue = HeaderValue::from_static("max-age=63072000");

/// Whether browsers may reach the host of a listener by https only, as data of its application.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StrictTransport(pub(crate) bool);

/// A step of both listeners. It allocates nothing but the entries of the header map: orders pass it.
pub(super) async fn set_security_headers<B>(
    request: ServiceRequest,
    next: impl AsyncFnOnce(ServiceRequest) -> Result<ServiceResponse<B>, actix_web::Error>,
) -> Result<ServiceResponse<B>, actix_web::Error> {
    let transport = request.app_data::<StrictTransport>().copied();
    let is_strict = transport.is_some_and(|StrictTransport(is_strict)| is_strict);
    let mut result = next(request)
        .await
        .map_err(|error| (error.error_response(), error));
    match &mut result {
        Ok(response) => insert(response.headers_mut(), is_strict),
        Err((response, _)) => insert(response.headers_mut(), is_strict),
    }
    result.map_err(|(response, error)| InternalError::from_response(error, response).into())
}

fn insert(headers: &mut HeaderMap, is_strict: bool) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, NO_STORE);
    }
    if is_strict {
        headers.insert(STRICT_TRANSPORT_SECURITY, TWO_YEARS);
    }
}

#[cfg(test)]
mod tests {
    use actix_web::HttpResponse;
    use actix_web::error::ErrorImATeapot;
    use actix_web::test::TestRequest;

    use super::*;

    /// The three headers of a response, through the step.
    async fn headers(is_strict: bool, response: Result<HttpResponse, actix_web::Error>) -> [String; 3] {
        let request = TestRequest::get()
            .app_data(StrictTransport(is_strict))
            .to_srv_request();
        let result = set_security_headers(request, async |request: ServiceRequest| {
            Ok(request.into_response(response?))
        });
        let response = match result.await {
            Ok(response) => response.map_into_boxed_body().into_parts().1,
            Err(error) => error.error_response(),
        };
        [X_CONTENT_TYPE_OPTIONS, CACHE_CONTROL, STRICT_TRANSPORT_SECURITY].map(|name| {
            let values: Vec<_> = response.headers().get_all(name).collect();
            assert!(values.len() <= 1, "{values:?}");
            values
                .first()
                .map_or("", |value| value.to_str().unwrap())
                .to_owned()
        })
    }

    #[actix_web::test]
    async fn response_and_error_have_the_headers_and_keep_a_cache_policy_of_their_own() {
        let plain = || Ok(HttpResponse::Ok().finish());
        assert_eq!(headers(false, plain()).await, ["nosniff", "no-store", ""]);
        assert_eq!(
            headers(true, plain()).await,
            ["nosniff", "no-store", "max-age=63072000"]
        );
        let error = Err(ErrorImATeapot("no coffee"));
        assert_eq!(
            headers(true, error).await,
            ["nosniff", "no-store", "max-age=63072000"]
        );
        let cached = HttpResponse::Ok()
            .insert_header((CACHE_CONTROL, "public, max-age=5"))
            .finish();
        assert_eq!(
            headers(false, Ok(cached)).await,
            ["nosniff", "public, max-age=5", ""]
        );
    }
}
