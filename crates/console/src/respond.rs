//! Responses of the console: finds the page of a path, shows it, and carries out its forms.

use maud::{Markup, html};
use vouchsafe_domain::operator::Role;

use crate::api::{self, AdminApi, ApiRequest, Refusal};
use crate::field;
use crate::form::{self, FailedForm, Submission};
use crate::layout::{self, Viewer};
use crate::page::{Action, Outcome, Page};
use crate::pages::all_pages;
use crate::sent_forms::SentForms;
use crate::show::{Subject, read_subject, render_response, show};
use crate::template::{self, Params, matches, pairs};
use crate::visit::{DONE, REQUESTED, Shown, Visit, all_actions};

/// A request of a browser.
pub struct Request<'a> {
    pub is_post: bool,
    /// Encoded, as in the request line.
    pub path: &'a str,
    pub query: &'a str,
    /// The fields of a form.
    pub form: Form,
}

/// Names and values of a form.
pub type Form = Vec<(String, String)>;

/// The fields of an `application/x-www-form-urlencoded` body.
#[must_use]
pub fn parse_form(body: &[u8]) -> Form {
    pairs(body)
}

/// A page, or a redirect to one.
pub struct Response {
    pub status: u16,
    pub location: Option<String>,
    pub html: String,
}

/// An error that is not a response of the API.
pub struct Error<'a> {
    pub status: u16,
    pub message: &'a str,
    pub trace_id: &'a str,
}

/// The paths of pages and forms, with placeholders.
pub fn paths() -> impl Iterator<Item = String> {
    let pages = all_pages().map(|page| page.path.to_owned());
    pages.chain(forms().map(|(path, _)| path))
}

/// The paths of forms, with the role that a change needs.
pub fn forms() -> impl Iterator<Item = (String, Role)> {
    all_pages().flat_map(|page| {
        let path = page.path.trim_end_matches('/');
        let of_page = all_actions(page).into_iter();
        of_page.map(move |action| (format!("{path}/{}", action.slug), action.role()))
    })
}

/// What a path names.
struct Target {
    page: &'static Page,
    path: String,
    params: Params,
    action: Option<&'static Action>,
}

fn find(path: &str) -> Option<Target> {
    let of_form = all_pages().find_map(|page| {
        let (parent, slug) = path.rsplit_once('/')?;
        let parent = if parent.is_empty() { "/" } else { parent };
        let params = matches(page.path, parent)?;
        let action = all_actions(page).into_iter().find(|action| action.slug == slug)?;
        Some(Target {
            page,
            path: parent.to_owned(),
            params,
            action: Some(action),
        })
    });
    let of_page = || {
        all_pages().find_map(|page| {
            Some(Target {
                page,
                path: path.to_owned(),
                params: matches(page.path, path)?,
                action: None,
            })
        })
    };
    of_form.or_else(of_page)
}

/// Shows a page, or carries out a form.
pub async fn respond(
    api: &impl AdminApi,
    viewer: &Viewer,
    request: Request<'_>,
    sent_forms: &SentForms,
) -> Response {
    let Some(target) = find(request.path) else {
        let error = Error {
            status: 404,
            message: "The console has no page at this address.",
            trace_id: "",
        };
        return respond_error(Some(viewer), &error);
    };
    let visit = Visit::new(viewer, target.page, target.path, target.params, request.query);
    match (request.is_post, target.action) {
        (true, Some(action)) => {
            let submission = Submission { values: request.form };
            submit_once(api, visit, action, &submission, sent_forms).await
        }
        (false, None) => show_page(api, &visit).await,
        // A reload of the address of a form, or a form of another version of the page.
        _ => redirect(&visit, ""),
    }
}

