//! Forms: the inputs of a change, and the request of the operator API that a submitted form makes.

mod field_markup;

use maud::{Markup, html};

use self::field_markup::render_field;
use crate::action::Action;
use crate::api::{ApiBody, ApiRequest, Refusal};
use crate::field::{Field, FieldKind, fields};
use crate::input_value::{group, parse, rejected_rows, text_of};
use crate::json::Json;
use crate::template::{self, Params};
use vouchsafe_ui::visible;
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
        let found = self.values.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.trim())
    }

    /// `None`: a program sent the form.
    pub(crate) fn form_id(&self) -> Option<&str> {
        self.find(FORM_ID).filter(|id| id.len() <= MAX_FORM_ID)
    }

    /// What was typed into a field: of a group its JSON.
    fn typed(&self, field: &Field) -> String {
        match &field.kind {
            FieldKind::Group(_) => self.value(field).unwrap_or(Json::Null).to_string(),
            FieldKind::Choices(_) => {
                let chosen = self.values.iter().filter(|(name, _)| *name == field.name);
                chosen
                    .map(|(_, value)| value.trim())
                    .collect::<Vec<_>>()
                    .join("\n")
            }
            _ => self.get(&field.name).to_owned(),
        }
    }

    /// The JSON of a field; `None` if it is omitted.
    fn value(&self, field: &Field) -> Option<Json> {
        match &field.kind {
            FieldKind::Group(parts) => {
                let is_set = !field.is_nullable || !self.get(&field.name).is_empty();
                Some(group(is_set, parts, |part| self.value(part)))
            }
            _ => parse(field, &self.typed(field)),
        }
    }

    /// Whether the operator changed the value that the form began with.
    fn is_changed(&self, field: &Field) -> bool {
        let before = self.find(&format!("{BEFORE}{}", field.name));
        before.is_none_or(|before| !is_same_text(before, &self.typed(field)))
    }
}

/// Browsers send lines with carriage returns.
fn is_same_text(left: &str, right: &str) -> bool {
    left.trim().replace("\r\n", "\n") == right.trim().replace("\r\n", "\n")
}

