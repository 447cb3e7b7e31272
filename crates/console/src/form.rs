//! Forms: the inputs of a change, and the request of the operator API that a submitted form makes.

use maud::{Markup, html};

use crate::api::{ApiBody, ApiRequest, Refusal};
use crate::input_value::{parse, text_of};
use crate::json::Json;
use crate::page::{Action, Input, InputKind};
use crate::template::{self, Params};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operation::Method;

/// A submitted form.
pub(crate) struct Submission {
    pub(crate) values: Vec<(String, String)>,
}

/// A form that the API refused: it is shown again with everything that was typed, except codes and secrets.
pub(crate) struct FailedForm<'a> {
    pub(crate) slug: &'static str,
    pub(crate) submission: &'a Submission,
    pub(crate) refusal: &'a Refusal,
}

/// Field with the id of this rendering of the form.
const FORM_ID: &str = "form_id";

/// Bytes; longer than any id of a page.
const MAX_FORM_ID: usize = 200;

/// Prefix of the fields with the values that a form began with.
const BEFORE: &str = "before:";

impl Submission {
    pub(crate) fn get(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    fn find(&self, name: &str) -> Option<&str> {
        self.find_untrimmed(name).map(str::trim)
    }

    fn find_untrimmed(&self, name: &str) -> Option<&str> {
        let found = self.values.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// `None`: a program sent the form.
    pub(crate) fn form_id(&self) -> Option<&str> {
        self.find(FORM_ID).filter(|id| id.len() <= MAX_FORM_ID)
    }

    /// Whether the operator changed the value that the form began with.
    fn is_changed(&self, input: &Input) -> bool {
        let before = self.find(&format!("{BEFORE}{}", input.name));
        before.is_none_or(|before| !is_same_text(before, self.get(input.name)))
    }
}

/// Browsers send lines with carriage returns.
fn is_same_text(left: &str, right: &str) -> bool {
    left.trim().replace("\r\n", "\n") == right.trim().replace("\r\n", "\n")
}

/// The inputs whose value another operator has changed since the form was shown, and that the form would change back; each with the
/// value of now.
pub(crate) fn conflicts(
    action: &Action,
    submission: &Submission,
    object: &Json,
) -> Vec<(&'static str, String)> {
    let prefilled = action.inputs.iter().filter(|input| input.is_prefilled);
    prefilled
        .filter_map(|input| {
            let before = submission.find(&format!("{BEFORE}{}", input.name))?;
            let now = text_of(input, object.get(input.name));
            let is_sent = matches!(action.method(), Method::Put) || submission.is_changed(input);
            let is_conflict =
                is_sent && !is_same_text(before, &now) && !is_same_text(submission.get(input.name), &now);
            is_conflict.then_some((input.label, now))
        })
        .collect()
}

/// Placeholders that neither the page nor an input fills: hidden inputs carry them from the row or object.
pub(crate) fn carried(action: &Action, params: &Params) -> impl Iterator<Item = &'static str> {
    let is_known = move |name: &str| {
        template::find(params, name).is_some() || action.inputs.iter().any(|input| input.name == name)
    };
    action.api.placeholders().filter(move |name| !is_known(name))
}

/// The request that a form makes.
pub(crate) fn request(action: &Action, params: &Params, submission: &Submission) -> ApiRequest {
    let value = |name: &str| {
        let of_page = template::find(params, name).map(ToOwned::to_owned);
        Some(of_page.unwrap_or_else(|| submission.get(name).to_owned()))
    };
    let is_in_path = |name: &str| action.api.placeholders().any(|known| known == name);
    let mut body = Json::Null;
    for (name, json) in action.fixed {
        body.set(name, Json::parse(json.as_bytes()));
    }
    let mut file = None;
    // A change of some fields leaves the others as they are, also if another operator has changed them meanwhile.
    let is_sent = |input: &&Input| {
        !is_in_path(input.name)
            && (!matches!(action.method(), Method::Patch)
                || !input.is_prefilled
                || submission.is_changed(input))
    };
    for input in action.inputs.iter().filter(is_sent) {
        match input.kind {
            InputKind::Param => {
                let value = template::find(params, input.name).unwrap_or_default();
                body.set(input.name, Json::Text(value.to_owned()));
            }
            InputKind::File(_) => {
                let name = submission.get(input.name).to_ascii_lowercase();
                let is_ndjson = [".ndjson", ".jsonl"].iter().any(|end| name.ends_with(end));
                file = Some(if is_ndjson {
                    "application/x-ndjson"
                } else {
                    "text/csv"
                });
            }
            _ => {
                if let Some(value) = parse(input, submission.get(input.name)) {
                    body.set(input.name, value);
                }
            }
        }
    }
    let has_body = body != Json::Null || matches!(action.method(), Method::Patch);
    let body = if body == Json::Null {
        Json::Object(Vec::new())
    } else {
        body
    };
    let body = match file {
        Some(content_type) => Some(ApiBody::File { content_type }),
        None => has_body.then(|| ApiBody::Json(body.to_string())),
    };
    ApiRequest {
        method: action.method(),
        target: action.api.fill(value),
        body,
    }
}

/// What a form needs to render.
pub(crate) struct FormContext<'a> {
    /// Address of the page, and its query.
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) params: &'a Params,
    pub(crate) failed: Option<&'a FailedForm<'a>>,
    /// A new one for each rendering of the page.
    pub(crate) page_id: &'a str,
}

