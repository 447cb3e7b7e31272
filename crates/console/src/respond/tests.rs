//! Responses of the console over an operator API that always responds the same.

use std::cell::RefCell;

use super::*;
use crate::api::ApiResponse;
use crate::page::{Column, Source, View};
use crate::template::fill;
use vouchsafe_wire::operation::Method;

struct FixedApi {
    status: u16,
    replica_lag: Option<&'static str>,
    body: &'static str,
    changes: RefCell<Vec<String>>,
    sent_forms: SentForms,
}

impl FixedApi {
    fn new(status: u16, body: &'static str) -> Self {
        Self {
            status,
            replica_lag: None,
            body,
            changes: RefCell::default(),
            sent_forms: SentForms::default(),
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
            replica_lag: self.replica_lag.map(ToOwned::to_owned),
            body: self.body.into(),
        }
    }
}

async fn send(api: &FixedApi, role: Role, is_post: bool, path: &str, body: &str) -> Response {
    let viewer = Viewer {
        name: "jane".to_owned(),
        role,
        environment: "production",
        page_id: "p".to_owned(),
    };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let request = Request {
        is_post,
        path,
        query,
        form: parse_form(body.as_bytes()),
    };
    respond(api, &viewer, request, &api.sent_forms).await
}

#[tokio::test]
async fn list_and_table_of_a_standby_show_its_lag() {
    let mut api = FixedApi::new(200, r#"{"data":[],"has_more":false}"#);
    for path in ["/payouts?status=PENDING", "/partners/ptn_1"] {
        api.replica_lag = None;
        let page = send(&api, Role::Admin, false, path, "").await;
        assert!(!page.html.contains("from a standby"), "{}", page.html);
        api.replica_lag = Some("0.412");
        let page = send(&api, Role::Admin, false, path, "").await;
        assert!(
            page.html.contains("Read from a standby that is 0.412 s behind."),
            "{}",
            page.html
        );
    }
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
    let api = FixedApi::new(200, r#"{"data":[{"drift_id":"drf_1"}]}"#);
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
async fn form_is_carried_out_once_and_can_be_sent_again_after_a_refusal() {
    let form = "form_id=p-1&drift_id=drf_1&resolution=resolved&reason=x";
    let refusing = FixedApi::new(422, r#"{"error":{"code":"X","message":"no"}}"#);
    for _ in 0..2 {
        let refused = send(&refusing, Role::Admin, true, "/drifts/resolve", form).await;
        assert_eq!(refused.status, 422);
    }
    assert_eq!(refusing.changes.borrow().len(), 2);
    let api = FixedApi::new(200, r#"{"data":[{"drift_id":"drf_1","resolution":"pending"}]}"#);
    let first = send(&api, Role::Admin, true, "/drifts/resolve", form).await;
    assert_eq!(first.location.as_deref(), Some("/drifts?done=resolve"));
    let again = send(&api, Role::Admin, true, "/drifts/resolve", form).await;
    assert_eq!(again.status, 409);
    assert!(
        again.html.contains("was not sent again") && again.html.contains(">x</textarea>"),
        "{}",
        again.html
    );
    assert_eq!(api.changes.borrow().len(), 1);
}

#[tokio::test]
async fn change_of_what_somebody_else_has_changed_is_shown_and_not_made() {
    let api = FixedApi::new(
        200,
        r#"{"vendor_id":"v","adapter":"mock","url":"https://new.example/"}"#,
    );
    let form = "before:adapter=mock&adapter=mock&before:url=https://old.example/&url=https://mine.example/";
    let refused = send(&api, Role::Admin, true, "/vendors/v/change", form).await;
    assert_eq!(refused.status, 409);
    for text in [
        "Another operator has changed this",
        "is “https://new.example/” now",
        "value=\"https://mine.example/\"",
    ] {
        assert!(refused.html.contains(text), "{text}: {}", refused.html);
    }
    assert!(api.changes.borrow().is_empty());
}

#[test]
fn form_after_the_end_of_a_session_keeps_what_was_typed() {
    let request = Request {
        is_post: true,
        path: "/orders/ord_1/reject",
        query: "a=b",
        form: vec![("reason".to_owned(), "a \"b\"\n<c>".to_owned())],
    };
    let import = Request {
        is_post: true,
        path: "/products/gift/import",
        query: "",
        form: vec![
            ("denomination".to_owned(), "25".to_owned()),
            ("file".to_owned(), "a.csv".to_owned()),
        ],
    };
    let fulfil = Request {
        is_post: true,
        path: "/orders/ord_1/fulfil",
        query: "",
        form: vec![("vouchers".to_owned(), "code\nSECRET-1".to_owned())],
    };
    let html = respond_session_ended(import).html;
    assert!(
        html.contains("enctype=\"multipart/form-data\"")
            && html.contains("type=\"file\"")
            && html.contains("value=\"25\""),
        "{html}"
    );
    let html = respond_session_ended(fulfil).html;
    assert!(html.contains("<textarea") && !html.contains("SECRET-1"), "{html}");
    let page = respond_session_ended(request);
    assert_eq!(page.status, 401);
    for text in [
        "action=\"/orders/ord_1/reject?a=b\"",
        "name=\"reason\" value=\"a &quot;b&quot;\n&lt;c&gt;\"",
        "href=\"/sign-in\"",
    ] {
        assert!(page.html.contains(text), "{text}: {}", page.html);
    }
}

#[test]
fn form_after_the_end_of_a_session_has_each_of_its_own_fields_once() {
    let fields = ["form_id", "name", "country", "a", "name", "before:name"];
    let request = Request {
        is_post: true,
        path: "/partners/create",
        query: "",
        form: fields
            .into_iter()
            .cycle()
            .take(60_000)
            .map(|name| (name.to_owned(), format!("of {name}")))
            .collect(),
    };
    let html = respond_session_ended(request).html;
    for (field, count) in [("form_id", 1), ("name", 1), ("a", 0)] {
        let found = html.matches(&format!("name=\"{field}\"")).count();
        assert_eq!(found, count, "{field}: {html}");
    }
    assert!(html.len() < 16 * 1024, "{} bytes", html.len());
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
        View::List(list) => of_columns(list.api.route.columns).collect(),
        View::Object(object) => object
            .sections
            .iter()
            .flat_map(|section| {
                let more = match section.source {
                    Source::Api { page, .. } | Source::Chart { page, .. } => vec![page],
                    Source::Links(links) => links.iter().map(|(_, page)| *page).collect(),
                    Source::Field(_) | Source::Live(_) => Vec::new(),
                };
                of_columns(section.columns).chain(more)
            })
            .chain(object.follow_up.map(|(_, _, page)| page))
            .collect(),
        View::BulkStart => Vec::new(),
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

#[tokio::test]
async fn resolution_of_another_operator_is_not_overwritten() {
    let form = "drift_id=drf_1&before:resolution=pending&resolution=escalated&before:reason=&reason=mine";
    let api = FixedApi::new(
        200,
        r#"{"data":[{"drift_id":"drf_1","resolution":"resolved","reason":"theirs"}]}"#,
    );
    let refused = send(&api, Role::Admin, true, "/drifts/resolve", form).await;
    assert_eq!(refused.status, 409);
    for text in ["is “resolved” now", "is “theirs” now", ">mine</textarea>"] {
        assert!(refused.html.contains(text), "{text}: {}", refused.html);
    }
    let api = FixedApi::new(200, r#"{"data":[]}"#);
    let gone = send(
        &api,
        Role::Admin,
        true,
        "/drifts/resolve?resolution=pending",
        form,
    )
    .await;
    assert_eq!(gone.status, 409);
    assert!(
        gone.html.contains("not in this list any more") && gone.html.contains(">mine</textarea>"),
        "{}",
        gone.html
    );
    assert!(api.changes.borrow().is_empty());
}

#[tokio::test]
async fn object_that_exists_is_not_created_again() {
    let api = FixedApi::new(200, r#"{"data":[]}"#);
    let form = "vendor_id=v&before:adapter=&adapter=mock";
    let refused = send(&api, Role::Admin, true, "/vendors/create", form).await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.html.contains("There is an object with this ID already"),
        "{}",
        refused.html
    );
    assert!(api.changes.borrow().is_empty());
}

#[tokio::test]
async fn form_whose_page_is_not_available_keeps_what_was_typed() {
    let api = FixedApi::new(
        503,
        r#"{"error":{"code":"SERVICE_UNAVAILABLE","message":"try again","trace_id":"4bf9"}}"#,
    );
    let body = "form_id=f1&reason=agreed+%3Cby%3E+telephone";
    let page = send(&api, Role::Admin, true, "/orders/ord_1/approve?x=1", body).await;
    assert_eq!(page.status, 503);
    for text in [
        "try again",
        r#"action="/orders/ord_1/approve?x=1""#,
        r#"name="reason" value="agreed &lt;by&gt; telephone""#,
    ] {
        assert!(page.html.contains(text), "{text}: {}", page.html);
    }
    let fulfilment = "vouchers=code%0ASECRET&product_id=p1";
    let page = send(&api, Role::Admin, true, "/orders/ord_1/fulfil", fulfilment).await;
    assert!(!page.html.contains("SECRET"), "{}", page.html);
    assert!(
        page.html.contains(r#"name="product_id" value="p1""#),
        "{}",
        page.html
    );
}