/// A form whose sender is no longer signed in: it can be sent after the sign-in. Codes, secrets and files
/// must be entered again.
#[must_use]
pub fn respond_session_ended(request: Request<'_>) -> Response {
    let target = find(request.path).and_then(|target| Some((target.action?, target.params)));
    let submission = Submission { values: request.form };
    let query = if request.query.is_empty() {
        String::new()
    } else {
        format!("?{}", request.query)
    };
    let content = html! {
        h1 { "Your session has ended" }
        p { "Nothing was changed. Sign in in another window, then send the form from here: what you typed is kept in this page." }
        p { a.button href="/sign-in" target="_blank" { "Sign in" } }
        @if let Some((action, params)) = target {
            (form::render_resend(action, &params, &format!("{}{query}", request.path), &submission))
        }
    };
    page_response(401, vouchsafe_ui::render_bare("Session ended", &content))
}

/// An error as a page. Without a viewer it has no navigation.
#[must_use]
pub fn respond_error(viewer: Option<&Viewer>, error: &Error<'_>) -> Response {
    let title = match error.status {
        403 => "Not permitted",
        404 => "Not found",
        503 => "Not available now",
        _ => "Error",
    };
    let content = html! {
        h1 { (title) }
        p { (error.message) }
        @if error.status == 503 { p { "Nothing is lost: load the page again in a moment." } }
        @if !error.trace_id.is_empty() { p.hint { "Trace " (error.trace_id) } }
        p { a href="/" { "Overview" } }
    };
    let html = match viewer {
        Some(viewer) => layout::render(viewer, "", title, &content),
        None => vouchsafe_ui::render_bare(title, &content),
    };
    page_response(error.status, html)
}

/// The page of an error response of the API.
#[must_use]
pub fn respond_refusal(viewer: &Viewer, status: u16, body: &[u8]) -> Response {
    refusal_page(viewer, &Refusal::parse(status, body))
}

fn page_response(status: u16, html: Markup) -> Response {
    Response {
        status,
        location: None,
        html: html.into_string(),
    }
}

fn refusal_page(viewer: &Viewer, refusal: &Refusal) -> Response {
    let error = Error {
        status: refusal.status,
        message: &refusal.message,
        trace_id: &refusal.trace_id,
    };
    respond_error(Some(viewer), &error)
}

fn redirect_to(location: String) -> Response {
    Response {
        status: 303,
        location: Some(location),
        html: String::new(),
    }
}

/// Redirects to the page of a form, with the slug of the change that was made.
fn redirect(visit: &Visit<'_>, done: &str) -> Response {
    let mut query = pairs(visit.query_without(&[DONE]).as_bytes());
    if !done.is_empty() {
        query.push((DONE.to_owned(), done.to_owned()));
    }
    let separator = if query.is_empty() { "" } else { "?" };
    redirect_to(format!("{}{separator}{}", visit.path, template::query(&query)))
}

async fn show_page(api: &impl AdminApi, visit: &Visit<'_>) -> Response {
    match show(api, visit).await {
        Ok(Shown {
            only_result: Some(location),
            ..
        }) => redirect_to(location),
        Ok(shown) => shown_page(visit, 200, &shown),
        Err(refusal) => refusal_page(visit.viewer, &refusal),
    }
}

fn shown_page(visit: &Visit<'_>, status: u16, shown: &Shown) -> Response {
    let html = layout::render(visit.viewer, &visit.path, &shown.title, &shown.content);
    page_response(status, html)
}

/// Carries out a form unless it was sent before.
async fn submit_once(
    api: &impl AdminApi,
    visit: Visit<'_>,
    action: &'static Action,
    submission: &Submission,
    sent_forms: &SentForms,
) -> Response {
    let Some(form_id) = submission.form_id() else {
        return submit(api, visit, action, submission).await;
    };
    if !sent_forms.begin(form_id) {
        let refusal = Refusal::local(
            "This form was sent before, and was not sent again. Look below whether the change was made. \
             Send the form once more only to make another change.",
            Vec::new(),
        );
        return show_refused(api, visit, action, submission, &refusal).await;
    }
    let response = submit(api, visit, action, submission).await;
    if response.status >= 400 {
        sent_forms.forget(form_id);
    }
    response
}

