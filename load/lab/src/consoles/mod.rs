//! Cost of open consoles for orders: alternating turns without and with consoles, on one service with many live actors.
//!
//! Actors stay in memory once a request has started them: an order of a SKU starts its inventory actor, also if it is refused because
//! there is no stock, and a top-up starts a partner's wallet actor.

mod clients;
mod report;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use hyper::StatusCode;
use serde::Serialize;
use serde_json::Value;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;
use vouchsafe_load::audit::{Check, check_invariants};
use vouchsafe_load::deployment::TestDeployment;
use vouchsafe_load::deployment::operator::Operator;
use vouchsafe_load::deployment::postgres::SERVICE_DATABASE;
use vouchsafe_load::deployment::seed::{SeedData, product_id, seed};
use vouchsafe_load::resources::conditions::Conditions;
use vouchsafe_load::resources::database::DatabaseSettings;
use vouchsafe_load::statistics::{Spread, paired_ratios};

pub use self::clients::ConsoleTally;
use self::clients::Consoles;
use crate::compare::audit_method::AuditMethod;
use crate::compare::maintenance;
use crate::compare::turn::{LoadSettings, Target, Turn, run_turn};

/// Wallet balance of the partner of the load, in USD. The other wallets have as much.
const USD: u64 = 900_000_000;

/// Share of the live actors that are wallets: creating a partner takes two commits, starting an inventory actor none.
const WALLETS_PER_ACTOR: usize = 50;

/// Concurrent connections that start inventory actors.
const STARTERS: usize = 16;

/// Attempts per order that starts an actor: the first claims of thousands of SKUs overload the service for a moment.
const START_ATTEMPTS: u32 = 50;

const START_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Product whose face values are the SKUs without stock.
const PRODUCT_OF_ACTORS: &str = "actors";

/// Error code of an order of a SKU without stock, which has started the actor.
const NO_STOCK: &str = "INSUFFICIENT_INVENTORY";

/// Parameters of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct ConsolesPlan<'a> {
    pub service: &'a Path,
    /// Live actors before the first turn.
    pub actors: usize,
    pub consoles: usize,
    pub load: LoadSettings,
    pub rounds: usize,
    pub stock: u64,
}

/// A turn without and one with consoles, in alternating order.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    pub without: Turn,
    pub with: Turn,
    /// What the consoles received during their turn.
    pub received: ConsoleTally,
    /// Live actors after the turns.
    pub actors: u64,
}

/// Results of the measurement.
#[derive(Clone, Debug, Serialize)]
pub struct ConsolesReport {
    pub actors: usize,
    pub consoles: usize,
    pub rounds: Vec<Round>,
    pub verified: Check,
    pub conditions: Conditions,
}

impl ConsolesReport {
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.verified.passed
            && self
                .rounds
                .iter()
                .all(|round| self.rejection_reason(round).is_none())
    }

    /// Reason for a round that does not count.
    fn rejection_reason(&self, round: &Round) -> Option<String> {
        let turns = [&round.without, &round.with].into_iter();
        turns
            .filter_map(Turn::rejection_reason)
            .next()
            .or_else(|| round.received.rejection_reason(self.consoles))
            .or_else(|| {
                let missing = round.actors < self.actors as u64;
                missing.then(|| format!("{} of {} actors live", round.actors, self.actors))
            })
    }

    /// Orders per second with consoles, relative to those without, by round.
    fn ratio(&self) -> Option<Spread> {
        let rates = |of: fn(&Round) -> &Turn| -> Vec<_> {
            let counted = self
                .rounds
                .iter()
                .map(|round| match self.rejection_reason(round) {
                    Some(_) => None,
                    None => of(round).counted_rate(),
                });
            counted.collect()
        };
        paired_ratios(&rates(|round| &round.with), &rates(|round| &round.without))
    }
}

