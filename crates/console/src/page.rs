//! Declarations of pages: what a page reads from the operator API and shows, how it filters a list, and what it changes.
//!
//! The pages are tables like those of the command line. They take methods, paths and roles from the
//! operations of the wire format, and what a form asks for from their request types; a test compares parameters and fields of
//! responses with the OpenAPI document.

use utoipa::ToSchema;
use vouchsafe_domain::operator::Role;
pub(crate) use vouchsafe_wire::column::{Column, col};
use vouchsafe_wire::operation::Method;
use vouchsafe_wire::operator::operation::{Operation, Route};

use crate::body_schema::BodySchema;
pub(crate) use crate::input::{Input, REASON, labels};
use crate::json::Json;
use crate::template::{fill_parts, placeholders};

/// A page at a path of the console.
pub(crate) struct Page {
    /// Contains placeholders.
    pub(crate) path: &'static str,
    pub(crate) title: &'static str,
    pub(crate) view: View,
    pub(crate) actions: &'static [Action],
}

pub(crate) enum View {
    List(List),
    Object(Object),
}

impl Page {
    pub(crate) const fn list(path: &'static str, title: &'static str, list: List) -> Self {
        Self {
            path,
            title,
            view: View::List(list),
            actions: &[],
        }
    }

    pub(crate) const fn object(path: &'static str, title: &'static str, object: Object) -> Self {
        Self {
            path,
            title,
            view: View::Object(object),
            actions: &[],
        }
    }

    pub(crate) const fn actions(mut self, actions: &'static [Action]) -> Self {
        self.actions = actions;
        self
    }
}

/// A request of the operator API.
#[derive(Clone, Copy)]
pub(crate) struct ApiTarget {
    pub(crate) route: Route,
    /// Query with placeholders; empty: none.
    pub(crate) query: &'static str,
}

/// A request without a query.
pub(crate) const fn target<Q, R>(operation: Operation<Q, R>) -> ApiTarget {
    ApiTarget {
        route: operation.route,
        query: "",
    }
}

impl ApiTarget {
    pub(crate) const fn query(self, query: &'static str) -> Self {
        Self { query, ..self }
    }

    /// The names of the placeholders.
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &'static str> + use<> {
        placeholders(self.route.path).chain(placeholders(self.query))
    }

    /// Path below `/admin/v1` with the query, its placeholders filled with encoded values.
    pub(crate) fn fill(&self, value: impl Fn(&str) -> Option<String>) -> String {
        fill_parts(self.route.path, self.query, value)
    }
}

/// A page of a list of the API.
pub(crate) struct List {
    /// Placeholders are those of the page.
    pub(crate) api: ApiTarget,
    pub(crate) filters: &'static [Filter],
    /// Actions on an entry.
    pub(crate) row_actions: &'static [Action],
    /// Whether the list is read without a filter.
    pub(crate) is_complete: bool,
    /// Links to the list with often used filters.
    pub(crate) variants: &'static [Variant],
}

impl List {
    /// A list with the columns of its operation.
    pub(crate) const fn of<Q, R>(operation: Operation<Q, R>) -> Self {
        Self {
            api: target(operation),
            filters: &[],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }
    }

    pub(crate) const fn filters(mut self, filters: &'static [Filter]) -> Self {
        self.filters = filters;
        self
    }

    pub(crate) const fn row_actions(mut self, actions: &'static [Action]) -> Self {
        self.row_actions = actions;
        self
    }

    pub(crate) const fn variants(mut self, variants: &'static [Variant]) -> Self {
        self.variants = variants;
        self
    }

    /// The list is read with a filter only.
    pub(crate) const fn search(mut self) -> Self {
        self.is_complete = false;
        self
    }
}

/// Label and address of a variant of a page.
pub(crate) type Variant = (&'static str, &'static str);

/// An object of the API.
pub(crate) struct Object {
    /// `None` if the page consists of its sections.
    pub(crate) api: Option<ApiTarget>,
    /// Field of the heading.
    pub(crate) name: &'static str,
    pub(crate) facts: &'static [Column],
    pub(crate) sections: &'static [Section],
    /// Text of a page whose object the API does not have yet; empty: the page is not found.
    pub(crate) none: &'static str,
}

impl Object {
    pub(crate) const fn of<Q, R>(
        operation: Operation<Q, R>,
        name: &'static str,
        facts: &'static [Column],
        sections: &'static [Section],
    ) -> Self {
        Self {
            api: Some(target(operation)),
            name,
            facts,
            ..Self::of_sections(sections)
        }
    }

    pub(crate) const fn of_sections(sections: &'static [Section]) -> Self {
        Self {
            api: None,
            name: "",
            facts: &[],
            sections,
            none: "",
        }
    }

    /// Sets the text of a page whose object the API does not have yet.
    pub(crate) const fn or(mut self, none: &'static str) -> Self {
        self.none = none;
        self
    }
}

/// A table on the page of an object.
pub(crate) struct Section {
    pub(crate) heading: &'static str,
    pub(crate) source: Source,
    pub(crate) columns: &'static [Column],
    pub(crate) row_actions: &'static [Action],
    /// Text instead of an empty table.
    pub(crate) none: &'static str,
}

impl Section {
    pub(crate) const fn new(
        heading: &'static str,
        source: Source,
        columns: &'static [Column],
        none: &'static str,
    ) -> Self {
        Self {
            heading,
            source,
            columns,
            row_actions: &[],
            none,
        }
    }