impl<'a> FormContext<'a> {
    /// The failed form, if it is that of this action and row.
    pub(crate) fn failed_form(&self, action: &Action, row: &Json) -> Option<&'a FailedForm<'a>> {
        let is_of_row = |failed: &&FailedForm<'_>| {
            carried(action, self.params).all(|name| row.get(name).text() == Some(failed.submission.get(name)))
        };
        self.failed
            .filter(|failed| failed.slug == action.slug)
            .filter(is_of_row)
    }
}

/// Address of a form of a page, with the query of the page.
pub(crate) fn address(path: &str, query: &str, action: &Action) -> String {
    let separator = if query.is_empty() { "" } else { "?" };
    format!("{}/{}{separator}{query}", path.trim_end_matches('/'), action.slug)
}

/// A form behind its label. `row` is the object or entry, `id` tells the forms of a page apart.
pub(crate) fn render(context: &FormContext<'_>, action: &Action, row: &Json, id: &str) -> Markup {
    let failed = context.failed_form(action, row);
    let id = format!("{id}-{}", action.slug);
    let address = address(context.path, context.query, action);
    let encoding = encoding(action);
    let has_file = encoding.is_some();
    html! {
        details.action open[failed.is_some()] {
            summary { (action.label) }
            // A file is sent by the script, which shows its progress; without script the browser sends it.
            form method="post" action=(address)
                enctype=[encoding] hx-boost=[has_file.then_some("true")]
                hx-push-url=[has_file.then_some("false")] {
                input type="hidden" name=(FORM_ID) value={ (context.page_id) "-" (id) };
                @if !action.note.is_empty() { p.hint { (action.note) } }
                @for name in carried(action, context.params) {
                    input type="hidden" name=(name) value=[row.get(name).text()];
                }
                @let shown = action.inputs.iter().filter(|input| !matches!(input.kind, InputKind::Param));
                @for input in shown { (render_input(input, failed, row, &id)) }
                button.primary type="submit" { (action.label) }
                @if has_file { progress hidden max="100" value="0" aria-label="Sent" {} }
            }
        }
    }
}

/// A form with what was typed before, hidden. Codes, secrets and files must be entered again. Whatever was
/// sent, the form has each of its own fields once.
pub(crate) fn render_resend(
    action: &Action,
    params: &Params,
    address: &str,
    submission: &Submission,
) -> Markup {
    let (secrets, typed): (Vec<&Input>, Vec<&Input>) =
        action.inputs.iter().partition(|input| input.kind.is_secret());
    let typed = typed
        .into_iter()
        .filter(|input| !matches!(input.kind, InputKind::Param));
    let typed = typed.flat_map(|input| {
        let before = input.is_prefilled.then(|| format!("{BEFORE}{}", input.name));
        before.into_iter().chain([input.name.to_owned()])
    });
    let hidden = [FORM_ID].into_iter().chain(carried(action, params));
    let names = hidden.map(str::to_owned).chain(typed);
    let shown = names.filter_map(|name| submission.find_untrimmed(&name).map(|value| (value, name)));
    html! {
        form.sign-in method="post" action=(address) enctype=[encoding(action)] {
            @for (value, name) in shown { input type="hidden" name=(name) value=(value); }
            @for input in secrets { (render_input(input, None, &Json::Null, "again")) }
            button type="submit" { (action.label) }
        }
    }
}

/// How a form with these inputs is encoded; `None`: as usual.
fn encoding(action: &Action) -> Option<&'static str> {
    let is_file = |input: &Input| matches!(input.kind, InputKind::File(_));
    action.inputs.iter().any(is_file).then_some("multipart/form-data")
}

