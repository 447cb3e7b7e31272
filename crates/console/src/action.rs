//! Changes that a page offers: the request of the operator API, what its form asks for, and what follows.

use utoipa::ToSchema;
use vouchsafe_domain::operator::Role;
use vouchsafe_wire::operation::Method;
use vouchsafe_wire::operator::operation::Operation;

use crate::api_target::{ApiTarget, target};
use crate::body_schema::BodySchema;
use crate::input::Input;
use crate::json::Json;
use crate::layout::Viewer;

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
    /// Whether it is offered to this viewer, besides the role.
    pub(crate) is_for: fn(&Json, &Viewer) -> bool,
    /// Consequences, before the operator decides.
    pub(crate) note: &'static str,
    pub(crate) outcome: Outcome,
    /// Whether it takes something from a partner, or cannot be undone.
    pub(crate) is_dangerous: bool,
    /// Whether its form is open from the beginning.
    pub(crate) is_open: bool,
}

/// What follows a successful change.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    /// The page again, with this message.
    Message(&'static str),
    /// The response under this heading, once: it has a secret, or a report.
    Response(&'static str),
    /// Another page, with fields of the response as placeholders.
    Page(&'static str),
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
            is_for: |_, _| true,
            note: "",
            outcome: Outcome::Message("The change was made."),
            is_dangerous: false,
            is_open: false,
        }
    }

    /// It takes something from a partner, or cannot be undone.
    pub(crate) const fn dangerous(self) -> Self {
        Self {
            is_dangerous: true,
            ..self
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

    pub(crate) const fn only_for(self, is_for: fn(&Json, &Viewer) -> bool) -> Self {
        Self { is_for, ..self }
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

    pub(crate) const fn leads_to(self, page: &'static str) -> Self {
        Self {
            outcome: Outcome::Page(page),
            ..self
        }
    }

    pub(crate) const fn open(self) -> Self {
        Self {
            is_open: true,
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
