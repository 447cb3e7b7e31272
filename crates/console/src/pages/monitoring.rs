//! Actors, nodes and lanes, refused requests, settings, and checkpoints of the audit trail.

use vouchsafe_wire::operator::monitoring;

use crate::page::{
    ApiTarget, Column, List, Object, Page, Section, Source, View, choice, col, filter, link, target,
};

const ACTOR_COLUMNS: [Column; 10] = [
    link("Key", "key", "/actors/{kind}/{key}"),
    col("Kind", "kind"),
    col("State", "state"),
    col("Mailbox", "mailbox_depth"),
    col("Handled/s", "handled_per_s"),
    col("Handled", "handled"),
    col("p50 (µs)", "handling_p50_us"),
    col("p99 (µs)", "handling_p99_us"),
    col("Restarts", "restarts"),
    col("Last error", "last_error.at last_error.message"),
];

const LANE_COLUMNS: [Column; 7] = [
    col("Lane", "lane"),
    col("Can commit", "can_commit"),
    col("Queued", "queued"),
    col("In flight", "in_flight"),
    col("Last batch", "last_batch_records"),
    col("Last commit (µs)", "last_commit_us"),
    col("Batches", "batches"),
];

/// A table that the live feed changes.
const fn live(heading: &'static str, field: &'static str, columns: &'static [Column]) -> Section {
    Section {
        heading,
        source: Source::Live(field),
        columns,
        row_actions: &[],
        none: "",
    }
}

const fn actor_chart(heading: &'static str, columns: &'static [Column]) -> Section {
    Section {
        heading,
        source: Source::Chart {
            target: target(monitoring::GET_ACTOR),
            field: "samples",
            is_live: false,
            page: "",
        },
        columns,
        row_actions: &[],
        none: "The samples begin now: there is one for each ten seconds.",
    }
}

/// A table of a list of the API.
const fn table(
    heading: &'static str,
    target: ApiTarget,
    field: &'static str,
    columns: &'static [Column],
    none: &'static str,
) -> Section {
    Section {
        heading,
        source: Source::Api {
            target,
            field,
            page: "",
        },
        columns,
        row_actions: &[],
        none,
    }
}

const fn sections(sections: &'static [Section]) -> View {
    View::Object(Object {
        none: "",
        api: None,
        name: "",
        facts: &[],
        sections,
    })
}

pub(super) static PAGES: [Page; 7] = [
    Page {
        path: "/actors",
        title: "Actors of this node",
        view: sections(&[
            live(
                "By kind",
                "actors.sums",
                &[
                    link("Kind", "kind", "/actors/{kind}"),
                    col("Actors", "actors"),
                    col("Not ready", "not_ready"),
                    col("Mailbox", "mailbox_depth"),
                    col("Handled", "handled"),
                    col("Restarts", "restarts"),
                ],
            ),
            live("Busiest actors", "actors.data", &ACTOR_COLUMNS),
            table(
                "Lanes of this node",
                target(monitoring::LIST_LANES),
                "data",
                &LANE_COLUMNS,
                "The node has no lane.",
            ),
        ]),
        actions: &[],
    },
    Page {
        path: "/actors/{kind}",
        title: "Actors by kind:",
        view: sections(&[table(
            "Busiest actors",
            target(monitoring::LIST_ACTORS).query("kind={kind}&limit=1000"),
            "data",
            &ACTOR_COLUMNS,
            "No actor of this kind runs.",
        )]),
        actions: &[],
    },
    Page {
        path: "/actors/{kind}/{key}",
        title: "Actor",
        view: View::Object(Object {
            none: "",
            api: Some(target(monitoring::GET_ACTOR)),
            name: "key",
            facts: &[
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
            sections: &[
                actor_chart(
                    "Handled per second",
                    &[col("Time", "at"), col("Handled/s", "handled_per_s")],
                ),
                actor_chart("Mailbox", &[col("Time", "at"), col("Messages", "mailbox_depth")]),
            ],
        }),
        actions: &[],
    },
    Page {
        path: "/nodes",
        title: "Nodes and lanes",
        view: sections(&[
            table(
                "Nodes of the deployment",
                target(monitoring::LIST_NODES),
                "data",
                &[
                    col("Node", "node"),
                    col("Live", "is_live"),
                    col("Version", "version"),
                    col("Started", "started_at"),
                    col("Starts of the node", "incarnation"),
                    col("Lease until", "lease_until"),
                    col("SKUs", "claimed_skus"),
                    col("Chunks", "claimed_chunks"),
                ],
                "No node has started.",
            ),
            table(
                "Lanes of this node",
                target(monitoring::LIST_LANES),
                "data",
                &LANE_COLUMNS,
                "The node has no lane.",
            ),
        ]),
        actions: &[],
    },
    Page {
        path: "/refusals",
        title: "Refused requests of this node",
        view: View::List(List {
            api: target(monitoring::LIST_REFUSALS),
            columns: &[
                col("Code", "code"),
                col("Status", "status"),
                col("Partner", "partner_id"),
                col("Requests", "requests"),
            ],
            filters: &[
                filter("hours", "Hours up to now (1 to 24)"),
                filter("partner_id", "Partner ID"),
            ],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
    Page {
        path: "/settings",
        title: "Settings of this node",
        view: sections(&[table(
            "Settings",
            target(monitoring::LIST_SETTINGS),
            "data",
            &[
                col("Name", "name"),
                col("Value", "value"),
                col("Secret", "is_secret"),
                col("Source", "source"),
                col("Description", "description"),
            ],
            "There is no setting.",
        )]),
        actions: &[],
    },
    Page {
        path: "/audit/checkpoints",
        title: "Checkpoints of the audit trail",
        view: View::List(List {
            api: target(monitoring::LIST_AUDIT_CHECKPOINTS),
            columns: &[
                col("Number", "number"),
                col("Time", "at"),
                col("Entries", "entries"),
                col("Newest entry", "newest_audit_id"),
                col("Intact", "is_intact"),
                col("SHA-256", "hash"),
            ],
            filters: &[choice("check", "Compare with the entries", || vec!["true"])],
            row_actions: &[],
            is_complete: true,
            variants: &[
                ("Checkpoints", "/audit/checkpoints"),
                ("Compared with their entries", "/audit/checkpoints?check=true"),
            ],
        }),
        actions: &[],
    },
];
