//! One field of a form: label, input, hint and errors.

use maud::{Markup, html};

use super::{BEFORE, FailedForm};
use crate::api::Refusal;
use crate::field::{Field, FieldKind};
use crate::input_value::text_of;
use crate::json::Json;
use crate::time_input::SUGGESTIONS;

/// A field that begins with the value `now` of the object, or with what was typed into a failed form.
pub(super) fn render_field(
    field: &Field,
    failed: Option<&FailedForm<'_>>,
    now: &Json,
    form_id: &str,
    is_outermost: bool,
) -> Markup {
    if matches!(field.kind, FieldKind::PageParameter) {
        return html! {};
    }
    let before = field.is_prefilled.then(|| text_of(field, now));
    html! {
        @if let Some(before) = &before { input type="hidden" name={ (BEFORE) (field.name) } value=(before); }
        @match &field.kind {
            FieldKind::Group(parts) => (render_group(field, parts, failed, now, form_id)),
            _ => (render_simple(field, failed, now, form_id, is_outermost)),
        }
    }
}

/// Whether the form shows what was typed. Another operator may have changed what this one left alone.
fn typed<'a>(field: &Field, failed: Option<&'a FailedForm<'a>>) -> Option<&'a FailedForm<'a>> {
    failed.filter(|failed| !field.is_prefilled || failed.submission.is_changed(field))
}

fn render_group(
    field: &Field,
    parts: &[Field],
    failed: Option<&FailedForm<'_>>,
    now: &Json,
    form_id: &str,
) -> Markup {
    let typed = typed(field, failed);
    let is_set = typed.map_or(!now.is_empty() || matches!(now, Json::Object(_)), |failed| {
        !failed.submission.get(&field.name).is_empty()
    });
    let errors = failed.map(|failed| errors_of(failed.refusal, &field.name, false));
    html! {
        fieldset.field {
            legend { (field.label) }
            @if !field.hint.is_empty() { p.hint { (field.hint) } }
            @if field.is_nullable {
                label.flag {
                    input id=(input_id(field, form_id)) type="checkbox" name=(field.name) value="on" checked[is_set];
                    "Set"
                }
            }
            (render_errors(&errors.unwrap_or_default(), &format!("{}-error", input_id(field, form_id)), false))
            div.parts {
                @for part in parts {
                    // A browser refuses to send a form whose required input is hidden.
                    (render_field(part, typed, now.get(part.key()), form_id, false))
                }
            }
        }
    }
}

fn input_id(field: &Field, form_id: &str) -> String {
    format!("{form_id}-{}", field.name.replace('.', "-"))
}

fn render_simple(
    field: &Field,
    failed: Option<&FailedForm<'_>>,
    now: &Json,
    form_id: &str,
    is_outermost: bool,
) -> Markup {
    let id = input_id(field, form_id);
    let is_secret = field.kind.is_secret();
    let begins_with_value = field.is_prefilled || !is_outermost;
    let value = match typed(field, failed) {
        Some(_) if is_secret => String::new(),
        Some(failed) => failed.submission.typed(field),
        None if begins_with_value => text_of(field, now),
        None => String::new(),
    };
    let errors = failed.map(|failed| errors_of(failed.refusal, &field.name, true));
    let errors = errors.unwrap_or_default();
    let [hint_id, error_id] = ["hint", "error"].map(|part| format!("{id}-{part}"));
    let described = [
        (!field.hint.is_empty()).then_some(hint_id.as_str()),
        (!errors.is_empty()).then_some(error_id.as_str()),
    ];
    let described: Vec<_> = described.into_iter().flatten().collect();
    let described = (!described.is_empty()).then(|| described.join(" "));
    let invalid = (!errors.is_empty()).then_some("true");
    let can_be_empty = matches!(field.kind, FieldKind::Lines | FieldKind::Amounts);
    let required = field.is_required && is_outermost && !can_be_empty;
    let name = &field.name;
    html! {
        div.field {
            @match &field.kind {
                FieldKind::Flag => {
                    label.flag {
                        input id=(id) type="checkbox" name=(name) value="on" checked[!value.is_empty()] aria-describedby=[described];
                        (field.label)
                    }
                }
                FieldKind::Choices(choices) => {
                    fieldset aria-describedby=[described] {
                        legend { (field.label) (optional(field)) }
                        @for choice in choices {
                            label.flag {
                                input type="checkbox" name=(name) value=(choice) checked[value.lines().any(|chosen| chosen == choice)];
                                (choice)
                            }
                        }
                    }
                }
                kind => {
                    label for=(id) { (field.label) (optional(field)) }
                    @match kind {
                        FieldKind::Choice(choices) => {
                            select id=(id) name=(name) aria-describedby=[described] aria-invalid=[invalid] {
                                @if !field.is_required { option value="" selected[value.is_empty()] { "Default" } }
                                @for choice in choices { option selected[*choice == value] { (choice) } }
                            }
                        }
                        FieldKind::Paragraph | FieldKind::Lines | FieldKind::Amounts | FieldKind::Rows => {
                            textarea id=(id) name=(name) rows="3" required[required] autocomplete="off" spellcheck="false"
                                aria-describedby=[described] aria-invalid=[invalid] { (value) }
                        }
                        FieldKind::File(endings) => {
                            input id=(id) type="file" name=(name) accept=(endings) required[required]
                                aria-describedby=[described] aria-invalid=[invalid];
                        }
                        _ => {
                            input id=(id) type=(if matches!(kind, FieldKind::Secret) { "password" } else { "text" })
                                list=[matches!(kind, FieldKind::Time).then_some(SUGGESTIONS)]
                                inputmode=[matches!(kind, FieldKind::Number).then_some("numeric")] name=(name) value=(value)
                                required[required] autocomplete="off" spellcheck="false" aria-describedby=[described] aria-invalid=[invalid];
                        }
                    }
                }
            }
            @if !field.hint.is_empty() { p.hint id=(hint_id) { (field.hint) } }
            (render_errors(&errors, &error_id, is_secret))
        }
    }
}

fn optional(field: &Field) -> Markup {
    html! { @if !field.is_required { span.hint { " (optional)" } } }
}

fn render_errors(errors: &[&str], id: &str, is_secret: bool) -> Markup {
    html! {
        @if !errors.is_empty() {
            p.error id=(id) { (errors.join("; ")) @if is_secret { "; enter it again" } }
        }
    }
}

/// The messages about a field, and about its parts or entries if they have no fields of their own.
fn errors_of<'a>(refusal: &'a Refusal, name: &str, with_parts: bool) -> Vec<&'a str> {
    let is_about = |field: &str| {
        field
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || with_parts && rest.starts_with(['.', '[']))
    };
    let details = refusal.details.iter().filter(|(field, _)| is_about(field));
    details.map(|(_, message)| message.as_str()).collect()
}
