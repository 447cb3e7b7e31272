//! Declarations of pages: what a page reads from the operator API and shows, how it filters a list, and what
//! it changes.
//!
//! The pages are tables like those of the command line. They take methods, paths and roles from the
//! operations of the wire format, and what a form asks for from their request types; a test compares
//! parameters and fields of responses with the OpenAPI document.

pub(crate) use vouchsafe_wire::column::{Column, col};
use vouchsafe_wire::operator::operation::Operation;

pub(crate) use crate::action::{Action, Outcome};
pub(crate) use crate::api_target::{ApiTarget, target};
pub(crate) use crate::decisions::{Decision, Severity};
pub(crate) use crate::input::{Input, REASON, labels};
use crate::json::Json;

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
    /// The start of a bulk job.
    BulkStart,
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

    pub(crate) const fn bulk_start(path: &'static str, title: &'static str) -> Self {
        Self {
            path,
            title,
            view: View::BulkStart,
            actions: &[],
        }
    }

    pub(crate) const fn actions(mut self, actions: &'static [Action]) -> Self {
        self.actions = actions;
        self
    }
}

/// A page of a list of the API.
pub(crate) struct List {
    /// Placeholders are those of the page.
    pub(crate) api: ApiTarget,
    pub(crate) filters: &'static [Filter],
    /// Actions on an entry.
    pub(crate) row_actions: &'static [Action],
    /// Filters that hold unless the address has another value.
    pub(crate) defaults: &'static [(&'static str, &'static str)],
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
            defaults: &[],
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

    pub(crate) const fn defaults(mut self, defaults: &'static [(&'static str, &'static str)]) -> Self {
        self.defaults = defaults;
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
    /// What the page says first about an object in a special state; empty: nothing.
    pub(crate) banner: fn(&Json) -> &'static str,
    /// Counts that the page shows first, as links.
    pub(crate) decisions: &'static [Decision],
    /// A page that follows on an object in a special state.
    pub(crate) follow_up: Option<FollowUp>,
}

/// State, label and address of a page that follows.
pub(crate) type FollowUp = (fn(&Json) -> bool, &'static str, &'static str);

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
            banner: |_| "",
            decisions: &[],
            follow_up: None,
        }
    }

    pub(crate) const fn follow_up(mut self, follow_up: FollowUp) -> Self {
        self.follow_up = Some(follow_up);
        self
    }

    pub(crate) const fn banner(mut self, banner: fn(&Json) -> &'static str) -> Self {
        self.banner = banner;
        self
    }

    pub(crate) const fn decisions(mut self, decisions: &'static [Decision]) -> Self {
        self.decisions = decisions;
        self
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
    /// Text instead of an empty table; empty: the page has no such section then.
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

    /// A list of the API with the columns of its operation. `page` of the console shows all of it; empty if
    /// there is none.
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
    /// Samples in the response's field `field`, drawn as lines over the first column. A page without script
    /// has a link to `page` only, or their table if that is empty.
    Chart {
        target: ApiTarget,
        field: &'static str,
        /// Whether the feed's samples are added.
        is_live: bool,
        page: &'static str,
        /// Page of a range that the operator selects in the chart; empty: none.
        zoom: &'static str,
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
    pub(crate) is_time: bool,
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
        is_time: false,
    }
}

pub(crate) const TIME_HINT: &str = "2026-11-25, 2026-11-25 10:00 (UTC), or an age such as 1h or 2d";

pub(crate) const FROM: Filter = Filter {
    hint: TIME_HINT,
    is_time: true,
    ..filter("from", "From")
};

pub(crate) const TO: Filter = Filter {
    hint: TIME_HINT,
    is_time: true,
    ..filter("to", "Until")
};
