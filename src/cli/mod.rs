//! Client commands: partner requests, operator commands, and checks of the database.
//!
//! Results go to standard output, everything else to standard error; `--json` prints the response unchanged. [`ExitStatus`]
//! lists the exit codes. The help of every command has a working example.

mod admin;
mod advice;
mod call;
mod catalogue;
mod client;
mod completions;
mod credential;
mod drift;
mod examples;
mod exit;
mod id;
mod monitoring;
mod order;
mod output;
mod partner;
mod payout;
pub mod program;
mod purchase;
mod reconciliation;
mod stock;
mod upload;
mod vendor;
pub mod vendor_simulator;
mod verify;
mod vouchers;
mod wallet;
mod webhook;

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

pub use self::exit::ExitStatus;

use vouchsafe_security::framing::API_PREFIX;

use self::admin::AdminClient;
use self::client::ErrorResponse;
use self::examples::examples;
use crate::settings::ServeSettings;

/// Client commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send a signed partner request.
    Call(call::CallArgs),
    /// Manage partners and their terms.
    Partner(partner::PartnerArgs),
    /// Issue, list and revoke credentials.
    Credential(credential::CredentialArgs),
    /// Manage the categories of the catalogue.
    Category(catalogue::CategoryArgs),
    /// Manage the products of the catalogue.
    Product(catalogue::ProductArgs),
    /// Manage vendors.
    Vendor(vendor::VendorArgs),
    /// Import vouchers, show stock levels, void vouchers.
    Stock(stock::StockArgs),
    /// Top up and adjust wallets.
    Wallet(wallet::WalletArgs),
    /// List and end purchases from vendors.
    Purchase(purchase::PurchaseArgs),
    /// Search, approve, reject, cancel and fulfil orders of all partners.
    Order(order::OrderArgs),
    /// List and decide payouts of all partners.
    Payout(payout::PayoutArgs),
    /// Compare vendor records with purchases.
    Reconciliation(reconciliation::ReconciliationArgs),
    /// List and resolve differences between vendor records and purchases.
    Drift(drift::DriftArgs),
    /// List webhook endpoints and deliveries; enable and replay them.
    Webhook(webhook::WebhookArgs),
    /// List live actors, the busiest first.
    Actors(monitoring::ActorsArgs),
    /// List audit entries, newest first.
    Audit(monitoring::AuditArgs),
    /// Check every invariant in the database, with the service running or stopped.
    Verify(verify::VerifyArgs),
    /// Print a shell completion script.
    Completions(completions::CompletionsArgs),
}

/// Examples and exit codes at the end of `vouchsafe --help`.
#[must_use]
pub fn after_help() -> String {
    const EXAMPLES: &str = examples![
        "vouchsafe --http-addr 127.0.0.1:9080 --admin-addr 127.0.0.1:9081",
        "vouchsafe call GET /products",
    ];
    format!("{EXAMPLES}\n\n{}", ExitStatus::help_table())
}

/// Text to print, and whether the command succeeded.
#[derive(Debug)]
struct CommandOutput {
    text: String,
    succeeded: bool,
}

impl From<String> for CommandOutput {
    fn from(text: String) -> Self {
        Self {
            text,
            succeeded: true,
        }
    }
}

/// Default service of the commands: the one with the same settings.
#[derive(Debug)]
pub struct LocalService {
    /// Contains keys, tokens and credentials.
    data_dir: PathBuf,
    base_url: String,
    admin_url: String,
}

impl LocalService {
    #[must_use]
    pub fn of(data_dir: &Path, settings: &ServeSettings) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            base_url: format!("http://{}{API_PREFIX}", connectable_address(settings.http_addr)),
            admin_url: format!("http://{}", connectable_address(settings.admin_addr)),
        }
    }
}

/// A service that listens on all addresses is reachable on loopback.
fn connectable_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[must_use]
pub fn run(command: Command, local_service: &LocalService) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(dispatch(command, local_service)),
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(CommandOutput {
            text,
            succeeded: done,
        }) => {
            print_output(&text);
            if done {
                ExitStatus::Success
            } else {
                ExitStatus::Failure
            }
            .into()
        }
        Err(error) => {
            if let Some(raw) = error
                .downcast_ref::<ErrorResponse>()
                .and_then(ErrorResponse::raw_body)
            {
                print_output(raw);
            }
            print_error(&format!("vouchsafe: {error:#}"));
            ExitStatus::of(&error).into()
        }
    }
}

async fn dispatch(command: Command, local_service: &LocalService) -> anyhow::Result<CommandOutput> {
    let admin = |options| AdminClient::new(options, local_service);
    match command {
        Command::Call(args) => call::run(args, local_service).await,
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
        Command::Actors(args) => monitoring::actors(&args.query, &admin(args.options)?).await,
        Command::Audit(args) => monitoring::audit(&args.query, &admin(args.options)?).await,
        Command::Verify(args) => verify::run(args, &local_service.data_dir).await,
        Command::Completions(args) => completions::run(&args),
    }
}

/// Ignores a closed standard output: the reader of a pipe may have exited.
fn print_output(text: &str) {
    if !text.is_empty() {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        drop(write!(std::io::stdout(), "{text}{end}"));
    }
}

fn print_error(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}
