//! What the pages use of the operator API: paths, parameters, fields and roles. A test compares them with the OpenAPI document.

use vouchsafe_domain::operator::Role;

use crate::api::Method;
use crate::live;
use crate::page::{Action, Column, InputKind, Page, Source, View};
use crate::pages::all_pages;
use crate::template::placeholders;
use crate::visit::all_actions;

/// A name that a page uses of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiUse {
    /// Path of the page.
    pub page: &'static str,
    pub method: &'static str,
    /// Path below `/admin/v1`, with placeholders.
    pub path: &'static str,
    pub place: Place,
    /// Name of a parameter, or path of a field.
    pub name: String,
    /// Role from which the page offers the operation.
    pub role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Operation,
    Query,
    Body,
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
    method: Method,
    target: &'static str,
    role: Role,
    uses: Vec<ApiUse>,
}

impl Operation {
    fn read(page: &'static str, target: &'static str) -> Self {
        Self::new(page, Method::Get, target, Role::Viewer)
    }

    fn new(page: &'static str, method: Method, target: &'static str, role: Role) -> Self {
        let mut operation = Self {
            page,
            method,
            target,
            role,
            uses: Vec::new(),
        };
        operation.add(Place::Operation, "");
        let query = target.split_once('?').map_or("", |(_, query)| query);
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            operation.add(Place::Query, parameter.split('=').next().unwrap_or_default());
        }
        operation
    }

    fn add(&mut self, place: Place, name: &str) {
        let path = self.target.split('?').next().unwrap_or_default();
        self.uses.push(ApiUse {
            page: self.page,
            method: self.method.into(),
            path,
            place,
            name: name.to_owned(),
            role: self.role,
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
            let mut read = Operation::read(page.path, list.api);
            read.add_columns("data", list.columns);
            for filter in list.filters {
                read.add(Place::Query, filter.name);
            }
            uses.extend(read.uses);
        }
        View::Object(object) => {
            let mut of_object = (!object.api.is_empty()).then(|| Operation::read(page.path, object.api));
            if let Some(read) = &mut of_object {
                read.add_columns("", object.facts);
            }
            for section in object.sections {
                match (&section.source, &mut of_object) {
                    (Source::Api { path, field, .. } | Source::Chart { path, field, .. }, _) => {
                        let mut read = Operation::read(page.path, path);
                        read.add_columns(field, section.columns);
                        uses.extend(read.uses);
                    }
                    (Source::Field(field), Some(read)) => read.add_columns(field, section.columns),
                    (Source::Field(_), None) | (Source::Links(_), _) => {}
                    (Source::Live(field), _) => {
                        let mut read = Operation::read(page.path, live::FEED);
                        read.add_columns(field, section.columns);
                        uses.extend(read.uses);
                    }
                }
            }
            uses.extend(of_object.into_iter().flat_map(|read| read.uses));
        }
    }
    uses.extend(
        all_actions(page)
            .into_iter()
            .flat_map(|action| uses_of_action(page, action)),
    );
    uses
}

fn uses_of_action(page: &'static Page, action: &Action) -> Vec<ApiUse> {
    let mut change = Operation::new(page.path, action.method, action.api, action.role);
    let is_in_path = |name: &str| placeholders(action.api).any(|known| known == name);
    for input in action.inputs {
        if !is_in_path(input.name) && !matches!(input.kind, InputKind::File(_)) {
            change.add(Place::Body, input.name);
        }
    }
    for (name, _) in action.fixed {
        change.add(Place::Body, name);
    }
    change.uses
}
