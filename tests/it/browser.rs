//! A browser of an operator: keeps the session's cookie, and sends the headers that browsers add.

use bytes::Bytes;
use hyper::Method;
use hyper::header::{ACCEPT, COOKIE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::{ApiResponse, Client};
use vouchsafe_test_harness::{Instance, Operator, expect_success, text_of};

use crate::operator_accounts::text;

/// Header of a request that a page of the console sends.
pub(crate) const SAME_ORIGIN: (&str, &str) = ("sec-fetch-site", "same-origin");

pub(crate) struct Browser {
    client: Client,
    /// `NAME=VALUE`.
    pub(crate) cookie: Option<String>,
}

impl Browser {
    pub(crate) fn of(service: &Instance) -> Self {
        Self {
            client: Client::new(Origin::parse(&service.admin_url()).unwrap()),
            cookie: None,
        }
    }

    /// A browser in which the operator has signed in with a link that `admin` issued.
    pub(crate) async fn signed_in(service: &Instance, admin: &mut Operator, name: &str) -> Self {
        let link = issue_link(admin, name).await;
        let mut browser = Self::of(service);
        let (path, form) = link.split_once('?').unwrap();
        let response = browser.submit(path, form).await;
        assert_eq!(response.status, 303, "{}", text_of(&response));
        browser
    }

    /// Opens a page.
    pub(crate) async fn open(&mut self, path: &str) -> ApiResponse {
        let accept = ("accept", "text/html,application/xhtml+xml;q=0.9");
        self.send(Method::GET, path, &[accept, ("sec-fetch-site", "none")], "")
            .await
    }

    /// Submits a form of the console.
    pub(crate) async fn submit(&mut self, path: &str, form: &str) -> ApiResponse {
        self.send(Method::POST, path, &[SAME_ORIGIN], form).await
    }

    /// Sends a form or nothing with the cookie, and stores the cookie of the response.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> ApiResponse {
        let form = ("content-type", "application/x-www-form-urlencoded");
        let headers = if body.is_empty() {
            headers.to_vec()
        } else {
            [headers, &[form]].concat()
        };
        self.exchange(method, path, &headers, body).await
    }

    /// Like [`Self::send`], with a JSON body.
    pub(crate) async fn send_json(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> ApiResponse {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        self.exchange(method, path, &headers, body).await
    }

    async fn exchange(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> ApiResponse {
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            sent.insert(
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        sent.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        if let Some(cookie) = &self.cookie {
            sent.insert(COOKIE, HeaderValue::from_str(cookie).unwrap());
        }
        let body = Bytes::copy_from_slice(body.as_bytes());
        let response = self.client.call(method, path, sent, body).await.unwrap();
        if let Some(set) = response.headers.get("set-cookie") {
            let pair = set.to_str().unwrap().split(';').next().unwrap();
            self.cookie = (!pair.ends_with('=')).then(|| pair.to_owned());
        }
        response
    }

    /// Status of a request to the operator API with the cookie alone.
    pub(crate) async fn status(&mut self, method: Method, path: &str) -> u16 {
        let response = self.send(method, path, &[SAME_ORIGIN], "").await;
        response.status.as_u16()
    }
}

/// Issues a sign-in link and returns its path with the token.
pub(crate) async fn issue_link(admin: &mut Operator, name: &str) -> String {
    let path = format!("/admin/v1/operators/{name}/sign-in-links");
    let issued = expect_success(&admin.call_json(Method::POST, &path, "").await, 201);
    link_path(&issued)
}

/// The path of a link, with the token.
pub(crate) fn link_path(issued: &Value) -> String {
    let url = text(issued, "url");
    let (_, path) = url.split_once("/sign-in/link").unwrap();
    format!("/sign-in/link{path}")
}
