//! Reads of a delivery actor: rows, then events after its read position.
//!
//! A row that waits for an earlier event of its order is not read, and events are read in number order, so no
//! event of an order is read before an earlier one. A row after the read position, which a replay may have
//! inserted, is read when the scan reaches it.

use sqlx::PgPool;
use vouchsafe_actors::delivery::outbox::DeliveryPage;
use vouchsafe_actors::delivery::queue::ReadRequest;

use super::due_rows::{read_before_scan, read_next_due};
use super::endpoint::{LeaseHolder, load_endpoint};
use super::scan::scan_events;

/// Reads the requested deliveries. Returns `None` if the lease has been lost.
pub(super) async fn read_page(
    pool: &PgPool,
    holder: &LeaseHolder,
    request: ReadRequest,
) -> Result<Option<DeliveryPage>, sqlx::Error> {
    let Some(endpoint) = load_endpoint(pool, holder).await? else {
        return Ok(None);
    };
    let mut page = DeliveryPage {
        retry_to: endpoint.retry_to,
        ..DeliveryPage::default()
    };
    let (ReadRequest::Due { after, limit } | ReadRequest::Oldest { after, limit }) = request;
    if endpoint.has_rows {
        page.pending = read_before_scan(pool, &endpoint, request).await?;
        page.next_due_in = read_next_due(pool, endpoint.key).await?;
    }
    page.scanned_to = after;
    if limit > 0 {
        scan_events(pool, &endpoint, request, limit, &mut page).await?;
    }
    Ok(Some(page))
}
