//! The operators' console: pages as a browser gets them, and their forms.

mod api_uses;
mod decisions;
mod drifts;
mod form_rules;
mod live;
mod partners;
mod supply;

use hyper::Method;
use hyper::header::HeaderMap;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_domain::operator::Role;
use vouchsafe_test_harness::{Instance, Operator, expect_error, shared, text_of, unique};

use crate::operator_accounts::add_operator;

/// A browser without script, signed in by its header.
pub(crate) struct Browser {
    operator: Operator,
}

impl Browser {
    pub(crate) fn of(service: &Instance) -> Self {
        let operator = Operator::repeating(service, std::time::Duration::ZERO);
        Self { operator }
    }

    pub(crate) fn with_token(self, token: &str) -> Self {
        Self {
            operator: self.operator.with_token(token),
        }
    }

    pub(crate) async fn open(&mut self, path: &str) -> ApiResponse {
        self.operator.call(Method::GET, path, "text/html", "").await
    }

    /// Returns the page, which must be found.
    pub(crate) async fn read(&mut self, path: &str) -> String {
        let response = self.open(path).await;
        assert_eq!(response.status, 200, "{path}: {}", text_of(&response));
        text_of(&response).to_owned()
    }

    pub(crate) async fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> ApiResponse {
        let pairs: Vec<_> = fields
            .iter()
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect();
        let form = "application/x-www-form-urlencoded";
        self.operator
            .call(Method::POST, path, form, pairs.join("&"))
            .await
    }

    /// Submits a form with a file, as browsers do.
    pub(crate) async fn submit_file(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        file: (&str, &str),
    ) -> ApiResponse {
        const BOUNDARY: &str = "----boundary7";
        let mut body = String::new();
        for (name, value) in fields {
            body += &format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
        }
        let (name, content) = file;
        body += &format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: text/csv\r\n\r\n\
             {content}\r\n--{BOUNDARY}--\r\n"
        );
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        self.operator.call(Method::POST, path, &content_type, body).await
    }

    /// Submits a form that succeeds, and returns the page to which it leads.
    pub(crate) async fn submit_and_follow(&mut self, path: &str, fields: &[(&str, &str)]) -> String {
        let response = self.submit(path, fields).await;
        assert_eq!(response.status, 303, "{path}: {}", text_of(&response));
        let location = response.header("location").unwrap().to_owned();
        self.read(&location).await
    }
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The addresses of the forms of a page.
pub(crate) fn forms(page: &str) -> Vec<&str> {
    let after = page.split("<form method=\"post\" action=\"").skip(1);
    after.filter_map(|rest| rest.split('"').next()).collect()
}

#[tokio::test]
async fn overview_shows_environment_operator_and_queues() {
    let mut browser = Browser::of(shared());
    let response = browser.open("/").await;
    let page = text_of(&response);
    for expected in [
        "<title>Overview node-",
        "<span class=\"environment sandbox\">sandbox</span>",
        "admin · admin",
        "Orders that wait for approval",
        "Requests for a second operator",
        "href=\"/\" aria-current=\"page\"><svg",
        "<a class=\"skip\" href=\"#content\">",
    ] {
        assert!(page.contains(expected), "{expected} is not in {page}");
    }
    assert!(!page.contains(" style=") && !page.contains(" onclick="), "{page}");
    // One of all pages, and one of those with charts.
    for (page, scripts) in [(&page, 2), (&text_of(&browser.open("/orders").await), 1)] {
        assert_eq!(page.matches("<script").count(), scripts, "{page}");
        assert_eq!(page.matches(" src=\"/assets/console-").count(), scripts, "{page}");
    }
    for (name, value) in vouchsafe_ui::PAGE_HEADERS {
        assert_eq!(response.header(name), Some(value));
    }
    for (link, content_type) in [
        ("href=\"/assets/", "text/css; charset=utf-8"),
        ("src=\"/assets/", "text/javascript; charset=utf-8"),
    ] {
        let file = page.split(link).nth(1).unwrap();
        let file = format!("/assets/{}", file.split('"').next().unwrap());
        let asset = browser.operator.call_without_token(Method::GET, &file, &[]).await;
        assert_eq!(asset.status, 200);
        assert_eq!(asset.header("content-type"), Some(content_type));
        assert_eq!(
            asset.header("cache-control"),
            Some("public, max-age=31536000, immutable")
        );
    }
    assert_eq!(browser.open("/assets/console-0.css").await.status, 404);
}

