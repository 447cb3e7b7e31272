//! `/events`: event feed of a partner, in commit order and without gaps.
//!
//! A client that has read up to an event has missed none before it. `after` with an expired event is rejected, because
//! the events that followed it may have expired too.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::delivery::WebhookEvent;
use vouchsafe_domain::envelope::Envelope;
use vouchsafe_domain::ids::EventId;
use vouchsafe_store::{FEED_DAYS, FeedPosition};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::events::EventFilter;

use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::api::partner::PartnerState;
use crate::api::partner::authenticated_list::AuthenticatedList;
use crate::api::path_id::{Id, PathId as _};

pub(super) async fn list(
    service: web::Data<PartnerState>,
    AuthenticatedList { caller, page, filter }: AuthenticatedList<EventFilter>,
) -> ApiResult {
    let cursor: Option<EventId> = page.after()?;
    let after = match cursor {
        Some(event_id) => Some(event_id),
        None => filter
            .after
            .map(|text| text.parse().map_err(|_| not_found()))
            .transpose()?,
    };
    let position = after.map_or(FeedPosition::Oldest, FeedPosition::After);
    let feed = service
        .node
        .read_feed(caller.partner_id(), position, page.limit())
        .await?;
    let feed = feed.ok_or_else(not_found)?;
    let to_envelope = |event: &WebhookEvent| event.events.envelope(event.number);
    let events: Vec<Envelope> = feed
        .events
        .iter()
        .map(to_envelope)
        .collect::<Option<_>>()
        .ok_or_else(undecodable)?;
    let last = |events: &[Envelope]| events.last().map(|event| event.event_id.to_string());
    Ok(HttpResponse::Ok().json(page.body_of_part(&events, feed.has_more, last)?))
}

pub(super) async fn get(
    service: web::Data<PartnerState>,
    caller: AuthenticatedCaller,
    event_id: Id<EventId>,
) -> ApiResult {
    let deliveries = &service.store.deliveries;
    let found = deliveries
        .find_event(caller.partner_id(), event_id.parse()?)
        .await?;
    let found = found.ok_or_else(EventId::not_found)?;
    let envelope = found.events.envelope(found.number).ok_or_else(undecodable)?;
    Ok(HttpResponse::Ok().json(envelope))
}

fn undecodable() -> ApiError {
    ApiError::new(
        Code::InternalError,
        "a stored event could not be decoded; contact the operator",
    )
}

/// The error for an event that is not in the partner's feed.
pub(in crate::api) fn not_found() -> ApiError {
    ApiError::new(
        Code::EventNotFound,
        format!(
            "no such event in your feed of the last {FEED_DAYS} days; omit `after` to start with the oldest"
        ),
    )
}