/// The fields whose value another operator has changed since the form was shown, and that the form would
/// change back; each with the value of now.
pub(crate) fn conflicts(action: &Action, submission: &Submission, object: &Json) -> Vec<(String, String)> {
    let prefilled = fields(action).into_iter().filter(|field| field.is_prefilled);
    prefilled
        .filter_map(|field| {
            let before = submission.find(&format!("{BEFORE}{}", field.name))?;
            let now = text_of(&field, object.get(&field.name));
            let is_sent = matches!(action.method(), Method::Put) || submission.is_changed(&field);
            let is_conflict =
                is_sent && !is_same_text(before, &now) && !is_same_text(&submission.typed(&field), &now);
            is_conflict.then(|| (field.label.into_owned(), now))
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
    // A change of some fields leaves the others as they are, also if another operator has changed them
    // meanwhile.
    let is_sent = |field: &Field| {
        !is_in_path(&field.name)
            && (!matches!(action.method(), Method::Patch)
                || !field.is_prefilled
                || submission.is_changed(field))
    };
    for field in fields(action).iter().filter(|field| is_sent(field)) {
        match field.kind {
            FieldKind::PageParameter => {
                let value = template::find(params, &field.name).unwrap_or_default();
                body.set(&field.name, Json::Text(value.to_owned()));
            }
            FieldKind::File(_) => {
                let name = submission.get(&field.name).to_ascii_lowercase();
                let is_ndjson = [".ndjson", ".jsonl"].iter().any(|end| name.ends_with(end));
                file = Some(if is_ndjson {
                    "application/x-ndjson"
                } else {
                    "text/csv"
                });
            }
            _ => {
                let is_fixed = action.fixed.iter().any(|(name, _)| *name == field.name);
                let value = submission.value(field);
                // An empty input keeps the value that the form sends anyway.
                if let Some(value) = value.filter(|value| !is_fixed || *value != Json::Null) {
                    body.set(&field.name, value);
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
    let fields = fields(action);
    let encoding = encoding(&fields);
    let has_file = encoding.is_some();
    html! {
        details.action open[action.is_open || failed.is_some()] {
            summary.dangerous[action.is_dangerous] { (action.label) }
            // A file is sent by the script, which shows its progress; without script the browser sends it.
            form method="post" action=(address)
                enctype=[encoding] hx-boost=[has_file.then_some("true")]
                hx-push-url=[has_file.then_some("false")] {
                input type="hidden" name=(FORM_ID) value={ (context.page_id) "-" (id) };
                @for name in carried(action, context.params) {
                    input type="hidden" name=(name) value=[row.get(name).text()];
                    // A dialog hides the row that it is about.
                    @if let Some(id) = row.get(name).text() { p { code { (visible(id)) } } }
                }
                @if !action.note.is_empty() { p.hint { (action.note) } }
                @for field in fields { (render_field(&field, failed, row.get(&field.name), &id, true)) }
                button.primary.dangerous[action.is_dangerous] type="submit" { (action.label) }
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
    let fields = fields(action);
    let (secrets, typed): (Vec<&Field>, Vec<&Field>) =
        fields.iter().partition(|field| field.kind.is_secret());
    // Each once, but for the choices of a field.
    let typed = typed.into_iter().flat_map(|field| {
        let before = field.is_prefilled.then(|| (format!("{BEFORE}{}", field.name), 1));
        let parts = field.with_parts().into_iter().map(|part| match &part.kind {
            FieldKind::Choices(choices) => (part.name.to_string(), choices.len()),
            _ => (part.name.to_string(), 1),
        });
        before.into_iter().chain(parts)
    });
    let hidden = [FORM_ID].into_iter().chain(carried(action, params));
    let names = hidden.map(|name| (name.to_owned(), 1)).chain(typed);
    let shown = names.flat_map(|(name, most)| {
        let sent = submission.values.iter().filter(move |(known, _)| *known == name);
        sent.take(most)
    });
    html! {
        form.sign-in method="post" action=(address) enctype=[encoding(&fields)] {
            @for (name, value) in shown { input type="hidden" name=(name) value=(value); }
            @for field in secrets { (render_field(field, None, &Json::Null, "again", true)) }
            button type="submit" { (action.label) }
        }
    }
}

/// How a form with these fields is encoded; `None`: as usual.
fn encoding(fields: &[Field]) -> Option<&'static str> {
    let is_file = |field: &Field| matches!(field.kind, FieldKind::File(_));
    fields.iter().any(is_file).then_some("multipart/form-data")
}

/// The label of the file that a form lacks.
pub(crate) fn missing_file(action: &Action, submission: &Submission) -> Option<String> {
    let is_missing =
        |field: &Field| matches!(field.kind, FieldKind::File(_)) && submission.get(&field.name).is_empty();
    fields(action)
        .into_iter()
        .find(is_missing)
        .map(|field| field.label.into_owned())
}

/// Rejected lines in a refusal: enough to recognise the mistake.
const MAX_REJECTED: usize = 20;

/// The lines of the form's lists that do not parse, each with the name of its field.
pub(crate) fn rejected_lines(action: &Action, submission: &Submission) -> Vec<(String, String)> {
    let lists = fields(action)
        .into_iter()
        .filter(|field| matches!(field.kind, FieldKind::Rows));
    let mut rejected = Vec::new();
    for field in lists {
        let lines = match submission.get(&field.name) {
            "" => Vec::new(),
            text => rejected_rows(text),
        };
        let more = lines.len().saturating_sub(MAX_REJECTED);
        let more = (more > 0).then(|| format!("{more} more lines"));
        let shown = lines.into_iter().take(MAX_REJECTED).chain(more);
        rejected.extend(shown.map(|line| (field.name.to_string(), line)));
    }
    rejected
}

/// `codes[0]` of the API as `codes, number 1`.
fn counted_from_one(field: &str) -> String {
    let number = field.split_once('[').and_then(|(list, rest)| {
        let (index, rest) = rest.split_once(']')?;
        Some(format!("{list}, number {}{rest}", index.parse::<u32>().ok()? + 1))
    });
    number.unwrap_or_else(|| field.to_owned())
}

/// The refusal above a page whose form it belongs to.
pub(crate) fn render_refusal(refusal: &Refusal) -> Markup {
    html! {
        div.alert role="alert" {
            // The message of a single detail is the detail.
            @match refusal.details.as_slice() {
                [(field, message)] if refusal.message.contains(message) => {
                    p { strong { code { (counted_from_one(field)) } ": " (message) } }
                }
                details => {
                    p { strong { (refusal.message) } }
                    @if !details.is_empty() {
                        ul { @for (field, message) in details { li { code { (counted_from_one(field)) } ": " (message) } } }
                    }
                }
            }
            @if refusal.code == Code::StepUpRequired.as_str() {
                p { "Nothing was changed. Sign in in another window, then send the form from here: what \
                    you typed is kept in this page." }
                p { a.button href="/sign-in/oidc?step_up=true&next=/account" target="_blank" { "Sign in again" } }
            }
            p.hint { (refusal.code) " · trace " (refusal.trace_id) }
        }
    }
}

#[cfg(test)]
mod tests;
