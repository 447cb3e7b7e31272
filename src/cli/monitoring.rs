//! `vouchsafe actors` and `vouchsafe audit`: live actors and the audit trail.

use clap::Args;

use super::CommandOutput;
use super::admin::{AdminClient, AdminOptions, PageOptions, given_filters};
use super::examples::examples;
use super::output::Column;

const ACTOR_COLUMNS: [Column; 6] = [
    ("KIND", "kind"),
    ("KEY", "key"),
    ("MAILBOX", "mailbox_depth"),
    ("HANDLED", "handled"),
    ("RESTARTS", "restarts"),
    ("STATE", "state"),
];

const AUDIT_COLUMNS: [Column; 6] = [
    ("ENTRY", "audit_id"),
    ("AT", "at"),
    ("OPERATOR", "operator"),
    ("ACTION", "action"),
    ("SUBJECT", "subject"),
    ("AFTER", "after"),
];

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe actors --kind inventory --limit 20"])]
pub struct ActorsArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(flatten)]
    pub(super) query: ActorsQuery,
}

#[derive(Debug, Args)]
pub(super) struct ActorsQuery {
    /// Maximum number of actors, 1 to 10000.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Filter by kind.
    #[arg(long, value_parser = ["wallet", "inventory", "procurement", "delivery"])]
    kind: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe audit --subject PARTNER_ID",
    "vouchsafe audit --action credential.issue --from 2026-11-01 --json",
])]
pub struct AuditArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(flatten)]
    pub(super) query: AuditQuery,
}

#[derive(Debug, Args)]
pub(super) struct AuditQuery {
    /// Filter by operator.
    #[arg(long)]
    operator: Option<String>,
    /// Filter by action, e.g. partner.change.
    #[arg(long)]
    action: Option<String>,
    /// Filter by subject, an ID.
    #[arg(long)]
    subject: Option<String>,
    /// Start of the period, inclusive: a date or an RFC 3339 time.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// End of the period, exclusive.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

pub(super) async fn actors(query: &ActorsQuery, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    let limit = ("limit", query.limit.to_string());
    let kind = query.kind.clone().map(|kind| ("kind", kind));
    let query: Vec<_> = std::iter::once(limit).chain(kind).collect();
    admin.show_list("/actors", &query, &ACTOR_COLUMNS).await
}

pub(super) async fn audit(query: &AuditQuery, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    let mut pairs = query.page.query();
    pairs.extend(given_filters([
        ("operator", &query.operator),
        ("action", &query.action),
        ("subject", &query.subject),
        ("from", &query.from),
        ("to", &query.to),
    ]));
    admin.show_list("/audit", &pairs, &AUDIT_COLUMNS).await
}