/// The paths come from the declarations of the pages, so a new form is tested too.
#[tokio::test]
async fn every_page_and_form_rejects_lower_roles_and_strangers() {
    let mut admin = Operator::of(shared());
    let mut partner = admin.add_partner("0").await;
    let mut browsers = Vec::new();
    for role in [Role::Viewer, Role::Operator, Role::Admin] {
        let (_, issued) = add_operator(&mut admin, role.into_str()).await;
        let token = issued["token"].as_str().unwrap();
        browsers.push((role, Browser::of(shared()).with_token(token)));
    }
    let mut rejected = 0;
    let forms: Vec<_> = vouchsafe_console::forms().collect();
    for path in vouchsafe_console::paths() {
        let address = path.replace(['{', '}'], "x");
        let of_page = [("accept", "text/html"), ("sec-fetch-site", "same-origin")];
        for (method, headers) in [
            (Method::GET, &[][..]),
            (Method::POST, &[]),
            (Method::POST, &of_page),
        ] {
            let stranger = &mut browsers[0].1.operator;
            let response = stranger
                .call_without_token(method.clone(), &address, headers)
                .await;
            assert_eq!(response.status, 401, "{method} {path}");
        }
        if path != "/" {
            let other = partner
                .client
                .send_raw(Method::GET, &address, HeaderMap::new(), "");
            expect_error(&other.await.unwrap(), 404, "ROUTE_NOT_FOUND");
        }
        let needed = forms
            .iter()
            .find(|(form, _)| *form == path)
            .map(|(_, role)| *role);
        for (role, browser) in &mut browsers {
            let status = match needed {
                Some(_) => browser.submit(&address, &[]).await.status.as_u16(),
                None => browser.open(&address).await.status.as_u16(),
            };
            let is_permitted = needed.is_none_or(|needed| *role >= needed);
            assert_eq!(status == 403, !is_permitted, "{role:?} {path}: {status}");
            assert!(status < 500 && status != 401, "{role:?} {path}: {status}");
            rejected += usize::from(!is_permitted);
        }
    }
    assert!(rejected > 40, "{rejected}");
}

#[tokio::test]
async fn unknown_object_address_or_filter_is_a_page() {
    let mut browser = Browser::of(shared());
    let unknown = format!("/orders/ord_{}", "0".repeat(32));
    for (path, status, text) in [
        (unknown.as_str(), 404, "no such order"),
        ("/partners/x%2F..%2Fy", 404, "no such partner"),
        ("/orders?status=SOLD", 200, "expected one of"),
        ("/orders?cursor=AAAA", 200, "INVALID_CURSOR"),
    ] {
        let response = browser.open(path).await;
        assert_eq!(response.status, status, "{path}");
        let page = text_of(&response);
        assert!(page.contains(text) && page.contains("<nav"), "{path}: {page}");
    }
    let headers = [("accept", "text/html,*/*;q=0.8")];
    let nowhere = browser
        .operator
        .call_without_token(Method::GET, "/nowhere", &headers)
        .await;
    assert_eq!(nowhere.status, 404);
    assert!(text_of(&nowhere).contains("There is no page at this address."));
    let client = browser
        .operator
        .call_without_token(Method::GET, "/nowhere", &[])
        .await;
    assert!(text_of(&client).contains("ROUTE_NOT_FOUND"));
}

#[tokio::test]
async fn page_offers_what_the_role_permits_and_the_api_enforces_it() {
    let mut admin = Operator::of(shared());
    let partner = admin.add_partner("1").await;
    let page = format!("/partners/{}", partner.partner_id);
    for (role, offered) in [("viewer", 0), ("operator", 1), ("admin", 13)] {
        let (name, issued) = add_operator(&mut admin, role).await;
        let mut browser = Browser::of(shared()).with_token(issued["token"].as_str().unwrap());
        let html = browser.read(&page).await;
        assert!(html.contains(&format!("{name} · {role}")), "{html}");
        let own = format!("{page}/");
        let found = forms(&html).into_iter().filter(|form| form.starts_with(&own));
        // Those of its credentials are not counted.
        let found: Vec<_> = found
            .filter(|form| !form.ends_with("/revoke") && !form.ends_with("/rotate"))
            .collect();
        assert_eq!(found.len(), offered, "{role}: {found:?}");
        let fields = [
            ("currency", "USD"),
            ("amount", "1.00"),
            ("reference", &unique("ref")),
        ];
        let response = browser.submit(&format!("{page}/top-up"), &fields).await;
        if role == "admin" {
            assert_eq!(response.status, 303);
        } else {
            assert_eq!(response.status, 403);
            assert!(text_of(&response).contains("this requires the role admin"));
        }
    }
}

#[tokio::test]
async fn text_of_a_partner_is_shown_escaped() {
    let mut admin = Operator::of(shared());
    let mut partner = admin.add_partner("100").await;
    let sale = admin.add_stocked_product(1).await;
    let mut body = vouchsafe_test_harness::order_body(&sale, 1);
    // A reference is an identifier, which has no such character; other texts may.
    body["metadata"] = json!({ "note": "<b>\u{202e}gro" });
    let response = partner.send(&unique("key"), &body).await;
    let order: Value = serde_json::from_slice(&response.body).unwrap();
    let path = format!("/orders/{}", order["order_id"].as_str().unwrap());
    let page = Browser::of(shared()).read(&path).await;
    let shown = "&lt;b&gt;<span class=\"escape\">\\u{202e}</span>gro";
    assert!(page.contains(shown), "{page}");
    assert!(!page.contains('\u{202e}'));
}
