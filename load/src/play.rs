//! How is a scenario played? Furnish a stand, note what its partners have, load it, hold up its Postgres where the
//! scenario says so, and audit: over the partners' API, the operators', and on the database.

mod after;

use std::time::Instant;

use tokio::runtime::Runtime;

use self::after::{after, aftermath};
use crate::audit::{Account, audit_all, expected_refusals, kept_answers, stock_sold, verified};
use crate::books::Books;
use crate::client::DEFAULT_TIMEOUT;
use crate::database::Database;
use crate::drive::{Drive, Signing, drive};
use crate::keeps::{Keeps, Past};
use crate::machine::Machine;
use crate::partner::PartnerClient;
use crate::pauses::{PauseError, Pauses};
use crate::progress::{Bar, Progress};
use crate::receiver::Receiver;
use crate::report::{Figures, Question, Report, Setup};
use crate::run::{Length, Ran, RunError};
use crate::scenario::{Scenario, ScenarioError};
use crate::signer::Credentials;
use crate::stand::furnish::furnish;
use crate::stand::operator::OperatorError;
use crate::stand::postgres::SERVICE;
use crate::stand::{Stand, StandError};
use crate::traffic::Traffic;
use crate::watch::Watch;

/// How the generator itself works, whatever the scenario.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// When requests are signed.
    pub signing: Signing,
    /// What chance begins with.
    pub seed: u64,
    /// Threads of the generator, at least one.
    pub threads: usize,
    /// Whole orders to keep for the audit, at most.
    pub samples: usize,
}

