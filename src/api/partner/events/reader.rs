//! Reads of the feed: of all events, of some types, of one order.

use time::Duration;
use vouchsafe_domain::delivery::CommittedEvents;
use vouchsafe_domain::envelope::Envelope;
use vouchsafe_domain::ids::{EventId, OrderId, PartnerId};
use vouchsafe_store::{FEED_DAYS, FeedPosition};
use vouchsafe_wire::partner::events::EventFilter;

use super::{not_found, undecodable};
use crate::api::error::ApiError;
use crate::api::partner::PartnerState;

/// Events that a page by type reads at a time, and how often: types have no index.
const STEP: usize = 100;
const MAX_STEPS: usize = 10;

pub(super) struct EventReader<'a> {
    pub(super) service: &'a PartnerState,
    pub(super) partner_id: PartnerId,
    pub(super) filter: &'a EventFilter,
    pub(super) limit: usize,
}

#[derive(Default)]
pub(super) struct EventPage {
    pub(super) events: Vec<Envelope>,
    /// The last event that was read, also if it does not match.
    pub(super) last: Option<EventId>,
    pub(super) has_more: bool,
}

impl EventReader<'_> {
    /// The number of the partner's newest event.
    pub(super) async fn last_number(&self) -> Result<i64, ApiError> {
        let deliveries = &self.service.store.deliveries;
        Ok(deliveries.last_event_number(self.partner_id).await?)
    }

    /// The page after an event.
    pub(super) async fn read(&self, after: Option<EventId>) -> Result<EventPage, ApiError> {
        match self.filter.order_id {
            Some(order_id) => self.read_order(order_id, after).await,
            None => self.read_feed(after).await,
        }
    }

    async fn read_feed(&self, after: Option<EventId>) -> Result<EventPage, ApiError> {
        let mut page = EventPage {
            last: after,
            ..EventPage::default()
        };
        let (step, steps) = match self.filter.event {
            None => (self.limit, 1),
            Some(_) => (STEP, MAX_STEPS),
        };
        for _ in 0..steps {
            let position = page.last.map_or(FeedPosition::Oldest, FeedPosition::After);
            let feed = self.service.node.read_feed(self.partner_id, position, step);
            let feed = feed.await?.ok_or_else(not_found)?;
            page.has_more = feed.has_more;
            for event in &feed.events {
                if !self.push(&mut page, &event.events, event.number)? {
                    return Ok(page);
                }
            }
            if !page.has_more || page.events.len() == self.limit {
                break;
            }
        }
        Ok(page)
    }

    /// Reads the events of an order, which have an index. `after` is one of them.
    async fn read_order(&self, order_id: OrderId, after: Option<EventId>) -> Result<EventPage, ApiError> {
        let mut page = EventPage {
            last: after,
            ..EventPage::default()
        };
        let sequence = match after {
            Some(event_id) => self.sequence_within(order_id, event_id).await?,
            None => 0,
        };
        let Some(order) = self.service.node.find_order(self.partner_id, order_id).await? else {
            return Ok(page);
        };
        let oldest = self.service.clock.now() - Duration::days(FEED_DAYS.into());
        let orders = &self.service.store.orders;
        let commits = orders.list_events(
            self.partner_id,
            order_id,
            order.created_at,
            sequence,
            self.limit + 1,
        );
        let commits = commits.await?;
        page.has_more = commits.len() > self.limit;
        for commit in commits.iter().filter(|commit| commit.created_at >= oldest) {
            for number in commit.first_number..=commit.last_number() {
                if commit.sequence(number) > Some(sequence) && !self.push(&mut page, commit, number)? {
                    return Ok(page);
                }
            }
        }
        Ok(page)
    }

    /// Adds an event that matches the filter. Returns false if the page is full.
    fn push(&self, page: &mut EventPage, commit: &CommittedEvents, number: i64) -> Result<bool, ApiError> {
        if page.events.len() == self.limit {
            page.has_more = true;
            return Ok(false);
        }
        let kind = commit.kind(number).ok_or_else(undecodable)?;
        if self
            .filter
            .event
            .as_ref()
            .is_none_or(|kinds| kinds.contains(&kind))
        {
            page.events.push(commit.envelope(number).ok_or_else(undecodable)?);
        }
        page.last = Some(commit.event_id(number));
        Ok(true)
    }

    async fn sequence_within(&self, order_id: OrderId, event_id: EventId) -> Result<u32, ApiError> {
        let deliveries = &self.service.store.deliveries;
        let found = deliveries.find_event(self.partner_id, event_id).await?;
        let found = found.ok_or_else(not_found)?;
        if found.events.bundle.order_id != order_id {
            let message = "expected an event of the order in `order_id`";
            return Err(ApiError::invalid_field("after", message));
        }
        found.events.sequence(found.number).ok_or_else(undecodable)
    }
}
