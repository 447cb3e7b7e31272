//! `vouchsafe search`: objects by id, and orders by reference.

use vouchsafe_wire::operator::monitoring::SEARCH;
use vouchsafe_wire::operator::search::SearchQuery;

use super::CommandOutput;
use super::admin::AdminClient;
use super::table::{Column, column, text};

const COLUMNS: [Column; 5] = [
    column("KIND", "kind"),
    column("ID", "id"),
    column("PARTNER", "partner_id"),
    text("LABEL", "label", 12),
    column("ORDER", "order_id"),
];

pub(super) async fn run(query: &SearchQuery, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.list(SEARCH, query, &COLUMNS).await
}
