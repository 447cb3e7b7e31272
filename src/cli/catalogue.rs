//! `vouchsafe category` and `vouchsafe product`: the catalogue.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use vouchsafe_domain::arguments::enum_parser;
use vouchsafe_domain::product::{ApprovalPolicy, SupplyRoute};
use vouchsafe_wire::operator::categories::CategoryRequest;

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs};
use super::call::read_text;
use super::examples::examples;
use super::id::{CategoryRef, ProductRef};
use super::output::Column;

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

#[derive(Debug, Subcommand)]
pub enum CategoryAction {
    /// Create or replace a category.
    #[command(after_help = examples!["vouchsafe category put books --name Books"])]
    Put {
        #[command(flatten)]
        category: CategoryRef,
        #[command(flatten)]
        request: CategoryRequest,
    },
    /// List categories.
    #[command(after_help = examples!["vouchsafe category list --json"])]
    List(ListArgs),
}

#[derive(Debug, Subcommand)]
pub enum ProductAction {
    /// Create or replace a product.
    Put(Box<PutProductArgs>),
    /// List products.
    #[command(after_help = examples!["vouchsafe product list --limit 20"])]
    List(ListArgs),
    /// Show a product.
    #[command(after_help = examples!["vouchsafe product show sbx-instant"])]
    Show(ProductRef),
}

#[derive(Debug, Args, Serialize)]
#[command(after_help = examples![
    "vouchsafe product put books-usd --name Books --brand books --category books --currency USD --denomination 25",
    "vouchsafe product put books-usd --from @product.json",
])]
pub struct PutProductArgs {
    #[command(flatten)]
    #[serde(skip)]
    product: ProductRef,
    /// The product as JSON, instead of the other options: text, @FILE, or - for standard input.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["name", "brand", "category_id", "currency"])]
    #[serde(skip)]
    from: Option<String>,
    /// Display name.
    #[arg(long, required_unless_present = "from")]
    name: Option<String>,
    /// Brand; codes are unique within a brand.
    #[arg(long, required_unless_present = "from")]
    brand: Option<String>,
    /// Category ID.
    #[arg(long = "category", value_name = "CATEGORY", required_unless_present = "from")]
    category_id: Option<String>,
    /// Currency of the denominations.
    #[arg(long, required_unless_present = "from")]
    currency: Option<String>,
    /// Vendor ID.
    #[arg(long, default_value = "mock")]
    vendor: String,
    /// Country where it can be redeemed; without any, everywhere. Can be repeated.
    #[arg(long = "country", value_name = "CODE")]
    countries: Vec<String>,
    /// Face value. Can be repeated.
    #[arg(long = "denomination", value_name = "AMOUNT")]
    denominations: Vec<String>,
    /// Range of face values.
    #[arg(long = "range", value_name = "MIN:MAX:STEP", value_parser = read_range)]
    denomination_range: Option<Value>,
    /// Source of vouchers when stock is short.
    #[arg(long, default_value = "stock", value_parser = enum_parser::<SupplyRoute>())]
    route: SupplyRoute,
    /// `always` if every order waits for approval.
    #[arg(long, default_value = "rule", value_parser = enum_parser::<ApprovalPolicy>())]
    approval: ApprovalPolicy,
    #[command(flatten)]
    expiry_policy: ExpiryArgs,
    #[command(flatten)]
    redemption: RedemptionArgs,
    /// Days for which a voucher must still be valid when it is sold.
    #[arg(long, default_value_t = 0, value_name = "DAYS")]
    min_validity_days: u32,
    /// Stock level below which availability is LOW_STOCK.
    #[arg(long, value_name = "N")]
    low_stock_at: Option<u32>,
    /// Mark vouchers as returnable to the vendor.
    #[arg(long)]
    returnable: bool,
    /// End sales; the product stays readable.
    #[arg(long)]
    discontinued: bool,
}

#[derive(Debug, Args)]
struct ExpiryArgs {
    /// Last valid day of all vouchers, as YYYY-MM-DD.
    #[arg(long, value_name = "DATE", conflicts_with = "valid_months")]
    expires_on: Option<String>,
    /// Validity of a voucher, in months.
    #[arg(long, value_name = "MONTHS")]
    valid_months: Option<u32>,
}

impl Serialize for ExpiryArgs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let policy = match (&self.expires_on, self.valid_months) {
            (Some(day), _) => json!({ "type": "FIXED_DATE", "value": day }),
            (None, Some(months)) => json!({ "type": "MONTHS_FROM_ISSUE", "value": months }),
            (None, None) => json!({ "type": "NONE" }),
        };
        policy.serialize(serializer)
    }
}

#[derive(Debug, Args, Serialize)]
struct RedemptionArgs {
    /// Redemption instructions.
    #[arg(long, default_value = "")]
    instructions: String,
    /// Redemption terms.
    #[arg(long, default_value = "")]
    terms: String,
}

pub(super) async fn category(action: CategoryAction, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        CategoryAction::Put { category, request } => admin.put(&category.path(), &request).await,
        CategoryAction::List(args) => admin.list("/categories", &args, &CATEGORY_COLUMNS).await,
    }
}

pub(super) async fn product(action: ProductAction, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        ProductAction::Put(args) => match &args.from {
            // Unparsed: `Value` would turn amounts into floats.
            Some(from) => {
                let text = read_text(from)?;
                let body: Box<RawValue> = serde_json::from_str(&text).context("--from: expected JSON")?;
                admin.put(&args.product.path(), &body).await
            }
            None => admin.put(&args.product.path(), &args).await,
        },
        ProductAction::List(args) => admin.list("/products", &args, &PRODUCT_COLUMNS).await,
        ProductAction::Show(product) => admin.get(&product.path()).await,
    }
}

fn read_range(text: &str) -> Result<Value, &'static str> {
    let parts: Vec<&str> = text.split(':').collect();
    let [min, max, step] = parts[..] else {
        return Err("expected MIN:MAX:STEP, such as 10:500:5");
    };
    Ok(json!({ "min": min, "max": max, "step": step }))
}
