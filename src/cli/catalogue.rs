//! `vouchsafe category` and `vouchsafe product`: what can be ordered at all.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Outcome;
use super::admin::{Admin, AdminOptions, PageOptions, escaped};
use super::call::read_text;
use super::examples::examples;
use super::show::Column;

const CATEGORY_COLUMNS: [Column; 3] = [
    ("CATEGORY", "category_id"),
    ("NAME", "name"),
    ("PARENT", "parent_id"),
];

const PRODUCT_COLUMNS: [Column; 8] = [
    ("PRODUCT", "product_id"),
    ("NAME", "name"),
    ("BRAND", "brand"),
    ("CATEGORY", "category_id"),
    ("CURRENCY", "currency"),
    ("DENOMINATIONS", "denominations"),
    ("ROUTE", "route"),
    ("DISCONTINUED", "discontinued"),
];

/// Arguments of `vouchsafe category`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe category list"])]
pub struct CategoryArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: CategoryAction,
}

/// What can be done to categories.
#[derive(Debug, Subcommand)]
pub(super) enum CategoryAction {
    /// Put a category in, or in the place of the one with its id.
    #[command(after_help = examples!["vouchsafe category put books --name Books"])]
    Put {
        /// Its id.
        category_id: String,
        /// What it is called.
        #[arg(long)]
        name: String,
        /// What it is a part of.
        #[arg(long, value_name = "CATEGORY")]
        parent: Option<String>,
    },
    /// List the categories.
    #[command(after_help = examples!["vouchsafe category list --json"])]
    List(PageOptions),
}

/// Arguments of `vouchsafe product`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe product list"])]
pub struct ProductArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: ProductAction,
}

/// What can be done to products.
#[derive(Debug, Subcommand)]
pub(super) enum ProductAction {
    /// Put a product in, or in the place of the one with its id.
    Put(Box<PutArgs>),
    /// List the products.
    #[command(after_help = examples!["vouchsafe product list --limit 20"])]
    List(PageOptions),
    /// Show a product.
    #[command(after_help = examples!["vouchsafe product show sbx-instant"])]
    Show {
        /// Its id.
        product_id: String,
    },
}

/// A product, by flags or as JSON.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe product put books-usd --name Books --brand books --category books --currency USD --denomination 25",
    "vouchsafe product put books-usd --from @product.json",
])]
pub(super) struct PutArgs {
    /// Its id.
    product_id: String,
    /// All of it as JSON: the text, @FILE, or - for the standard input. Instead of the flags.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["name", "brand", "category", "currency"])]
    from: Option<String>,
    /// What it is called.
    #[arg(long, required_unless_present = "from")]
    name: Option<String>,
    /// Whose voucher it is; codes are unique within a brand.
    #[arg(long, required_unless_present = "from")]
    brand: Option<String>,
    /// The category it is in.
    #[arg(long, required_unless_present = "from")]
    category: Option<String>,
    /// What it is counted in.
    #[arg(long, required_unless_present = "from")]
    currency: Option<String>,
    /// The vendor it is bought from.
    #[arg(long, default_value = "mock")]
    vendor: String,
    /// Where it can be redeemed; none is everywhere. May be repeated.
    #[arg(long = "country", value_name = "CODE")]
    countries: Vec<String>,
    /// A face value. May be repeated.
    #[arg(long = "denomination", value_name = "AMOUNT")]
    denominations: Vec<String>,
    /// Face values in steps.
    #[arg(long, value_name = "MIN:MAX:STEP", value_parser = read_range)]
    range: Option<Value>,
    /// Where vouchers come from when the shelf is short.
    #[arg(long, default_value = "stock", value_parser = ["stock", "vendor"])]
    route: String,
    /// `always` if every order of it waits for an operator.
    #[arg(long, default_value = "rule", value_parser = ["rule", "always"])]
    approval: String,
    /// The last valid day of every voucher, as YYYY-MM-DD.
    #[arg(long, value_name = "DATE", conflicts_with = "valid_months")]
    expires_on: Option<String>,
    /// For how many months a voucher is good.
    #[arg(long, value_name = "MONTHS")]
    valid_months: Option<u32>,
    /// How to redeem it.
    #[arg(long, default_value = "")]
    instructions: String,
    /// Under which terms.
    #[arg(long, default_value = "")]
    terms: String,
    /// Fewest days that a voucher must have left to be sold.
    #[arg(long, default_value_t = 0, value_name = "DAYS")]
    min_validity_days: u32,
    /// Below how many vouchers it is low on stock.
    #[arg(long, value_name = "N")]
    low_stock_at: Option<u32>,
    /// The vendor takes vouchers back.
    #[arg(long)]
    returnable: bool,
    /// Out of sale for good; still readable.
    #[arg(long)]
    discontinued: bool,
}

/// Runs `vouchsafe category`.
pub(super) async fn category(action: CategoryAction, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        CategoryAction::Put {
            category_id,
            name,
            parent,
        } => {
            let body = json!({ "name": name, "parent_id": parent });
            let path = format!("/categories/{}", escaped(&category_id));
            admin.change(Method::PUT, &path, Some(&body)).await
        }
        CategoryAction::List(page) => admin.list("/categories", &page.query(), &CATEGORY_COLUMNS).await,
    }
}

/// Runs `vouchsafe product`.
pub(super) async fn product(action: ProductAction, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        ProductAction::Put(args) => {
            let path = format!("/products/{}", escaped(&args.product_id));
            match &args.from {
                // As it is: a value in memory would turn amounts into floats.
                Some(from) => {
                    let text = read_text(from)?;
                    let body: Box<RawValue> = serde_json::from_str(&text).context("--from: expected JSON")?;
                    admin.change(Method::PUT, &path, Some(&body)).await
                }
                None => admin.change(Method::PUT, &path, Some(&body_of(&args))).await,
            }
        }
        ProductAction::List(page) => admin.list("/products", &page.query(), &PRODUCT_COLUMNS).await,
        ProductAction::Show { product_id } => {
            admin.object(&format!("/products/{}", escaped(&product_id))).await
        }
    }
}

fn body_of(args: &PutArgs) -> Value {
    let policy = match (&args.expires_on, args.valid_months) {
        (Some(day), _) => json!({ "type": "FIXED_DATE", "value": day }),
        (None, Some(months)) => json!({ "type": "MONTHS_FROM_ISSUE", "value": months }),
        (None, None) => json!({ "type": "NONE" }),
    };
    json!({
        "name": args.name,
        "brand": args.brand,
        "category_id": args.category,
        "vendor": args.vendor,
        "currency": args.currency,
        "countries": args.countries,
        "denominations": args.denominations,
        "denomination_range": args.range,
        "expiry_policy": policy,
        "redemption": { "instructions": args.instructions, "terms": args.terms },
        "route": args.route,
        "approval": args.approval,
        "returnable": args.returnable,
        "min_validity_days": args.min_validity_days,
        "low_stock_at": args.low_stock_at,
        "discontinued": args.discontinued,
    })
}

fn read_range(text: &str) -> Result<Value, &'static str> {
    let parts: Vec<&str> = text.split(':').collect();
    let [min, max, step] = parts[..] else {
        return Err("expected MIN:MAX:STEP, such as 10:500:5");
    };
    Ok(json!({ "min": min, "max": max, "step": step }))
}
