//! Responses of the console over an operator API that always responds the same.

use std::cell::RefCell;

use super::*;
use crate::api::{ApiResponse, Method};
use crate::page::{Column, Source, View};
use crate::template::fill;

struct FixedApi {
    status: u16,
    body: &'static str,
    changes: RefCell<Vec<String>>,
}

impl FixedApi {
    fn new(status: u16, body: &'static str) -> Self {
        Self {
            status,
            body,
            changes: RefCell::default(),
        }
    }
}

impl AdminApi for FixedApi {
    async fn call(&self, request: ApiRequest) -> ApiResponse {
        if request.method != Method::Get {
            self.changes.borrow_mut().push(request.target);
        }
        ApiResponse {
            status: self.status,
            body: self.body.into(),
        }
    }
}

async fn send(api: &FixedApi, role: Role, is_post: bool, path: &str, body: &str) -> Response {
    let viewer = Viewer {
        name: "jane".to_owned(),
        role,
        environment: "production",
        yesterday: "2026-11-24".to_owned(),
    };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let request = Request {
        is_post,
        path,
        query,
        body: body.as_bytes(),
    };
    respond(api, &viewer, &request).await
}

#[tokio::test]
async fn refusal_of_the_api_is_a_page_with_its_status_and_trace() {
    for (status, title) in [
        (403, "Not permitted"),
        (404, "Not found"),
        (503, "Not available now"),
        (500, "Error"),
    ] {
        let api = FixedApi::new(
            status,
            r#"{"error":{"code":"X","message":"what to do","trace_id":"4bf9"}}"#,
        );
        let page = send(&api, Role::Admin, false, "/orders/ord_1", "").await;
        assert_eq!(page.status, status);
        for text in [title, "what to do", "4bf9", "jane · admin", "<nav"] {
            assert!(page.html.contains(text), "{text}: {}", page.html);
        }
    }
}

#[tokio::test]
async fn address_of_a_form_leads_to_its_page_and_keeps_the_filter() {
    let api = FixedApi::new(200, "{}");
    let reloaded = send(
        &api,
        Role::Admin,
        false,
        "/drifts/resolve?vendor=a&done=resolve",
        "",
    )
    .await;
    assert_eq!(
        (reloaded.status, reloaded.location.as_deref()),
        (303, Some("/drifts?vendor=a"))
    );
    let form = "drift_id=drf_1&resolution=resolved&reason=x";
    let made = send(&api, Role::Admin, true, "/drifts/resolve?vendor=a", form).await;
    assert_eq!(made.location.as_deref(), Some("/drifts?vendor=a&done=resolve"));
    assert_eq!(*api.changes.borrow(), ["/drifts/drf_1/resolve"]);
    let unknown = send(&api, Role::Admin, true, "/drifts/shred", "").await;
    assert_eq!(unknown.status, 404);
    assert_eq!(api.changes.borrow().len(), 1);
}

#[tokio::test]
async fn message_after_a_change_is_text_of_the_console_only() {
    let api = FixedApi::new(200, r#"{"data":[]}"#);
    let page = send(&api, Role::Viewer, false, "/drifts?done=resolve", "").await;
    assert!(
        page.html.contains("The drift has its resolution."),
        "{}",
        page.html
    );
    let page = send(&api, Role::Viewer, false, "/drifts?done=Paid+to+account+7", "").await;
    assert!(!page.html.contains("class=\"notice\""), "{}", page.html);
}

/// The addresses to which a page links.
fn links(page: &'static Page) -> Vec<&'static str> {
    let of_columns = |columns: &'static [Column]| columns.iter().map(|column| column.page);
    let links: Vec<_> = match &page.view {
        View::List(list) => of_columns(list.columns).collect(),
        View::Object(object) => object
            .sections
            .iter()
            .flat_map(|section| {
                let more = match section.source {
                    Source::Api { page, .. } => page,
                    Source::Field(_) => "",
                };
                of_columns(section.columns).chain([more])
            })
            .collect(),
    };
    links.into_iter().filter(|link| !link.is_empty()).collect()
}

#[test]
fn every_link_leads_to_a_page_and_every_address_names_one_thing() {
    let mut addresses: Vec<_> = paths().collect();
    let count = addresses.len();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), count, "two pages or forms have one address");
    for link in all_pages().flat_map(links) {
        let path = fill(link, |_| Some("x".to_owned()));
        let path = path.split('?').next().unwrap_or_default();
        let target = find(path).unwrap_or_else(|| panic!("{link} leads nowhere"));
        assert!(target.action.is_none(), "{link} leads to a form");
    }
}

#[tokio::test]
async fn navigation_leads_to_pages() {
    let api = FixedApi::new(200, r#"{"data":[]}"#);
    let page = send(&api, Role::Viewer, false, "/", "").await.html;
    let navigation = page
        .split("<nav")
        .nth(1)
        .and_then(|rest| rest.split("</nav>").next());
    let navigation = navigation.unwrap_or_default();
    let links: Vec<_> = navigation
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(links.len() > 12, "{links:?}");
    for link in links.into_iter().filter(|link| *link != "/docs") {
        assert!(find(link).is_some_and(|target| target.action.is_none()), "{link}");
    }
}
