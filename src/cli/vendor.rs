//! `vouchsafe vendor`: who vouchers are bought from.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::Outcome;
use super::admin::{Admin, AdminOptions, PageOptions, escaped};
use super::call::read_text;
use super::examples::examples;
use super::show::Column;

const COLUMNS: [Column; 6] = [
    ("VENDOR", "vendor_id"),
    ("ADAPTER", "adapter"),
    ("URL", "url"),
    ("CREDENTIALS", "has_credentials"),
    ("CONCURRENCY", "concurrency"),
    ("UPDATED", "updated_at"),
];

/// Arguments of `vouchsafe vendor`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe vendor list"])]
pub struct VendorArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: VendorAction,
}

/// What can be done to vendors.
#[derive(Debug, Subcommand)]
pub(super) enum VendorAction {
    /// Put a vendor in, or in the place of the one with its id.
    Put(PutArgs),
    /// List the vendors. Their credentials are never shown.
    #[command(after_help = examples!["vouchsafe vendor list --json"])]
    List(PageOptions),
}

/// A vendor.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe vendor put by-hand --adapter manual",
    "vouchsafe vendor put acme-cards --adapter http --url https://vendor.example --credentials @credential.txt",
])]
pub(super) struct PutArgs {
    /// Its id.
    vendor_id: String,
    /// What speaks to it: the sandbox's own, the vendor protocol, or an operator who fulfils by hand.
    #[arg(long, value_parser = ["mock", "http", "manual"])]
    adapter: String,
    /// Where it is, for http alone.
    #[arg(long)]
    url: Option<String>,
    /// What it is shown, for http alone: @FILE, - for the standard input, or the text, which other users of this machine
    /// may see. Left out, what is kept stays, unless the url changes.
    #[arg(long, value_name = "TEXT")]
    credentials: Option<String>,
    /// How many purchases may be under way with it at a time; 4 where nothing is said.
    #[arg(long, value_name = "N")]
    concurrency: Option<u16>,
}

/// Runs `vouchsafe vendor`.
pub(super) async fn run(action: VendorAction, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        VendorAction::Put(args) => {
            let path = format!("/vendors/{}", escaped(&args.vendor_id));
            admin.change(Method::PUT, &path, Some(&body_of(args)?)).await
        }
        VendorAction::List(page) => admin.list("/vendors", &page.query(), &COLUMNS).await,
    }
}

fn body_of(args: PutArgs) -> anyhow::Result<Value> {
    let credentials = args.credentials.as_deref().map(read_text).transpose()?;
    // A file ends with a line's end, which no credential has.
    let credentials = credentials.map(|text| json!(text.trim_end()));
    let fields = [
        ("adapter", Some(json!(args.adapter))),
        ("url", args.url.map(Value::from)),
        ("credentials", credentials),
        ("concurrency", args.concurrency.map(Value::from)),
    ];
    let given = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(Value::Object(given.collect::<Map<_, _>>()))
}
