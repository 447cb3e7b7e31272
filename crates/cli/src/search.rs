//! `vouchsafe search`: objects by id or name, and orders by reference or trace ID.

use vouchsafe_wire::operator::monitoring::SEARCH;
use vouchsafe_wire::operator::search::SearchQuery;

use super::CommandOutput;
use super::admin::AdminClient;

pub(super) async fn run(query: &SearchQuery, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.list(SEARCH, query).await
}
