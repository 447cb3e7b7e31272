//! Client commands: partner requests, operator commands, and checks of the database.
//!
//! Results go to standard output, everything else to standard error; `--json` prints the response unchanged,
//! except that all output ends with a line feed and has control and bidirectional characters as escapes.
//! [`ExitStatus`] lists the exit codes. The help of every command has a working example.

mod admin;
mod advice;
mod archive;
mod bulk;
mod call;
mod catalogue;
mod change_request;
mod client;
mod completions;
mod credential;
mod csv_export;
mod database;
mod drift;
mod examples;
mod exit;
mod health;
mod id;
mod keys;
mod man_pages;
mod migrate;
mod monitoring;
mod operator;
mod order;
mod output;
mod partner;
mod payout;
mod purchase;
mod reconciliation;
mod search;
pub mod stock;
mod stock_release;
mod stock_void;
mod table;
mod table_options;
mod target;
mod trouble;
mod upload;
mod vendor;
mod verify;
mod verify_checkpoints;
mod verify_grants;
mod voucher_file;
mod wallet;
mod webhook;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use self::exit::WaitingChange;
pub use self::exit::{ExitStatus, invalid_setting};
pub use self::id::with_validation;
pub use self::table::MAX_WIDTH;

use vouchsafe_domain::audit_log::AuditFilter;
use vouchsafe_domain::deceptive::escape_output;
use vouchsafe_domain::error_chain::describe_chain;
use vouchsafe_domain::period::Period;
use vouchsafe_security::console_url::ConsoleUrl;
use vouchsafe_security::environment::Environment;
use vouchsafe_security::framing::API_PREFIX;
use vouchsafe_security::listener::Listener;
use vouchsafe_security::secret_file::ExposedFile;
use vouchsafe_wire::operator::search::SearchQuery;

use self::admin::{AdminClient, AdminCommand, AdminQuery, ListArgs};
use self::client::ErrorResponse;

/// Heading of the options that say which service or database a command uses.
const CONNECTION_OPTIONS: &str = "Connection options";

