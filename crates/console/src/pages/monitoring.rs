//! Actors, nodes and lanes, refused requests, settings, and checkpoints of the audit trail.

use crate::page::{Column, List, Object, Page, Section, Source, View, col};

const ACTOR_COLUMNS: [Column; 9] = [
    col("Kind", "kind"),
    col("Key", "key"),
    col("State", "state"),
    col("Mailbox", "mailbox_depth"),
    col("Handled", "handled"),
    col("Half below (µs)", "handling_p50_us"),
    col("99 % below (µs)", "handling_p99_us"),
    col("Restarts", "restarts"),
    col("Last error", "last_error.at last_error.message"),
];

/// A table of a list of the API.
const fn table(
    heading: &'static str,
    path: &'static str,
    field: &'static str,
    columns: &'static [Column],
    none: &'static str,
) -> Section {
    Section {
        heading,
        source: Source::Api {
            path,
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
        api: "",
        name: "",
        facts: &[],
        sections,
    })
}

pub(super) static PAGES: [Page; 5] = [
    Page {
        path: "/actors",
        title: "Actors of this node",
        view: sections(&[
            table(
                "By kind",
                "/actors?limit=1",
                "sums",
                &[
                    col("Kind", "kind"),
                    col("Actors", "actors"),
                    col("Not ready", "not_ready"),
                    col("Mailbox", "mailbox_depth"),
                    col("Handled", "handled"),
                    col("Restarts", "restarts"),
                ],
                "No actor runs.",
            ),
            table(
                "The busiest",
                "/actors?limit=100",
                "data",
                &ACTOR_COLUMNS,
                "No actor runs.",
            ),
        ]),
        actions: &[],
    },
    Page {
        path: "/nodes",
        title: "Nodes and lanes",
        view: sections(&[
            table(
                "Nodes of the deployment",
                "/nodes",
                "data",
                &[
                    col("Node", "node"),
                    col("Live", "is_live"),
                    col("Version", "version"),
                    col("Started", "started_at"),
                    col("Starts", "incarnation"),
                    col("Lease until", "lease_until"),
                    col("SKUs", "claimed_skus"),
                    col("Chunks", "claimed_chunks"),
                ],
                "No node has started.",
            ),
            table(
                "Lanes of this node",
                "/lanes",
                "data",
                &[
                    col("Lane", "lane"),
                    col("Can commit", "can_commit"),
                    col("Queued", "queued"),
                    col("In flight", "in_flight"),
                    col("Last batch", "last_batch_records"),
                    col("Last commit (µs)", "last_commit_us"),
                    col("Batches", "batches"),
                ],
                "The node has no lane.",
            ),
        ]),
        actions: &[],
    },
    Page {
        path: "/refusals",
        title: "Refused requests of this node",
        view: sections(&[table(
            "Last 24 hours",
            "/refusals?hours=24",
            "data",
            &[
                col("Code", "code"),
                col("Status", "status"),
                col("Partner", "partner_id"),
                col("Requests", "requests"),
            ],
            "No request was refused.",
        )]),
        actions: &[],
    },
    Page {
        path: "/settings",
        title: "Settings of this node",
        view: sections(&[table(
            "Settings",
            "/settings",
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
            api: "/audit/checkpoints",
            columns: &[
                col("Number", "number"),
                col("Time", "at"),
                col("Entries", "entries"),
                col("Newest entry", "newest_audit_id"),
                col("SHA-256", "hash"),
            ],
            filters: &[],
            row_actions: &[],
            is_complete: true,
        }),
        actions: &[],
    },
];
