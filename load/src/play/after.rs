//! What does a scenario do when its load is over? The service is killed and started again, and asked for what it answered
//! before, as far as the scenario says so.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::{Options, PlayError};
use crate::aftermath::{Aftermath, Pause};
use crate::audit::Check;
use crate::client::DEFAULT_TIMEOUT;
use crate::drive::{Drive, Signing, drive};
use crate::keeps::{Keeps, Past, SentOrders};
use crate::progress::{Bar, Progress};
use crate::replays::{self, Replayed};
use crate::report::After;
use crate::restart::{Callers, Restarts, restart};
use crate::run::{Length, Ran};
use crate::scenario::{Pace, Replays, Scenario};
use crate::signer::Credentials;
use crate::stand::Stand;
use crate::traffic::Traffic;

/// Does it; what was acknowledged and answered meanwhile is in the tally of the run afterwards.
pub(super) fn after(
    scenario: &Scenario,
    (runtime, stand): (&Runtime, &mut Stand),
    (partners, traffic): (&[Credentials], &Traffic),
    options: Options,
    ran: &mut Ran,
) -> Result<(After, Vec<Check>), PlayError> {
    let (mut after, mut checks) = (After::default(), Vec::new());
    // What is replayed from the database alone needs a start that remembers nothing.
    let times = scenario.restarts.max(u64::from(scenario.replays.is_some()));
    let callers = Callers {
        partners,
        traffic,
        seed: options.seed,
    };
    let books = &mut ran.tally.books;
    let took = runtime.block_on(restart(stand, times, &callers, books))?;
    after.restarts = Restarts::of(&took);
    if let Some(replays) = scenario.replays {
        let sent = Arc::new(std::mem::take(&mut ran.sent));
        let orders_per_s = ran.tally.latency_us.len() as f64 / ran.measured_for.as_secs_f64();
        let again = replay(scenario, replays, stand.base_url(), &callers, options, &sent)?;
        after.replayed = Replayed::of(&again, sent.count(), orders_per_s);
        checks.push(replays::check(&again.tally));
        ran.tally.merge(again.tally);
    }
    Ok((after, checks))
}

/// How soon everything was as before.
pub(super) fn aftermath(pauses: Option<&Vec<Pause>>, ran: &Ran) -> Option<Aftermath> {
    Aftermath::of(pauses?, ran.tally.moments.as_ref()?)
}

fn replay(
    scenario: &Scenario,
    replays: Replays,
    base_url: String,
    callers: &Callers<'_>,
    options: Options,
    sent: &Arc<SentOrders>,
) -> Result<Ran, PlayError> {
    let (progress, length) = (Progress::default(), Duration::from_secs(replays.seconds));
    let plan = Drive {
        base_url,
        partners: callers.partners.to_vec(),
        traffic: callers.traffic.clone().replays(),
        pace: Pace::Closed {
            connections: scenario.pace.connections(),
        },
        signing: Signing::OnTheFly,
        seed: options.seed,
        threads: options.threads,
        warm_up: Duration::ZERO,
        length: Length::Time(length),
        timeout: DEFAULT_TIMEOUT,
        samples: 0,
        keeps: Keeps {
            past: Past::Of(Arc::clone(sent)),
            moments: false,
        },
    };
    let bar = Bar::of(&progress, length);
    let ran = drive(plan, &progress);
    drop(bar);
    Ok(ran?)
}