/// Client commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send a signed partner request.
    Call(call::CallArgs),
    /// Manage partners and their terms.
    #[command(after_help = examples!["vouchsafe partner list"])]
    Partner(AdminCommand<partner::Action>),
    /// Issue, list and revoke credentials.
    #[command(after_help = examples!["vouchsafe credential list PARTNER_ID"])]
    Credential(AdminCommand<credential::Action>),
    /// Manage the categories of the catalogue.
    #[command(after_help = examples!["vouchsafe category list"])]
    Category(AdminCommand<catalogue::CategoryAction>),
    /// Manage the products of the catalogue.
    #[command(after_help = examples!["vouchsafe product list"])]
    Product(AdminCommand<catalogue::ProductAction>),
    /// Manage vendors.
    #[command(after_help = examples!["vouchsafe vendor list"])]
    Vendor(AdminCommand<vendor::Action>),
    /// Import vouchers, show stock levels, void vouchers.
    #[command(after_help = examples!["vouchsafe stock levels"])]
    Stock(AdminCommand<stock::Action>),
    /// List, top up and adjust wallets, and list their transactions.
    #[command(after_help = examples!["vouchsafe wallet top-up PARTNER_ID USD 1000.00 --reference bank-4711"])]
    Wallet(AdminCommand<wallet::Action>),
    /// List and end purchases from vendors.
    #[command(after_help = examples!["vouchsafe purchase list --state refused"])]
    Purchase(AdminCommand<purchase::Action>),
    /// Search, approve, reject, cancel and fulfil orders of all partners.
    #[command(after_help = examples!["vouchsafe order list"])]
    Order(AdminCommand<order::Action>),
    /// List and decide payouts of all partners.
    #[command(after_help = examples!["vouchsafe payout list --status PENDING"])]
    Payout(AdminCommand<payout::Action>),
    /// Compare vendor records with purchases.
    #[command(after_help = examples!["vouchsafe reconciliation show 2026-11-20"])]
    Reconciliation(AdminCommand<reconciliation::Action>),
    /// List and resolve differences between vendor records and purchases.
    #[command(after_help = examples!["vouchsafe drift list --resolution pending"])]
    Drift(AdminCommand<drift::Action>),
    /// List webhook endpoints and deliveries; enable and replay them.
    #[command(after_help = examples!["vouchsafe webhook list --status failing"])]
    Webhook(AdminCommand<webhook::Action>),
    /// List changes that need a second operator, confirm and decline them.
    #[command(after_help = examples!["vouchsafe request list --status WAITING"])]
    Request(AdminCommand<change_request::Action>),
    /// Decide on many orders, payouts, requests or drifts, or replay many deliveries, as one job.
    #[command(after_help = examples!["vouchsafe bulk list"])]
    Bulk(AdminCommand<bulk::Action>),
    /// Manage operators, their roles and API tokens.
    #[command(after_help = examples!["vouchsafe operator list"])]
    Operator(AdminCommand<operator::Action>),
    /// Find an object of any kind by its ID, or orders by their reference.
    #[command(after_help = examples!["vouchsafe search ORDER_ID", "vouchsafe search po-4711 --json"])]
    Search(AdminQuery<SearchQuery>),
    /// Show traffic, the numbers of orders, payouts and changes that wait for a decision, and low stock.
    #[command(after_help = examples!["vouchsafe overview"])]
    Overview(admin::AdminOptions),
    /// List the traffic of all nodes in a range of the last 30 days, by default of the last day.
    #[command(after_help = examples!["vouchsafe traffic --since 7d"])]
    Traffic(AdminQuery<Period>),
    /// Report what may need an operator: refused requests, failing webhooks, waiting work, low stock, open
    /// drifts, restarts.
    #[command(after_help = examples!["vouchsafe trouble --since 6h"])]
    Trouble(AdminQuery<trouble::TroubleArgs>),
    /// List live actors, the busiest first.
    #[command(after_help = examples![
        "vouchsafe actors --kind inventory --limit 20",
        "vouchsafe actors --kind inventory --key sbx-instant/2500",
    ])]
    Actors(AdminQuery<monitoring::ActorsArgs>),
    /// List the nodes of the deployment with lease, version and claimed stock.
    #[command(after_help = examples!["vouchsafe nodes"])]
    Nodes(AdminQuery<ListArgs>),
    /// List the lanes of a node with queue, last batch and commit time.
    #[command(after_help = examples!["vouchsafe lanes"])]
    Lanes(AdminQuery<ListArgs>),
    /// List the settings in force on a node, with their sources; values of secrets are not shown.
    #[command(after_help = examples!["vouchsafe settings"])]
    Settings(AdminQuery<ListArgs>),
    /// List audit entries, newest first; --json includes the state before and after.
    #[command(after_help = examples![
        "vouchsafe audit --subject PARTNER_ID",
        "vouchsafe audit --action credential.issue --since 2d --json",
    ])]
    Audit(AdminQuery<ListArgs<AuditFilter>>),
    /// List checkpoints of the audit trail's hash chain, newest first.
    #[command(after_help = examples!["vouchsafe checkpoints --limit 1", "vouchsafe checkpoints --check"])]
    Checkpoints(monitoring::CheckpointsArgs),
    /// List and rotate the keys that encrypt codes, on the database.
    #[command(after_help = examples!["vouchsafe keys list"])]
    Keys {
        #[command(subcommand)]
        action: keys::Action,
    },
    /// Run schema migrations, before an upgrade and in production before the first start.
    Migrate(migrate::MigrateArgs),
    /// Check every invariant in the database, with the service running or stopped.
    Verify(verify::VerifyArgs),
    /// Write past months of logs to files, list and check such archives, and remove from the database what
    /// they have.
    #[command(after_help = examples!["vouchsafe archive list"])]
    Archive {
        #[command(subcommand)]
        action: archive::Action,
    },
    /// Check that the service is ready: exit code 0 if it accepts orders.
    Health(health::HealthArgs),
    /// Print a shell completion script.
    Completions(completions::CompletionsArgs),
    /// Write a manual page per command.
    ManPages(man_pages::ManPagesArgs),
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
    console_url: ConsoleUrl,
    environment: Environment,
}

