//! `GET /events`: what a partner was told of, in the order of the commits and without a gap.
//!
//! Rule: who has read up to an event has missed nothing before it. An event that is no longer there to begin behind is
//! refused, since what followed it may be gone, too.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_actors::domain::delivery::Letter;
use vouchsafe_actors::domain::envelope::Envelope;
use vouchsafe_actors::domain::ids::EventId;

use super::caller::Caller;
use super::list::Page;
use crate::errors::{ApiError, Code};
use crate::service::Service;
use crate::store::{FEED_DAYS, FeedPlace};

/// `GET /events`; filter: `after`.
///
/// # Errors
/// `EVENT_NOT_FOUND`, `VALIDATION_FAILED` and `INVALID_CURSOR`.
pub async fn list(
    service: web::Data<Service>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &["after"])?;
    let begun: Option<EventId> = page.after()?;
    let after = match begun {
        Some(event_id) => Some(event_id),
        None => page
            .filter("after")
            .map(|text| text.parse().map_err(|_| not_found()))
            .transpose()?,
    };
    let place = after.map_or(FeedPlace::Oldest, FeedPlace::After);
    let read = service
        .node
        .read_feed(caller.partner_id(), place, page.limit())
        .await?;
    let read = read.ok_or_else(not_found)?;
    let tell = |letter: &Letter| letter.told.envelope(letter.number);
    let events: Vec<Envelope> = read
        .letters
        .iter()
        .map(tell)
        .collect::<Option<_>>()
        .ok_or_else(|| ApiError::new(Code::InternalError, "an event could not be read"))?;
    let next = events.last().filter(|_| read.more).map(|event| event.event_id);
    Ok(HttpResponse::Ok().json(page.ending(events, next)))
}

/// There is no such event in the partner's feed.
#[must_use]
pub fn not_found() -> ApiError {
    ApiError::new(
        Code::EventNotFound,
        format!("there is no such event among yours of the last {FEED_DAYS} days"),
    )
}
