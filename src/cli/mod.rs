//! The commands that speak to a running service: as a partner, as an operator, or to its database.
//!
//! Rule: results go to the standard output, all else to the standard error; `--json` shows the answer as it came. The
//! exit code says how it ended ([`Exit`]). The help of every command has an example that works.

mod admin;
mod advice;
mod call;
mod catalogue;
mod client;
mod completions;
mod credential;
mod drift;
pub(crate) mod examples;
mod exit;
mod id;
mod look;
mod order;
mod partner;
mod payout;
mod purchase;
mod reconciliation;
mod show;
mod stock;
mod upload;
mod vendor;
mod verify;
mod vouchers;
mod wallet;
mod webhook;

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

pub use self::exit::Exit;

use self::admin::Admin;
use self::client::Refusal;
use self::examples::examples;
use crate::access::framing::API_PREFIX;
use crate::settings::ServeSettings;

/// What a client can ask for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sign and send a partner's request.
    Call(call::CallArgs),
    /// Partners: take them in, look at them, change their terms.
    Partner(partner::PartnerArgs),
    /// Credentials: issue, list and revoke them.
    Credential(credential::CredentialArgs),
    /// Categories of the catalogue.
    Category(catalogue::CategoryArgs),
    /// Products of the catalogue.
    Product(catalogue::ProductArgs),
    /// Vendors: who vouchers are bought from.
    Vendor(vendor::VendorArgs),
    /// Stock: import vouchers, see the levels, take some out of sale.
    Stock(stock::StockArgs),
    /// Wallets: add money, correct a balance.
    Wallet(wallet::WalletArgs),
    /// Purchases: what is bought from vendors, and what they said.
    Purchase(purchase::PurchaseArgs),
    /// Orders: look for them, whosever they are; approve, reject, cancel, fulfil by hand.
    Order(order::OrderArgs),
    /// Payouts: look for them; say that they were paid, or were not.
    Payout(payout::PayoutArgs),
    /// Reconciliation: compare the vendors' books with ours, see what came of it, bring books as a file.
    Reconciliation(reconciliation::ReconciliationArgs),
    /// Drifts: where a vendor's books and ours differ, and what is said of it.
    Drift(drift::DriftArgs),
    /// Webhooks: how partners' endpoints are doing, what failed, sending it again.
    Webhook(webhook::WebhookArgs),
    /// The live actors, the busiest first.
    Actors(look::ActorsArgs),
    /// The operators' trail, newest first.
    Audit(look::AuditArgs),
    /// Check every invariant on the database, with the service up or down.
    Verify(verify::VerifyArgs),
    /// Print what a shell needs to complete commands.
    Completions(completions::CompletionsArgs),
}

/// The end of the program's own help.
#[must_use]
pub fn closing_words() -> String {
    const EXAMPLES: &str = examples![
        "vouchsafe --http-addr 127.0.0.1:9080 --admin-addr 127.0.0.1:9081",
        "vouchsafe call GET /products",
    ];
    format!("{EXAMPLES}\n\n{}", Exit::table())
}

/// What a command has to show, and whether it did what was asked for.
#[derive(Debug)]
struct Outcome {
    text: String,
    done: bool,
}

impl From<String> for Outcome {
    fn from(text: String) -> Self {
        Self { text, done: true }
    }
}

/// The service that a command speaks to unless it is told of another: the one with the same settings.
#[derive(Debug)]
pub struct Nearby {
    /// Where it keeps keys, tokens and credentials.
    data_dir: PathBuf,
    /// Where it serves partners.
    base_url: String,
    /// Where it serves operators.
    admin_url: String,
}

impl Nearby {
    /// The service with these settings.
    #[must_use]
    pub fn of(data_dir: &Path, settings: &ServeSettings) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            base_url: format!("http://{}{API_PREFIX}", reachable(settings.http_addr)),
            admin_url: format!("http://{}", reachable(settings.admin_addr)),
        }
    }
}

/// Who listens on every address is reached on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Runs a command against the service that is meant.
#[must_use]
pub fn run(command: Command, nearby: &Nearby) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(dispatch(command, nearby)),
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(Outcome { text, done }) => {
            print(&text);
            if done { Exit::Done } else { Exit::Refused }.into()
        }
        Err(error) => {
            if let Some(raw) = error.downcast_ref::<Refusal>().and_then(Refusal::raw) {
                print(raw);
            }
            complain(&format!("vouchsafe: {error:#}"));
            Exit::of(&error).into()
        }
    }
}

async fn dispatch(command: Command, nearby: &Nearby) -> anyhow::Result<Outcome> {
    let admin = |options| Admin::new(options, nearby);
    match command {
        Command::Call(args) => call::run(args, nearby).await,
        Command::Partner(args) => partner::run(args.action, &admin(args.options)?).await,
        Command::Credential(args) => credential::run(args.action, &admin(args.options)?).await,
        Command::Category(args) => catalogue::category(args.action, &admin(args.options)?).await,
        Command::Product(args) => catalogue::product(args.action, &admin(args.options)?).await,
        Command::Vendor(args) => vendor::run(args.action, &admin(args.options)?).await,
        Command::Stock(args) => stock::run(args.action, &admin(args.options)?).await,
        Command::Wallet(args) => wallet::run(args.action, &admin(args.options)?).await,
        Command::Purchase(args) => purchase::run(args.action, &admin(args.options)?).await,
        Command::Order(args) => order::run(args.action, &admin(args.options)?).await,
        Command::Payout(args) => payout::run(args.action, &admin(args.options)?).await,
        Command::Reconciliation(args) => reconciliation::run(args.action, &admin(args.options)?).await,
        Command::Drift(args) => drift::run(args.action, &admin(args.options)?).await,
        Command::Webhook(args) => webhook::run(args.action, &admin(args.options)?).await,
        Command::Actors(args) => look::actors(&args.query, &admin(args.options)?).await,
        Command::Audit(args) => look::audit(&args.query, &admin(args.options)?).await,
        Command::Verify(args) => verify::run(args, &nearby.data_dir).await,
        Command::Completions(args) => completions::run(&args),
    }
}

/// To the standard output. Nobody may be reading any more, which is no failure of ours.
fn print(text: &str) {
    if !text.is_empty() {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        drop(write!(std::io::stdout(), "{text}{end}"));
    }
}

/// To the standard error.
fn complain(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}
