//! Actors, nodes and lanes, refused requests, settings, and checkpoints of the audit trail.

use vouchsafe_wire::operator::monitoring;

use crate::page::{Column, List, Object, Page, Section, Source, choice, col, filter, target};

/// A table that the live feed changes.
const fn live(heading: &'static str, field: &'static str, columns: &'static [Column]) -> Section {
    Section::new(heading, Source::Live(field), columns, "")
}

const fn actor_chart(heading: &'static str, columns: &'static [Column]) -> Section {
    Section::new(
        heading,
        Source::Chart {
            target: target(monitoring::GET_ACTOR),
            field: "samples",
            is_live: false,
            page: "",
            zoom: "",
        },
        columns,
        "The samples begin now: there is one for each ten seconds.",
    )
}

pub(super) static PAGES: [Page; 7] = [
    Page::object(
        "/actors",
        "Actors of this node",
        Object::of_sections(&[
            live("By kind", "actors.sums", &monitoring::ACTOR_SUM_COLUMNS),
            live(
                "Busiest actors",
                "actors.data",
                monitoring::LIST_ACTORS.route.columns,
            ),
            Section::list(
                "Lanes of this node",
                target(monitoring::LIST_LANES),
                "",
                "The node has no lane.",
            ),
        ]),
    ),
    Page::object(
        "/actors/{kind}",
        "Actors by kind:",
        Object::of_sections(&[Section::list(
            "Busiest actors",
            target(monitoring::LIST_ACTORS).query("kind={kind}&limit=1000"),
            "",
            "No actor of this kind runs.",
        )]),
    ),
    Page::object(
        "/actors/{kind}/{key}",
        "Actor",
        Object::of(
            monitoring::GET_ACTOR,
            "key",
            &[
                col("Kind", "kind"),
                col("Key", "key"),
                col("State", "state"),
                col("Mailbox", "mailbox_depth"),
                col("Handled", "handled"),
                col("Handled per second", "handled_per_s"),
                col("p50 (µs)", "handling_p50_us"),
                col("p99 (µs)", "handling_p99_us"),
                col("Restarts", "restarts"),
                col("Last error", "last_error.at last_error.message"),
            ],
            &[
                actor_chart(
                    "Handled per second",
                    &[col("Time", "at"), col("Handled/s", "handled_per_s")],
                ),
                actor_chart("Mailbox", &[col("Time", "at"), col("Messages", "mailbox_depth")]),
            ],
        ),
    ),
    Page::object(
        "/nodes",
        "Nodes and lanes",
        Object::of_sections(&[
            Section::list(
                "Nodes of the deployment",
                target(monitoring::LIST_NODES),
                "",
                "No node has started.",
            ),
            Section::list(
                "Lanes of this node",
                target(monitoring::LIST_LANES),
                "",
                "The node has no lane.",
            ),
        ]),
    ),
    Page::list(
        "/refusals",
        "Refused requests of this node",
        List::of(monitoring::LIST_REFUSALS).filters(&[
            filter("hours", "Hours up to now (1 to 24)"),
            filter("partner_id", "Partner ID"),
        ]),
    ),
    Page::object(
        "/settings",
        "Settings of this node",
        Object::of_sections(&[Section::list(
            "Settings",
            target(monitoring::LIST_SETTINGS),
            "",
            "There is no setting.",
        )]),
    ),
    Page::list(
        "/audit/checkpoints",
        "Checkpoints of the audit trail",
        List::of(monitoring::LIST_AUDIT_CHECKPOINTS)
            .filters(&[choice("check", "Compare with the entries", || vec!["true"])])
            .variants(&[
                ("Checkpoints", "/audit/checkpoints"),
                ("Compared with their entries", "/audit/checkpoints?check=true"),
            ]),
    ),
];
