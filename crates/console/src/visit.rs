//! A viewer's visit to a page: its address, the message after a change, and the forms that the viewer's role
//! permits.

use maud::{Markup, html};

use crate::form::{self, FailedForm, FormContext};
use crate::json::Json;
use crate::layout::Viewer;
use crate::page::{Action, Outcome, Page, Variant, View};
use crate::template::{self, Params, pairs};

/// Parameters of the console itself, which the API does not know.
pub(crate) const DONE: &str = "done";

/// A page that a viewer asks for.
#[derive(Clone)]
pub(crate) struct Visit<'a> {
    pub(crate) viewer: &'a Viewer,
    pub(crate) page: &'static Page,
    /// Path of the page and its parameters.
    pub(crate) path: String,
    pub(crate) params: Params,
    /// Parameters of the list, and the slug of a change that was made.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) failed: Option<&'a FailedForm<'a>>,
}

/// A rendered page: its title and content.
pub(crate) struct Shown {
    pub(crate) title: String,
    pub(crate) content: Markup,
    /// The only result of a search.
    pub(crate) only_result: Option<String>,
}

impl<'a> Visit<'a> {
    pub(crate) fn new(
        viewer: &'a Viewer,
        page: &'static Page,
        path: String,
        params: Params,
        query: &str,
    ) -> Self {
        let query = pairs(query.as_bytes());
        Self {
            viewer,
            page,
            path,
            params,
            query: query.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
            failed: None,
        }
    }

    /// The query without the parameters with these names.
    pub(crate) fn query_without(&self, names: &[&str]) -> String {
        let kept = self
            .query
            .iter()
            .filter(|(name, _)| !names.contains(&name.as_str()));
        template::query(&kept.cloned().collect::<Vec<_>>())
    }

    pub(crate) fn parameter(&self, name: &str) -> &str {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// The message after a change.
    pub(crate) fn notice(&self) -> Markup {
        let slug = self.parameter(DONE);
        let actions = all_actions(self.page);
        let made = actions.into_iter().find(|action| action.slug == slug);
        html! {
            @match made.map(|action| action.outcome) {
                Some(Outcome::Message(message)) => p.notice role="status" { (message) },
                _ if slug == REQUESTED => p.notice role="status" {
                    "Nothing is changed yet: this change needs a second operator. Another operator confirms or declines it here."
                },
                _ => "",
            }
        }
    }

    pub(crate) fn forms(&self, actions: &'static [Action], row: &Json, id: &str) -> Markup {
        let query = self.query_without(&[DONE]);
        let context = FormContext {
            path: &self.path,
            query: &query,
            params: &self.params,
            failed: self.failed,
            page_id: &self.viewer.page_id,
        };
        let offered = actions.iter().filter(|action| {
            // A form that failed stays, also if another operator has made the change.
            let is_offered = (action.is_offered)(row) && (action.is_for)(row, self.viewer);
            let is_shown = is_offered || context.failed_form(action, row).is_some();
            self.viewer.role >= action.role() && is_shown
        });
        html! { @for action in offered { (form::render(&context, action, row, id)) } }
    }

    /// A failed form whose row is not among these any more.
    pub(crate) fn form_without_row(&self, actions: &'static [Action], rows: &[Json]) -> Markup {
        let Some(failed) = self.failed else {
            return html! {};
        };
        let action = actions.iter().find(|action| action.slug == failed.slug);
        let Some(action) = action else {
            return html! {};
        };
        let mut row = Json::Null;
        for name in form::carried(action, &self.params) {
            row.set(name, Json::Text(failed.submission.get(name).to_owned()));
        }
        let is_row =
            |other: &Json| form::carried(action, &self.params).all(|name| other.get(name) == row.get(name));
        if rows.iter().any(is_row) {
            return html! {};
        }
        html! { div.actions { (self.forms(actions, &row, "gone")) } }
    }

    /// The forms of each row; `None` if the viewer may use none of them.
    pub(crate) fn forms_of_rows(
        &self,
        actions: &'static [Action],
    ) -> Option<impl Fn(usize, &Json) -> Markup> {
        let is_permitted = actions.iter().any(|action| self.viewer.role >= action.role());
        is_permitted.then_some(move |index, row: &Json| self.forms(actions, row, &format!("row{index}")))
    }

    /// Address of a form, with the query of the page.
    pub(crate) fn form_address(&self, action: &Action) -> String {
        form::address(&self.path, &self.query_without(&[DONE]), action)
    }

    /// Links to variants of the page.
    pub(crate) fn variants(&self, label: &str, variants: &[Variant]) -> Markup {
        html! {
            nav.variants aria-label=(label) {
                @for (label, page) in variants {
                    a href=(page) aria-current=[self.is_at(page).then_some("page")] { (label) }
                }
            }
        }
    }

    /// Whether this is the variant of the page with the query of `page`.
    fn is_at(&self, page: &str) -> bool {
        let query = page.split_once('?').map_or("", |(_, query)| query);
        self.query_without(&[DONE]) == query
    }
}

/// Slug of a change that waits for a second operator.
pub(crate) const REQUESTED: &str = "requested";

/// The changes of a page, its tables and entries.
pub(crate) fn all_actions(page: &'static Page) -> Vec<&'static Action> {
    let rows: Vec<&'static [Action]> = match &page.view {
        View::List(list) => vec![list.row_actions],
        View::Object(object) => object
            .sections
            .iter()
            .map(|section| section.row_actions)
            .collect(),
        View::BulkStart => Vec::new(),
    };
    page.actions.iter().chain(rows.into_iter().flatten()).collect()
}