/// Runs the measurement; `report_progress` receives one line per step.
///
/// # Errors
/// If the service cannot be started, seeded, loaded or audited.
pub async fn measure_consoles(
    plan: &ConsolesPlan<'_>,
    report_progress: &mut impl FnMut(&str),
) -> anyhow::Result<ConsolesReport> {
    let mut deployment = TestDeployment::start(plan.service).await?;
    let conditions = Conditions::observe(Some(plan.service), Some(deployment.directory()));
    let wallets = (plan.actors / WALLETS_PER_ACTOR).max(1);
    let partners = seed(
        deployment.operator(),
        &SeedData::even(1, plan.stock, wallets, USD),
    )
    .await?;
    let credentials = partners
        .first()
        .context("no partner was created")?
        .credentials
        .clone();
    report_progress(&format!("{wallets} partners have a wallet actor"));
    start_inventory_actors(&mut deployment, &credentials, plan.actors.saturating_sub(wallets)).await?;
    let superuser = deployment.postgres()?.superuser_options();
    maintenance::disable_autovacuum(&superuser).await?;
    let database = superuser.database(SERVICE_DATABASE);
    let target = Target {
        url: deployment.base_url(),
        credentials,
        product: product_id(0),
        audit_method: AuditMethod::Api,
        monitored: deployment.monitor_target()?,
    };
    let mut rounds = Vec::with_capacity(plan.rounds);
    for number in 1..=plan.rounds {
        // The order alternates, so that neither kind of turn always has the larger tables.
        let mut turns = [None, None];
        let mut received = ConsoleTally::default();
        for with_consoles in [number % 2 == 0, number % 2 != 0] {
            maintenance::vacuum_and_checkpoint(&database).await?;
            let consoles = match with_consoles {
                true => Some(Consoles::open(&deployment, plan.consoles)?),
                false => None,
            };
            let turn = run_turn(&target, plan.load).await?;
            if let Some(consoles) = consoles {
                received = consoles.close()?;
            }
            let consoles = if with_consoles { plan.consoles } else { 0 };
            let orders_per_s = turn.orders_per_s;
            report_progress(&format!(
                "round {number}, consoles: {consoles}: {orders_per_s:.0} orders/s"
            ));
            turns[usize::from(with_consoles)] = Some(turn);
        }
        let [Some(without), Some(with)] = turns else {
            unreachable!("each round has a turn of both kinds")
        };
        rounds.push(Round {
            without,
            with,
            received,
            actors: count_actors(deployment.operator()).await?,
        });
    }
    let report = ConsolesReport {
        actors: plan.actors,
        consoles: plan.consoles,
        rounds,
        verified: check_invariants(deployment.program(), &deployment.data_dir()),
        conditions: conditions.completed(Some(DatabaseSettings::read(&database).await?)),
    };
    deployment.stop()?;
    Ok(report)
}

/// Orders one voucher of each of `count` SKUs without stock.
async fn start_inventory_actors(
    deployment: &mut TestDeployment,
    credentials: &Credentials,
    count: usize,
) -> anyhow::Result<()> {
    let last = u32::try_from(count)?.max(2);
    deployment
        .operator()
        .put_product_of_range(PRODUCT_OF_ACTORS, last)
        .await?;
    let numbers: Vec<usize> = (1..=count).collect();
    let url = deployment.base_url();
    let starters = numbers
        .chunks(count.div_ceil(STARTERS).max(1))
        .map(|numbers| order_each(PartnerClient::new(&url, credentials.clone()), numbers));
    futures_util::future::try_join_all(starters).await.map(drop)
}

async fn order_each(
    client: Result<PartnerClient, vouchsafe_api_client::origin::UrlError>,
    denominations: &[usize],
) -> anyhow::Result<()> {
    let mut client = client?;
    for denomination in denominations {
        let body = format!(
            r#"{{"items":[{{"product_id":"{PRODUCT_OF_ACTORS}","denomination":{denomination},"quantity":1}}]}}"#
        );
        let mut attempts = 1;
        loop {
            let response = client
                .order(&format!("start-{denomination}"), body.clone())
                .await?;
            let text = String::from_utf8_lossy(&response.body);
            if text.contains(NO_STOCK) {
                break;
            }
            ensure!(
                response.status == StatusCode::SERVICE_UNAVAILABLE && attempts < START_ATTEMPTS,
                "order of a SKU without stock: {} {text}",
                response.status
            );
            attempts += 1;
            tokio::time::sleep(START_RETRY_DELAY).await;
        }
    }
    Ok(())
}

/// The live actors of all kinds.
async fn count_actors(operator: &mut Operator) -> anyhow::Result<u64> {
    let actors: Value = operator.get("/admin/v1/actors?limit=1").await?.json()?;
    let sums = actors["sums"].as_array().context("/actors has no sums")?;
    Ok(sums.iter().filter_map(|kind| kind["actors"].as_u64()).sum())
}
