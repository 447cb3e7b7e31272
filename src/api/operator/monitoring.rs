//! `GET /overview`, `/samples`, `/live`, `/refusals` and `/settings`: waiting work of the deployment;
//! traffic, refusals and settings of this node.

use std::time::Duration;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, VARY};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use vouchsafe_domain::ids::OperatorSessionId;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::WholeList;
use vouchsafe_wire::operator::actors::ActorsQuery;
use vouchsafe_wire::operator::live::{LiveEvent, SampleList, SamplesQuery};
use vouchsafe_wire::operator::monitoring;
use vouchsafe_wire::operator::refusals::{RefusalCount, RefusalsQuery};

use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult};
use crate::api::header::accepts;
use crate::api::list_request::{ListRequest, ValidatedQuery, sorted_list_response};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::endpoint::bind;
use crate::api::operator::{actors, audit, nodes, search, traffic};
use crate::live::{Feed, FeedFormat};
use crate::live_actors::list_actors;
use crate::overview::read_overview;

pub(super) fn endpoints() -> [Endpoint; monitoring::OPERATIONS.len()] {
    [
        bind(monitoring::SEARCH, search::find),
        bind(monitoring::GET_OVERVIEW, overview),
        bind(monitoring::LIST_SAMPLES, samples),
        bind(monitoring::LIST_TRAFFIC, traffic::list),
        bind(monitoring::FOLLOW_LIVE_FEED, follow),
        bind(monitoring::LIST_SETTINGS, list_settings),
        bind(monitoring::LIST_REFUSALS, list_refusals),
        bind(monitoring::LIST_ACTORS, actors::list),
        bind(monitoring::GET_ACTOR, actors::get),
        bind(monitoring::LIST_NODES, nodes::list),
        bind(monitoring::LIST_LANES, nodes::list_lanes),
        bind(monitoring::LIST_AUDIT, audit::list),
        bind(monitoring::LIST_AUDIT_CHECKPOINTS, audit::list_checkpoints),
        bind(monitoring::WRITE_AUDIT_CHECKPOINT, audit::write_checkpoint),
    ]
}

/// After this time a feed ends and its client connects again, so that the token is checked again; a feed with
/// a session goes on if that has not ended.
const FEED_TIMEOUT: Duration = Duration::from_secs(60);

/// A client that reads nothing for so long has gone.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a feed without events looks whether the service stops.
const GATE_INTERVAL: Duration = Duration::from_secs(1);

/// Milliseconds after which the client of a feed connects again.
const FEED_START: &[u8] = b"retry: 1000\n\n";

const EVENT_STREAM: &str = "text/event-stream";

/// `GET /overview`.
async fn overview(service: web::Data<OperatorState>) -> ApiResult {
    let overview = read_overview(&service, &service.store).await?;
    Ok(HttpResponse::Ok().json(&*overview))
}

/// `GET /settings`.
async fn list_settings(
    service: web::Data<OperatorState>,
    ListRequest { page, .. }: ListRequest<WholeList>,
) -> ApiResult {
    let mut settings = service.settings.clone();
    settings.sort_by(|left, right| left.name.cmp(&right.name));
    sorted_list_response(&page, settings, |setting| setting.name.clone())
}

/// `GET /samples`.
async fn samples(
    service: web::Data<OperatorState>,
    ValidatedQuery(query): ValidatedQuery<SamplesQuery>,
) -> HttpResponse {
    HttpResponse::Ok().json(SampleList {
        data: service.live.samples(query.period),
    })
}

/// `GET /refusals`.
async fn list_refusals(
    service: web::Data<OperatorState>,
    ListRequest { page, filter }: ListRequest<RefusalsQuery>,
) -> ApiResult {
    let period = Duration::from_hours(filter.hours.get() as u64);
    let counts = service.refusal_counts.list(period, service.clock.monotonic());
    let counts: Vec<_> = counts
        .into_iter()
        .filter(|(key, _)| filter.partner_id.is_none() || key.partner_id == filter.partner_id)
        .map(|(key, requests)| RefusalCount::new(key.code, key.partner_id, requests))
        .collect();
    sorted_list_response(&page, counts, RefusalCount::cursor)
}

