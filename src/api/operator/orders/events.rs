//! `GET /orders/{order_id}/events`: what the partner's webhooks and event feed say about an order.

use actix_web::web;
use vouchsafe_domain::delivery::CommittedEvents;
use vouchsafe_domain::envelope::{Envelope, EventData};
use vouchsafe_domain::ids::OrderId;
use vouchsafe_wire::error_code::Code;

use super::find;
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, list_response};
use crate::api::operator::OperatorState;
use crate::api::path_id::Id;

pub(in crate::api::operator) async fn list_events(
    service: web::Data<OperatorState>,
    order_id: Id<OrderId>,
    ListRequest { page, .. }: ListRequest,
) -> ApiResult {
    let order = find(&service, &order_id).await?;
    let after: u32 = page.after()?.unwrap_or(0);
    let commits = service.store.orders.list_events(
        order.partner_id,
        order.order_id,
        order.created_at,
        after,
        page.fetch_limit(),
    );
    let commits = commits.await?;
    let events: Option<Vec<Envelope>> = commits
        .iter()
        .flat_map(|commit| events_after(commit, after))
        .take(page.fetch_limit())
        .collect();
    let events = events.ok_or_else(|| {
        tracing::error!(order.id = %order.order_id, "cannot expand the events of an order");
        ApiError::new(
            Code::InternalError,
            "a stored event could not be decoded; see the service log",
        )
    })?;
    list_response(&page, events, sequence_of)
}

/// The events of a commit after a sequence number; `None` for one that cannot be expanded.
fn events_after(commit: &CommittedEvents, after: u32) -> impl Iterator<Item = Option<Envelope>> {
    (commit.first_number..=commit.last_number())
        .filter(move |number| commit.sequence(*number) > Some(after))
        .map(|number| commit.envelope(number))
}

const fn sequence_of(event: &Envelope) -> u32 {
    match &event.data {
        EventData::Order(order) => order.sequence,
        EventData::Voucher(voucher) => voucher.sequence,
    }
}