/// The label of the file that a form lacks.
pub(crate) fn missing_file(action: &Action, submission: &Submission) -> Option<&'static str> {
    let is_missing =
        |input: &&Input| matches!(input.kind, InputKind::File(_)) && submission.get(input.name).is_empty();
    action.inputs.iter().find(is_missing).map(|input| input.label)
}

fn render_input(input: &Input, failed: Option<&FailedForm<'_>>, row: &Json, id: &str) -> Markup {
    let id = format!("{id}-{}", input.name.replace('.', "-"));
    let before = input.is_prefilled.then(|| text_of(input, row.get(input.name)));
    let value = match failed {
        Some(_) if input.kind.is_secret() => String::new(),
        // Another operator may have changed what this one left alone.
        Some(failed) if input.is_prefilled && !failed.submission.is_changed(input) => {
            before.clone().unwrap_or_default()
        }
        Some(failed) => failed.submission.get(input.name).to_owned(),
        None => before.clone().unwrap_or_default(),
    };
    let errors: Vec<_> = failed
        .map(|failed| errors_of(failed.refusal, input.name))
        .unwrap_or_default();
    let [hint_id, error_id] = ["hint", "error"].map(|part| format!("{id}-{part}"));
    let described = [
        (!input.hint.is_empty()).then_some(hint_id.as_str()),
        (!errors.is_empty()).then_some(error_id.as_str()),
    ];
    let described: Vec<_> = described.into_iter().flatten().collect();
    let described = (!described.is_empty()).then(|| described.join(" "));
    let invalid = (!errors.is_empty()).then_some("true");
    let required = input.is_required && !matches!(input.kind, InputKind::Lines);
    html! {
        div.field {
            @if let Some(before) = &before { input type="hidden" name={ (BEFORE) (input.name) } value=(before); }
            @if let InputKind::Flag = input.kind {
                label.flag {
                    input id=(id) type="checkbox" name=(input.name) value="on" checked[!value.is_empty()] aria-describedby=[described];
                    (input.label)
                }
            } @else {
                label for=(id) { (input.label) @if !input.is_required { span.hint { " (optional)" } } }
                @match input.kind {
                    InputKind::Choice(choices) => {
                        select id=(id) name=(input.name) aria-describedby=[described] aria-invalid=[invalid] {
                            @for choice in choices() { option selected[choice == value] { (choice) } }
                        }
                    }
                    InputKind::Paragraph | InputKind::Lines | InputKind::Json | InputKind::Rows => {
                        textarea id=(id) name=(input.name) rows="3" required[required] autocomplete="off" spellcheck="false"
                            aria-describedby=[described] aria-invalid=[invalid] { (value) }
                    }
                    InputKind::File(endings) => {
                        input id=(id) type="file" name=(input.name) accept=(endings) required[required]
                            aria-describedby=[described] aria-invalid=[invalid];
                    }
                    _ => {
                        input id=(id) type=(if matches!(input.kind, InputKind::Secret) { "password" } else { "text" })
                            inputmode=[matches!(input.kind, InputKind::Number).then_some("numeric")] name=(input.name) value=(value)
                            required[required] autocomplete="off" spellcheck="false" aria-describedby=[described] aria-invalid=[invalid];
                    }
                }
            }
            @if !input.hint.is_empty() { p.hint id=(hint_id) { (input.hint) } }
            @if !errors.is_empty() {
                p.error id=(error_id) { (errors.join("; ")) @if input.kind.is_secret() { "; enter it again" } }
            }
        }
    }
}

/// The messages about a field, its parts or its entries.
fn errors_of<'a>(refusal: &'a Refusal, name: &str) -> Vec<&'a str> {
    let is_about = |field: &str| {
        field
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let details = refusal.details.iter().filter(|(field, _)| is_about(field));
    details.map(|(_, message)| message.as_str()).collect()
}

/// The refusal above a page whose form it belongs to.
pub(crate) fn render_refusal(refusal: &Refusal) -> Markup {
    html! {
        div.alert role="alert" {
            p { strong { (refusal.message) } }
            @if !refusal.details.is_empty() {
                ul { @for (field, message) in &refusal.details { li { code { (field) } ": " (message) } } }
            }
            @if refusal.code == Code::StepUpRequired.as_str() {
                p { "Nothing was changed. Sign in in another window, then send the form from here: what you typed is kept in this page." }
                p { a.button href="/sign-in/oidc?step_up=true&next=/account" target="_blank" { "Sign in again" } }
            }
            p.hint { (refusal.code) " · trace " (refusal.trace_id) }
        }
    }
}

#[cfg(test)]
mod tests;
