//! `vouchsafe category` and `vouchsafe product`: the catalogue.

use std::collections::BTreeMap;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::value::RawValue;
use vouchsafe_wire::operator::categories::CategoryRequest;
use vouchsafe_wire::operator::products::ProductRequest;

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs, RequestArgs};
use super::call::read_text;
use super::examples::examples;
use super::exit::UsageError;
use super::id::{CategoryRef, ObjectRef as _, ProductRef};
use super::table::{Column, column, text};

const CATEGORY_COLUMNS: [Column; 3] = [
    column("CATEGORY", "category_id"),
    text("NAME", "name", 16),
    column("PARENT", "parent_id"),
];

const PRODUCT_COLUMNS: [Column; 8] = [
    column("PRODUCT", "product_id"),
    text("NAME", "name", 16),
    column("CURRENCY", "currency"),
    text("DENOMINATIONS", "denominations", 14),
    column("ROUTE", "route"),
    column("CATEGORY", "category_id"),
    text("BRAND", "brand", 10),
    column("DISCONTINUED", "discontinued"),
];

#[derive(Debug, Subcommand)]
pub enum CategoryAction {
    /// Create or replace a category.
    #[command(after_help = examples!["vouchsafe category put books --name Books"])]
    Put(RequestArgs<CategoryRef, CategoryRequest>),
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

#[derive(Debug, Args)]
#[command(override_usage = "\
    vouchsafe product put [OPTIONS] <PRODUCT_ID> --name <NAME> --brand <BRAND>
                             --category <CATEGORY> --currency <CURRENCY>
       vouchsafe product put <PRODUCT_ID> --from <JSON>")]
#[command(after_help = examples![
    "vouchsafe product put b --name B --brand b --category books --currency USD --denomination 25",
    "vouchsafe product put books-usd --from @product.json",
    "vouchsafe product show books-usd --json | vouchsafe product put books-usd --from -",
])]
pub struct PutProductArgs {
    #[command(flatten)]
    product: ProductRef,
    /// The product as JSON, instead of the other options: text, @FILE, or - for standard input. The output of `product show --json`
    /// is accepted.
    #[arg(long, value_name = "JSON", conflicts_with = "ProductRequest")]
    from: Option<String>,
    #[command(flatten)]
    request: Option<ProductRequest>,
}

pub(super) async fn category(action: CategoryAction, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        CategoryAction::Put(args) => args.put(admin).await,
        CategoryAction::List(args) => admin.list("/categories", &args, &CATEGORY_COLUMNS).await,
    }
}

pub(super) async fn product(action: ProductAction, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        ProductAction::Put(args) => {
            let path = args.product.path();
            match &args.from {
                Some(from) => {
                    admin
                        .put(&path, &parse_product(&read_text(from)?, &args.product)?)
                        .await
                }
                None => admin.put(&path, &args.request).await,
            }
        }
        ProductAction::List(args) => admin.list("/products", &args, &PRODUCT_COLUMNS).await,
        ProductAction::Show(product) => admin.get(&product.path()).await,
    }
}

/// The fields of a product as JSON, without those that `product show` adds. The values stay unparsed: `Value` would turn amounts into
/// floats.
fn parse_product(json: &str, product: &ProductRef) -> anyhow::Result<BTreeMap<String, Box<RawValue>>> {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(json)
        .context("--from: expected a JSON object, as of `vouchsafe product show --json`")?;
    fields.remove("updated_at");
    if let Some(shown) = fields.remove("product_id") {
        let is_same = serde_json::from_str(shown.get()).is_ok_and(|id: String| id == product.product_id);
        if !is_same {
            let message = format!(
                "--from is the product {shown}, not {}; remove `product_id` from it to copy the product",
                product.product_id
            );
            return Err(UsageError(message).into());
        }
    }
    Ok(fields)
}
