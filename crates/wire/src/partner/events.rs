//! Filter of `GET /events`. Its response is a page of envelopes.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;
use vouchsafe_domain::ids::EventId;

use crate::filter::ListFilter;

/// Filter of the event feed.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EventFilter {
    /// Return events after this one.
    #[param(value_type = Option<EventId>, inline)]
    pub after: Option<String>,
}

impl ListFilter for EventFilter {}
