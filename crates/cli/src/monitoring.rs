//! `vouchsafe actors` and `vouchsafe audit`: live actors and the audit trail.

use vouchsafe_domain::audit_log::AuditFilter;
use vouchsafe_wire::operator::actors::ActorsQuery;

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs};
use super::table::{Column, column, text};

const ACTOR_COLUMNS: [Column; 6] = [
    column("KIND", "kind"),
    column("KEY", "key"),
    column("MAILBOX", "mailbox_depth"),
    column("HANDLED", "handled"),
    column("RESTARTS", "restarts"),
    column("STATE", "state"),
];

const AUDIT_COLUMNS: [Column; 5] = [
    column("ENTRY", "audit_id"),
    column("AT", "at"),
    text("ACTION", "action", 18),
    text("SUBJECT", "subject", 12),
    text("OPERATOR", "operator", 12),
];

pub(super) async fn actors(query: &ActorsQuery, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.list("/actors", query, &ACTOR_COLUMNS).await
}

pub(super) async fn audit(
    query: &ListArgs<AuditFilter>,
    admin: &AdminClient,
) -> anyhow::Result<CommandOutput> {
    admin.list("/audit", query, &AUDIT_COLUMNS).await
}
