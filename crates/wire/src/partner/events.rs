//! Filter of `GET /events`. Its response is a page of envelopes.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;
use vouchsafe_domain::comma_list::CommaList;
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_domain::ids::{EventId, OrderId};

use crate::filter::ListFilter;

/// Filter of the event feed.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EventFilter {
    /// Return events after this one.
    #[param(value_type = Option<EventId>, inline)]
    pub after: Option<String>,
    /// Filter by type; several are separated by commas.
    #[param(value_type = Option<Vec<EventKind>>, style = Form, explode = false, min_items = 1)]
    pub event: Option<CommaList<EventKind>>,
    /// Filter by order. `after` must be an event of this order then.
    #[param(inline)]
    pub order_id: Option<OrderId>,
}

impl ListFilter for EventFilter {}