/// `GET /live`: one event as JSON, or a stream of them for a client that accepts it.
async fn follow(service: web::Data<OperatorState>, operator: Operator, request: HttpRequest) -> ApiResult {
    if !accepts(&request, EVENT_STREAM) {
        let mut response = HttpResponse::Ok();
        response.insert_header((VARY, "Accept"));
        return Ok(match service.live.recent_event() {
            Some(json) => response.content_type("application/json").body(json),
            None => response.json(LiveEvent {
                sample: service.live.last_second(),
                overview: service.live.overview().as_deref(),
                actors: &list_actors(&service, ActorsQuery::default()),
            }),
        });
    }
    follow_feed(service, &operator, FeedFormat::Json)
}

/// The live feed for pages of the console, as rows of their tables.
pub(super) async fn follow_as_rows(service: web::Data<OperatorState>, operator: Operator) -> ApiResult {
    follow_feed(service, &operator, FeedFormat::Console)
}

/// A stream of the feed's events.
///
/// # Errors
/// `SERVICE_UNAVAILABLE` if too many feeds are open.
fn follow_feed(service: web::Data<OperatorState>, operator: &Operator, format: FeedFormat) -> ApiResult {
    let feed = service.live.follow().ok_or_else(|| {
        ApiError::new(
            Code::ServiceUnavailable,
            "too many live feeds are open on this node; close one, or poll GET /overview",
        )
    })?;
    let (sender, receiver) = mpsc::channel(1);
    #[allow(
        clippy::disallowed_methods,
        reason = "it ends with its response, and within a second when the service stops"
    )]
    actix_web::rt::spawn(send_events(
        feed,
        format,
        sender,
        service,
        operator.session().map(|session| session.session_id),
    ));
    let events = stream::unfold(receiver, |mut receiver| async move {
        let event = receiver.recv().await?;
        Some((Ok::<_, actix_web::Error>(event), receiver))
    });
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, EVENT_STREAM))
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((VARY, "Accept"))
        .insert_header(("X-Accel-Buffering", "no")) // nginx would send the events in blocks
        .streaming(events))
}

/// Sends the events of a feed until its time is over, its client does not read them, or the service stops.
/// Apart from the response, whose stream is not polled while the client does not read.
async fn send_events(
    mut feed: Feed,
    format: FeedFormat,
    sender: mpsc::Sender<Bytes>,
    service: web::Data<OperatorState>,
    session: Option<OperatorSessionId>,
) {
    let mut ends_at = Instant::now() + FEED_TIMEOUT;
    let mut event = Bytes::from_static(FEED_START);
    loop {
        if !matches!(timeout(CLIENT_TIMEOUT, sender.send(event)).await, Ok(Ok(()))) {
            return;
        }
        while timeout(GATE_INTERVAL, feed.events.changed()).await.is_err() {
            if Instant::now() >= ends_at || !service.gate.is_open() || sender.is_closed() {
                break;
            }
        }
        if Instant::now() >= ends_at && is_live(&service, session).await {
            ends_at += FEED_TIMEOUT;
        }
        if Instant::now() >= ends_at || !service.gate.is_open() || sender.is_closed() {
            return;
        }
        event = feed.events.borrow_and_update().text(format);
    }
}

/// Whether the session of a feed has not ended. A feed with a token ends: its client connects again with the
/// token.
async fn is_live(service: &OperatorState, session: Option<OperatorSessionId>) -> bool {
    let Some(session_id) = session else {
        return false;
    };
    let found = service.store.operators.find_session(session_id).await;
    let now = service.clock.now();
    found.is_ok_and(|session| {
        session.is_some_and(|session| session.ended_at.is_none() && session.expires_at > now)
    })
}