    /// A list of the API with the columns of its operation. `page` of the console shows all of it; empty if there is none.
    pub(crate) const fn list(
        heading: &'static str,
        target: ApiTarget,
        page: &'static str,
        none: &'static str,
    ) -> Self {
        let field = "data";
        let columns = target.route.columns;
        Self::new(heading, Source::Api { target, field, page }, columns, none)
    }

    pub(crate) const fn columns(mut self, columns: &'static [Column]) -> Self {
        self.columns = columns;
        self
    }

    pub(crate) const fn row_actions(mut self, actions: &'static [Action]) -> Self {
        self.row_actions = actions;
        self
    }
}

pub(crate) enum Source {
    /// A list in a field of the object.
    Field(&'static str),
    /// A list in a field of a response. `page` of the console shows all of it; empty if there is none.
    Api {
        target: ApiTarget,
        field: &'static str,
        page: &'static str,
    },
    /// A list or object in a field of an event of the live feed. It changes each second.
    Live(&'static str),
    /// Samples in the response's field `field`, drawn as lines over the first column. A page without script has a link to `page`
    /// only, or their table if that is empty.
    Chart {
        target: ApiTarget,
        field: &'static str,
        /// Whether the feed's samples are added.
        is_live: bool,
        page: &'static str,
    },
    /// Links to variants of the page.
    Links(&'static [Variant]),
}

/// A parameter of a list.
pub(crate) struct Filter {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) hint: &'static str,
    /// Empty: any text.
    pub(crate) choices: fn() -> Vec<&'static str>,
}

/// A filter by a text.
pub(crate) const fn filter(name: &'static str, label: &'static str) -> Filter {
    choice(name, label, Vec::new)
}

/// A filter by one of these values.
pub(crate) const fn choice(
    name: &'static str,
    label: &'static str,
    choices: fn() -> Vec<&'static str>,
) -> Filter {
    Filter {
        name,
        label,
        hint: "",
        choices,
    }
}

pub(crate) const TIME_HINT: &str = "UTC, such as 2026-11-25 or 2026-11-25T10:00:00Z";

pub(crate) const FROM: Filter = Filter {
    hint: TIME_HINT,
    ..filter("from", "From")
};

pub(crate) const TO: Filter = Filter {
    hint: TIME_HINT,
    ..filter("to", "Until")
};

/// A change, as a form of a page.
#[derive(Clone, Copy)]
pub(crate) struct Action {
    /// Last segment of the form's address.
    pub(crate) slug: &'static str,
    pub(crate) label: &'static str,
    /// Placeholders are those of the page, fields of the object or row, and inputs.
    pub(crate) api: ApiTarget,
    /// Schema of the body.
    pub(crate) body: fn() -> BodySchema,
    pub(crate) inputs: &'static [Input],
    /// Fields of the body that no input changes, or objects that inputs fill, with their JSON.
    pub(crate) fixed: &'static [(&'static str, &'static str)],
    /// Whether the page offers the change for this object.
    pub(crate) is_offered: fn(&Json) -> bool,
    /// Consequences, before the operator decides.
    pub(crate) note: &'static str,
    pub(crate) outcome: Outcome,
}

/// What follows a successful change.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    /// The page again, with this message.
    Message(&'static str),
    /// The response under this heading, once: it has a secret, or a report.
    Response(&'static str),
}

impl Action {
    /// A change by the body of its request.
    pub(crate) const fn new<Q: ToSchema, R>(
        slug: &'static str,
        label: &'static str,
        operation: Operation<Q, R>,
    ) -> Self {
        Self::of(slug, label, target(operation), BodySchema::of::<Q>)
    }

    /// A change by the query of its request, with placeholders. A file is its body, or it has none.
    pub(crate) const fn by_query<Q, R>(
        slug: &'static str,
        label: &'static str,
        operation: Operation<Q, R>,
        query: &'static str,
    ) -> Self {
        Self::of(slug, label, target(operation).query(query), BodySchema::of::<()>)
    }

    const fn of(slug: &'static str, label: &'static str, api: ApiTarget, body: fn() -> BodySchema) -> Self {
        Self {
            slug,
            label,
            api,
            body,
            inputs: &[],
            fixed: &[],
            is_offered: |_| true,
            note: "",
            outcome: Outcome::Message("The change was made."),
        }
    }

    /// The least role of an operator to whom the page offers the change.
    pub(crate) const fn role(&self) -> Role {
        self.api.route.access.role
    }

    pub(crate) const fn method(&self) -> Method {
        self.api.route.method
    }

    pub(crate) const fn inputs(self, inputs: &'static [Input]) -> Self {
        Self { inputs, ..self }
    }

    pub(crate) const fn fixed(self, fixed: &'static [(&'static str, &'static str)]) -> Self {
        Self { fixed, ..self }
    }

    pub(crate) const fn when(self, is_offered: fn(&Json) -> bool) -> Self {
        Self { is_offered, ..self }
    }

    pub(crate) const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    pub(crate) const fn done(self, message: &'static str) -> Self {
        Self {
            outcome: Outcome::Message(message),
            ..self
        }
    }

    pub(crate) const fn shows(self, heading: &'static str) -> Self {
        Self {
            outcome: Outcome::Response(heading),
            ..self
        }
    }
}
