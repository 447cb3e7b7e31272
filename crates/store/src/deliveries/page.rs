//! Reads of a delivery actor: due rows and events after its read position, or the oldest waiting rows.
//!
//! Pages are in number order, so no event of an order is read before an earlier one. A row after the read position, which a replay
//! may have inserted, is read when the scan reaches it.

use sqlx::PgPool;
use vouchsafe_actors::delivery::outbox::DeliveryPage;
use vouchsafe_actors::delivery::queue::ReadRequest;

use super::due_rows::{read_due_rows, read_next_due};
use super::endpoint::{LeaseHolder, load_endpoint};
use super::scan::scan_events;
use crate::events::MAX_PAGE_ROWS;

/// Reads the requested deliveries. Returns `None` if the lease has been lost.
pub(super) async fn read_page(
    pool: &PgPool,
    holder: &LeaseHolder,
    request: ReadRequest,
) -> Result<Option<DeliveryPage>, sqlx::Error> {
    let Some(endpoint) = load_endpoint(pool, holder).await? else {
        return Ok(None);
    };
    let mut page = DeliveryPage::default();
    let (ReadRequest::Due { after, .. } | ReadRequest::Oldest { after }) = request;
    if endpoint.has_rows {
        page.pending = read_due_rows(pool, &endpoint, request, 0..=after).await?;
        page.next_due_in = read_next_due(pool, endpoint.key).await?;
    }
    page.scanned_to = after;
    let limit = match request {
        ReadRequest::Due { limit, .. } => limit,
        ReadRequest::Oldest { .. } => MAX_PAGE_ROWS.saturating_sub(page.pending.len()),
    };
    if limit > 0 {
        scan_events(pool, &endpoint, request, limit, &mut page).await?;
    }
    Ok(Some(page))
}