impl LocalService {
    #[must_use]
    pub fn of(
        data_dir: &Path,
        partners: Listener,
        operators: Listener,
        console_url: ConsoleUrl,
        environment: Environment,
    ) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            base_url: format!("{}{API_PREFIX}", partners.url()),
            admin_url: operators.url(),
            console_url,
            environment,
        }
    }
}

/// Runs a command. `program` describes the whole program, for completion scripts and manual pages.
#[must_use]
pub fn run(
    command: Command,
    json: bool,
    local_service: &LocalService,
    program: fn() -> clap::Command,
) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(dispatch(command, json, local_service, program)),
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(CommandOutput { text, succeeded }) => {
            print_output(&text);
            if succeeded {
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
            if let Some(waiting) = error.downcast_ref::<WaitingChange>() {
                print_output(&waiting.output);
            }
            print_error(&format!("vouchsafe: {}", describe_chain(&*error)));
            ExitStatus::of(&error).into()
        }
    }
}

async fn dispatch(
    command: Command,
    json: bool,
    local_service: &LocalService,
    program: fn() -> clap::Command,
) -> anyhow::Result<CommandOutput> {
    let admin = |options| AdminClient::new(options, json, local_service);
    match command {
        Command::Call(args) => call::run(args, json, local_service).await,
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
        Command::Operator(AdminCommand {
            action: operator::Action::Create(args),
            ..
        }) if args.admin => operator::create_admin(args, json, local_service).await,
        Command::Operator(AdminCommand {
            action: operator::Action::SignIn(args),
            ..
        }) if args.break_glass => operator::issue_link(args, json, local_service).await,
        Command::Operator(args) => operator::run(args.action, &admin(args.options)?).await,
        Command::Request(args) => change_request::run(args.action, &admin(args.options)?).await,
        Command::Bulk(args) => bulk::run(args.action, &admin(args.options)?).await,
        Command::Search(args) => search::run(&args.query, &admin(args.options)?).await,
        Command::Overview(options) => monitoring::overview(&admin(options)?).await,
        Command::Traffic(args) => monitoring::traffic(&args.query, &admin(args.options)?).await,
        Command::Trouble(args) => trouble::run(&args.query, &admin(args.options)?).await,
        Command::Actors(args) => monitoring::actors(&args.query, &admin(args.options)?).await,
        Command::Nodes(args) => monitoring::nodes(&args.query, &admin(args.options)?).await,
        Command::Lanes(args) => monitoring::lanes(&args.query, &admin(args.options)?).await,
        Command::Checkpoints(args) => {
            let AdminQuery { options, query } = args.list;
            monitoring::checkpoints(args.action, &query, &admin(options)?).await
        }
        Command::Keys { action } => keys::run(action, json, local_service).await,
        Command::Settings(args) => monitoring::settings(&args.query, &admin(args.options)?).await,
        Command::Audit(args) => monitoring::audit(&args.query, &admin(args.options)?).await,
        Command::Migrate(args) => migrate::run(args, json, local_service).await,
        Command::Verify(args) => verify::run(args, json, local_service).await,
        Command::Archive { action } => archive::run(action, json, local_service).await,
        Command::Health(args) => health::run(&args, json, local_service).await,
        Command::Completions(args) => completions::run(&args, program()),
        Command::ManPages(args) => man_pages::run(&args, program()),
    }
}

/// Ends the output with a line feed and escapes what a terminal would obey. Ignores a closed standard output:
/// the reader of a pipe may have exited.
fn print_output(text: &str) {
    if !text.is_empty() {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        drop(write!(std::io::stdout(), "{}{end}", escape_output(text)));
    }
}

fn warn_of(exposed: Option<&ExposedFile>) {
    if let Some(exposed) = exposed {
        print_error(&format!("vouchsafe: warning: {exposed}"));
    }
}

fn print_error(text: &str) {
    drop(writeln!(std::io::stderr(), "{}", escape_output(text)));
}
