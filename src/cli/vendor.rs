//! `vouchsafe vendor`: vendors and their adapters.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::CommandOutput;
use super::admin::{AdminClient, AdminOptions, PageOptions, percent_encode};
use super::call::read_text;
use super::examples::examples;
use super::output::Column;

const COLUMNS: [Column; 6] = [
    ("VENDOR", "vendor_id"),
    ("ADAPTER", "adapter"),
    ("URL", "url"),
    ("CREDENTIALS", "has_credentials"),
    ("CONCURRENCY", "concurrency"),
    ("UPDATED", "updated_at"),
];

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe vendor list"])]
pub struct VendorArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: VendorAction,
}

#[derive(Debug, Subcommand)]
pub(super) enum VendorAction {
    /// Create or replace a vendor.
    Put(PutVendorArgs),
    /// List vendors, without credentials.
    #[command(after_help = examples!["vouchsafe vendor list --json"])]
    List(PageOptions),
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe vendor put by-hand --adapter manual",
    "vouchsafe vendor put acme-cards --adapter http --url https://vendor.example --credentials @credential.txt",
])]
pub(super) struct PutVendorArgs {
    /// Vendor ID.
    vendor_id: String,
    /// Adapter: mock (sandbox only), http (the vendor protocol) or manual (you fulfil the orders).
    #[arg(long, value_parser = ["mock", "http", "manual"])]
    adapter: String,
    /// URL of the vendor's API, for http only.
    #[arg(long)]
    url: Option<String>,
    /// Bearer token, for http only: @FILE, - for standard input, or the text, which other users of this machine may see
    /// [default: the stored one, unless the url changes].
    #[arg(long, value_name = "TEXT")]
    credentials: Option<String>,
    /// Maximum number of purchases in flight [default: 4].
    #[arg(long, value_name = "N")]
    concurrency: Option<u16>,
}

pub(super) async fn run(action: VendorAction, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        VendorAction::Put(args) => {
            let path = format!("/vendors/{}", percent_encode(&args.vendor_id));
            admin.change(Method::PUT, &path, Some(&vendor_body(args)?)).await
        }
        VendorAction::List(page) => admin.show_list("/vendors", &page.query(), &COLUMNS).await,
    }
}

fn vendor_body(args: PutVendorArgs) -> anyhow::Result<Value> {
    let credentials = args.credentials.as_deref().map(read_text).transpose()?;
    // A file ends with a line feed, which is not part of the credential.
    let credentials = credentials.map(|text| json!(text.trim_end()));
    let fields = [
        ("adapter", Some(json!(args.adapter))),
        ("url", args.url.map(Value::from)),
        ("credentials", credentials),
        ("concurrency", args.concurrency.map(Value::from)),
    ];
    let present = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(Value::Object(present.collect::<Map<_, _>>()))
}
