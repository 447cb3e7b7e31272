//! What the pages use of the operator API: parameters and fields of responses. A test compares them with the
//! OpenAPI document. Fields of bodies come from the request types themselves.

use crate::live;
use crate::page::{ApiTarget, Column, Page, Source, View};
use crate::pages::all_pages;
use crate::visit::all_actions;

/// A name that a page uses of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiUse {
    /// Path of the page.
    pub page: &'static str,
    /// `operationId`.
    pub operation: &'static str,
    pub place: Place,
    /// Name of a parameter, or path of a field.
    pub name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Query,
    Response,
}

/// Everything that the pages use.
#[must_use]
pub fn api_uses() -> Vec<ApiUse> {
    all_pages().flat_map(uses_of_page).collect()
}

/// The uses of one operation.
struct Operation {
    page: &'static str,
    id: &'static str,
    uses: Vec<ApiUse>,
}

impl Operation {
    fn new(page: &'static str, target: &ApiTarget) -> Self {
        let mut operation = Self {
            page,
            id: target.route.id,
            uses: Vec::new(),
        };
        for parameter in target.query.split('&').filter(|parameter| !parameter.is_empty()) {
            operation.add(Place::Query, parameter.split('=').next().unwrap_or_default());
        }
        operation
    }

    fn add(&mut self, place: Place, name: &str) {
        self.uses.push(ApiUse {
            page: self.page,
            operation: self.id,
            place,
            name: name.to_owned(),
        });
    }

    /// Fields of the entries of a list, or of an object if `list` is empty.
    fn add_columns(&mut self, list: &str, columns: &[Column]) {
        let prefix = if list.is_empty() {
            String::new()
        } else {
            format!("{list}.")
        };
        for field in columns.iter().flat_map(|column| column.fields.split(' ')) {
            self.add(
                Place::Response,
                &format!("{prefix}{}", field.replace(".last", "")),
            );
        }
    }
}

fn uses_of_page(page: &'static Page) -> Vec<ApiUse> {
    let mut uses = Vec::new();
    match &page.view {
        View::List(list) => {
            let mut read = Operation::new(page.path, &list.api);
            read.add_columns("data", list.api.route.columns);
            for filter in list.filters {
                read.add(Place::Query, filter.name);
            }
            uses.extend(read.uses);
        }
        View::Object(object) => {
            let mut of_object = object.api.map(|target| Operation::new(page.path, &target));
            if let Some(read) = &mut of_object {
                read.add_columns("", object.facts);
                for decision in object.decisions {
                    read.add(Place::Response, decision.field);
                }
            }
            for section in object.sections {
                match (&section.source, &mut of_object) {
                    (Source::Api { target, field, .. } | Source::Chart { target, field, .. }, _) => {
                        let mut read = Operation::new(page.path, target);
                        read.add_columns(field, section.columns);
                        uses.extend(read.uses);
                    }
                    (Source::Field(field), Some(read)) => read.add_columns(field, section.columns),
                    (Source::Field(_), None) | (Source::Links(_), _) => {}
                    (Source::Live(field), _) => {
                        let mut read = Operation::new(page.path, &live::FEED);
                        read.add_columns(field, section.columns);
                        uses.extend(read.uses);
                    }
                }
            }
            uses.extend(of_object.into_iter().flat_map(|read| read.uses));
        }
        View::BulkStart => {}
    }
    let changes = all_actions(page).into_iter();
    uses.extend(changes.flat_map(|action| Operation::new(page.path, &action.api).uses));
    uses
}