/// Why a scenario could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The scenario is none.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The stand is none.
    #[error(transparent)]
    Stand(#[from] StandError),
    /// It could not be furnished.
    #[error("cannot furnish the stand")]
    Furnish(#[from] OperatorError),
    /// What the partners have could not be read.
    #[error("cannot read what the partners have: {0}")]
    Account(String),
    /// The generator could not start.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A partner could not have an endpoint.
    #[error("cannot make the receiver a partner's endpoint: {0}")]
    Endpoint(String),
    /// Postgres could not be held up.
    #[error(transparent)]
    Pause(#[from] PauseError),
    /// The database could not be read.
    #[error("cannot read the database")]
    Database(#[from] sqlx::Error),
    /// Nobody can watch what it uses.
    #[error("cannot watch what is used")]
    Watch(#[source] anyhow::Error),
    /// There is no runtime, or no thread.
    #[error("cannot start a runtime or a thread")]
    Runtime(#[from] std::io::Error),
}

/// Plays a scenario on a stand that has played nothing before. Blocks until it is audited.
///
/// # Errors
/// [`PlayError`] if it could not be played; what the service does wrong is in the report.
pub fn play(scenario: &Scenario, stand: &mut Stand, options: Options) -> Result<Report, PlayError> {
    scenario.sensible()?;
    let traffic = Traffic::of(scenario)?;
    let forms = traffic.forms();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let machine = Machine::before();
    let began = Instant::now();
    let buyers = runtime.block_on(furnish(stand.operator(), &scenario.furnishing()))?;
    let furnished = began.elapsed();
    let credentials: Vec<_> = buyers.into_iter().map(|buyer| buyer.credentials).collect();
    let url = stand.base_url();
    let mut accounts = open_accounts(&runtime, &url, &credentials)?;
    let postgres = stand.postgres()?;

    let receiver = match scenario.webhooks {
        true => Some(endpoints(&runtime, &url, &credentials)?),
        false => None,
    };
    let pauses = match scenario.pauses {
        Some(pauses) => Some(Pauses::begin(pauses, &postgres.superuser(), SERVICE)?),
        None => None,
    };
    let progress = Progress::default();
    let watch = Watch::over(stand.subject()?, &progress, scenario.length())?;
    let mut ran = load(scenario, &traffic, url.clone(), &credentials, options, &progress)?;
    let loaded = Instant::now();
    let pauses = pauses.map(Pauses::end).transpose()?;
    let watched = watch.end().map_err(PlayError::Watch)?;

    let figures = Figures::of(setup(scenario, url, forms, options), &ran);
    let callers = (credentials.as_slice(), &traffic);
    let (mut after, checks) = after(scenario, (&runtime, stand), callers, options, &mut ran)?;
    after.aftermath = aftermath(pauses.as_ref(), &ran);
    let refusals = expected_refusals(&ran.tally, &scenario.refusals);
    let answers = kept_answers(&ran.tally.broken);
    let (mut audit, books) = runtime.block_on(audit_all(&mut accounts, ran.tally.books));
    audit.checks.extend([refusals, answers]);
    audit.checks.extend(checks);
    if let Some(receiver) = receiver {
        let (delivered, check) = receiver.end(events(&books), loaded)?;
        after.delivered = Some(delivered);
        audit.checks.push(check);
    }
    let vouchers = books.vouchers.len();
    audit
        .checks
        .push(runtime.block_on(stock_sold(stand.operator(), vouchers)));
    // Another server than before, where the service was killed.
    let postgres = stand.postgres()?;
    let facts = runtime.block_on(async {
        let mut database = Database::connect_with(&postgres.service()).await?;
        database.facts().await
    })?;
    audit.checks.push(verified(stand.program(), &stand.data_dir()));
    Ok(Report {
        scenario: Some(Question {
            name: scenario.name.clone(),
            question: scenario.question.clone(),
            furnished_s: furnished.as_secs_f64(),
            pauses: pauses.map(|pauses| pauses.len() as u64),
        }),
        figures,
        after,
        watched,
        audit,
        machine: machine.after(),
        database: Some(facts),
    })
}

/// A receiver, which is every partner's endpoint.
fn endpoints(runtime: &Runtime, url: &str, credentials: &[Credentials]) -> Result<Receiver, PlayError> {
    let receiver = Receiver::start()?;
    let taken = runtime.block_on(receiver.take_from(url, credentials));
    taken.map_err(PlayError::Endpoint)?;
    Ok(receiver)
}

/// How many events tell of these orders, all of them delivered at once: created, each voucher issued, delivered.
fn events(books: &Books) -> u64 {
    2 * books.orders + books.vouchers.len() as u64
}

fn open_accounts(
    runtime: &Runtime,
    url: &str,
    credentials: &[Credentials],
) -> Result<Vec<Account>, PlayError> {
    let open = |credentials: &Credentials| {
        let client = PartnerClient::new(url, credentials.clone()).map_err(RunError::Url)?;
        runtime
            .block_on(Account::open(client))
            .map_err(PlayError::Account)
    };
    credentials.iter().map(open).collect()
}

fn load(
    scenario: &Scenario,
    traffic: &Traffic,
    base_url: String,
    partners: &[Credentials],
    options: Options,
    progress: &Progress,
) -> Result<Ran, RunError> {
    let bar = Bar::of(progress, scenario.warm_up() + scenario.length());
    let plan = Drive {
        base_url,
        partners: partners.to_vec(),
        traffic: traffic.clone(),
        pace: scenario.pace,
        signing: options.signing,
        seed: options.seed,
        threads: options.threads,
        warm_up: scenario.warm_up(),
        length: match scenario.replays {
            Some(replays) => Length::Orders(replays.orders),
            None => Length::Time(scenario.length()),
        },
        timeout: DEFAULT_TIMEOUT,
        samples: options.samples,
        keeps: Keeps {
            past: match scenario.replays {
                Some(_) => Past::Kept,
                None => Past::AsNeeded,
            },
            moments: scenario.pauses.is_some(),
        },
    };
    let ran = drive(plan, progress);
    drop(bar);
    ran
}

fn setup(scenario: &Scenario, url: String, forms: Vec<String>, options: Options) -> Setup {
    Setup {
        url,
        order: format!("{} partners, {} SKUs", scenario.partners, scenario.skus.count),
        pace: scenario.pace.to_string(),
        signing: options.signing.in_words(),
        seed: options.seed,
        forms,
        threads: options.threads,
        warm_up_s: scenario.warm_up_s,
    }
}