async fn submit(
    api: &impl AdminApi,
    visit: Visit<'_>,
    action: &'static Action,
    submission: &Submission,
) -> Response {
    let request: ApiRequest = form::request(action, &visit.params, submission);
    // An operator without the role gets the error of the API.
    let refusal = if visit.viewer.role < action.role() {
        None
    } else if let Some(label) = form::missing_file(action, submission) {
        Some(Refusal {
            status: 422,
            ..Refusal::local("Choose a file.", vec![(label, "is missing".to_owned())])
        })
    } else {
        let rejected = form::rejected_lines(action, submission);
        if rejected.is_empty() {
            find_conflict(api, &visit, action, submission).await
        } else {
            Some(Refusal {
                status: 422,
                ..Refusal::local("These lines do not parse. Nothing was changed.", rejected)
            })
        }
    };
    let result = match refusal {
        Some(refusal) => Err(refusal),
        None => api::call(api, request).await,
    };
    let refusal = match result {
        Ok(success) if success.status == 202 && success.json.get("request_id").text().is_some() => {
            let request_id = success.json.get("request_id").text().unwrap_or_default();
            return redirect_to(format!(
                "/requests/{}?{DONE}={REQUESTED}",
                template::encode(request_id)
            ));
        }
        Ok(success) => {
            return match action.outcome {
                Outcome::Message(_) => redirect(&visit, action.slug),
                Outcome::Page(page) => {
                    let field = |name: &str| success.json.get(name).text().map(ToOwned::to_owned);
                    redirect_to(template::fill(page, field))
                }
                Outcome::Response(heading) => {
                    let content = render_response(heading, &success.json, &visit.path);
                    page_response(200, layout::render(visit.viewer, &visit.path, heading, &content))
                }
            };
        }
        Err(refusal) => refusal,
    };
    show_refused(api, visit, action, submission, &refusal).await
}

/// The page with the form as it was sent, and why it was refused.
async fn show_refused(
    api: &impl AdminApi,
    visit: Visit<'_>,
    action: &'static Action,
    submission: &Submission,
    refusal: &Refusal,
) -> Response {
    let failed = FailedForm {
        slug: action.slug,
        submission,
        refusal,
    };
    let visit = Visit {
        failed: Some(&failed),
        ..visit
    };
    match show(api, &visit).await {
        Ok(shown) => shown_page(&visit, refusal.status, &shown),
        // The object does not exist, or the API is not available.
        Err(_) => {
            let content = html! {
                h1 { "Not sent" }
                (form::render_refusal(refusal))
                p { "What you typed is kept in this page." }
                (form::render_resend(action, &visit.params, &visit.form_address(action), submission))
                p { a href=(visit.path) { "Back to the page" } }
            };
            page_response(
                refusal.status,
                layout::render(visit.viewer, &visit.path, "Not sent", &content),
            )
        }
    }
}

/// A refusal if the form would undo a change since it was shown, or replace an object that it creates.
async fn find_conflict(
    api: &impl AdminApi,
    visit: &Visit<'_>,
    action: &Action,
    submission: &Submission,
) -> Option<Refusal> {
    if !field::fields(action).iter().any(|field| field.is_prefilled) {
        return None;
    }
    // Without the object the change itself says what is wrong.
    let object = match read_subject(api, visit, action, submission).await {
        Subject::Existing(object) => object,
        Subject::None => return None,
        Subject::Gone => {
            return Some(Refusal::local(
                "The entry is not in this list any more: another operator has changed it, or newer entries \
                 have moved it to another page. Nothing was changed. Look at it without the filter first.",
                Vec::new(),
            ));
        }
        Subject::Replaced => {
            return Some(Refusal::local(
                "There is an object with this ID already, which the form would replace. Change it on its \
                 own page, or choose another ID.",
                Vec::new(),
            ));
        }
    };
    let conflicts = form::conflicts(action, submission, &object);
    if conflicts.is_empty() {
        return None;
    }
    let details = conflicts.into_iter().map(|(label, now)| {
        let now = if now.is_empty() {
            "empty".to_owned()
        } else {
            format!("“{now}”")
        };
        (label, format!("is {now} now"))
    });
    Some(Refusal::local(
        "Another operator has changed this since you opened the page. Nothing was changed. Check the \
         values and send the form again.",
        details.collect(),
    ))
}

#[cfg(test)]
mod tests;
