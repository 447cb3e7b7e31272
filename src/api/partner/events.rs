//! `/events`: event feed of a partner, in commit order and without gaps.
//!
//! A client that has read up to an event has missed none before it. `after` with an expired event is
//! rejected, because the events that followed it may have expired too.

mod reader;

use std::cell::{Cell, RefCell};

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_domain::envelope::Envelope;
use vouchsafe_domain::ids::EventId;
use vouchsafe_store::FEED_DAYS;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::page::PageRequest;
use vouchsafe_wire::partner::events::EventFilter;
use vouchsafe_wire::preference::PREFERENCE_APPLIED;

use self::reader::{EventPage, EventReader};
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::api::middleware::response_delivery;
use crate::api::partner::PartnerState;
use crate::api::partner::authenticated_list::AuthenticatedList;
use crate::api::partner::wait_preference;
use crate::api::path_id::{Id, PathId as _};

/// A long poll with `Prefer: wait=N`, if the page is empty.
pub(super) async fn list(
    service: web::Data<PartnerState>,
    AuthenticatedList { caller, page, filter }: AuthenticatedList<EventFilter>,
    request: HttpRequest,
) -> ApiResult {
    let cursor: Option<EventId> = page.after()?;
    let after = match (cursor, &filter.after) {
        (Some(event_id), _) => Some(event_id),
        (None, Some(text)) => Some(text.parse().map_err(|_| not_found())?),
        (None, None) => None,
    };
    let reader = EventReader {
        service: &service,
        partner_id: caller.partner_id(),
        filter: &filter,
        limit: page.limit(),
    };
    let requested = wait_preference(&request);
    let Some(wait) = requested else {
        return Ok(HttpResponse::Ok().json(body(&page, &reader.read(after).await?)?));
    };
    // Before the page is read: a later event has a greater number.
    let known = Cell::new(reader.last_number().await?);
    let found = RefCell::new(reader.read(after).await?);
    let is_empty = |page: &EventPage| page.events.is_empty() && !page.has_more;
    let mut granted = Some(wait);
    if is_empty(&found.borrow()) {
        let topic = caller.partner_id().as_uuid();
        let subscription = service.engine.long_polls.subscribe(caller.family_id, topic);
        let has_new = || async {
            let number = reader.last_number().await?;
            if number <= known.replace(number) {
                return Ok(false);
            }
            let last = found.borrow().last;
            let next = reader.read(last).await?;
            let is_over = !is_empty(&next);
            found.replace(next);
            Ok::<_, ApiError>(is_over)
        };
        match subscription {
            Some(subscription) => {
                let wait = subscription.wait(wait.duration(), has_new);
                response_delivery::wait_without_permit(&request, &service, caller.family_id, wait).await?;
            }
            None => granted = None,
        }
    }
    let mut response = HttpResponse::Ok();
    if let Some(wait) = granted {
        response.insert_header((PREFERENCE_APPLIED, wait.applied()));
    }
    Ok(response.json(body(&page, &found.into_inner())?))
}

fn body(page: &PageRequest, found: &EventPage) -> Result<impl serde::Serialize, serde_json::Error> {
    let next = |part: &[Envelope]| match part.len() == found.events.len() {
        // With a filter, later than the last event of the page.
        true => found.last.map(|last| last.to_string()),
        false => part.last().map(|event| event.event_id.to_string()),
    };
    page.body_of_part(&found.events, found.has_more, next)
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
