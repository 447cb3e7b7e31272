//! `vouchsafe category` and `vouchsafe product`: the catalogue.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde_json::value::RawValue;
use vouchsafe_domain::language::Language;
use vouchsafe_domain::product_search::ProductSearch;
use vouchsafe_wire::operator::catalogue::{
    DELETE_PRODUCT_TRANSLATION, GET_PRODUCT, LIST_CATEGORIES, LIST_PRODUCTS, PUT_CATEGORY, PUT_PRODUCT,
    PUT_PRODUCT_TRANSLATION,
};
use vouchsafe_wire::operator::categories::CategoryRequest;
use vouchsafe_wire::operator::operation::Operation;
use vouchsafe_wire::operator::products::ProductRequest;
use vouchsafe_wire::operator::products::content::ProductTranslationRequest;

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs, NO_BODY, RequestArgs};
use super::call::read_text;
use super::examples::examples;
use super::exit::UsageError;
use super::id::{CategoryRef, ObjectRef as _, ProductRef};
use super::output::{self, OrderedFields};
use super::target::Target;

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
    #[command(after_help = examples!["vouchsafe product list --limit 20", "vouchsafe product list --vendor acme-cards --name gift"])]
    List(ListArgs<ProductSearch>),
    /// Show a product.
    #[command(after_help = examples!["vouchsafe product show sbx-instant"])]
    Show(ProductRef),
    /// Create or replace the texts of a product in a language.
    #[command(after_help = examples![
        "vouchsafe product translate books-usd de --description 'Für Bücher' --terms 'Keine Barauszahlung.'"
    ])]
    Translate(TranslateProductArgs),
    /// Delete the texts of a product in a language.
    #[command(after_help = examples!["vouchsafe product untranslate books-usd de"])]
    Untranslate(TranslationRef),
}

#[derive(Debug, Args)]
#[command(override_usage = "\
    vouchsafe product put [OPTIONS] <PRODUCT_ID> --name <NAME> --brand <BRAND>
                             --category <CATEGORY> --currency <CURRENCY>
       vouchsafe product put <PRODUCT_ID> --from <JSON>")]
#[command(after_help = examples![
    "vouchsafe product put b --name B --brand b --category books --currency USD --denomination 25",
    "vouchsafe product put books-usd --from @product.json",
    "vouchsafe product put books-usd --from - <product.json",
])]
pub struct PutProductArgs {
    #[command(flatten)]
    product: ProductRef,
    /// The product as JSON, instead of the other options: text, @FILE, or - for standard input. The output of
    /// `product show --json` is accepted.
    #[arg(long, value_name = "JSON", conflicts_with = "ProductRequest")]
    from: Option<String>,
    #[command(flatten)]
    request: Option<ProductRequest>,
}

#[derive(Debug, Args)]
pub struct TranslateProductArgs {
    #[command(flatten)]
    translation: TranslationRef,
    #[command(flatten)]
    request: ProductTranslationRequest,
}

#[derive(Debug, Args)]
pub struct TranslationRef {
    #[command(flatten)]
    product: ProductRef,
    /// Language of the texts, such as de or pt-BR.
    language: Language,
}

impl TranslationRef {
    fn at<Q, R>(&self, operation: Operation<Q, R>) -> Target<Q, R> {
        self.product
            .at(operation)
            .with("language", self.language.as_str())
    }
}

pub(super) async fn category(action: CategoryAction, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        CategoryAction::Put(args) => args.send(PUT_CATEGORY, admin).await,
        CategoryAction::List(args) => admin.list(LIST_CATEGORIES, &args).await,
    }
}

pub(super) async fn product(action: ProductAction, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        ProductAction::Put(args) => {
            let put = args.product.at(PUT_PRODUCT);
            let response = match &args.from {
                Some(from) => {
                    let request = parse_product(&read_text(from)?, &args.product)?;
                    admin.call(put, Some(&request)).await?
                }
                None => admin.call(put, Some(&args.request)).await?,
            };
            admin.show(response, output::format_object)
        }
        ProductAction::List(args) => admin.list(LIST_PRODUCTS, &args).await,
        ProductAction::Show(product) => admin.run(product.at(GET_PRODUCT)).await,
        ProductAction::Translate(args) => {
            let put = args.translation.at(PUT_PRODUCT_TRANSLATION);
            admin.send(put, &args.request).await
        }
        ProductAction::Untranslate(translation) => {
            let response = admin
                .call(translation.at(DELETE_PRODUCT_TRANSLATION), NO_BODY)
                .await?;
            let TranslationRef { product, language } = translation;
            admin.show(response, |_| {
                Ok(format!("{} has no texts in {language}", product.product_id))
            })
        }
    }
}

/// The fields of a product as JSON, without those that `product show` adds. Translations have commands of
/// their own. The values stay unparsed: `Value` would turn amounts into floats.
fn parse_product(json: &str, product: &ProductRef) -> anyhow::Result<BTreeMap<String, Box<RawValue>>> {
    let shown: Result<OrderedFields, _> = serde_json::from_str(json);
    let OrderedFields(shown) = shown.map_err(|error| {
        UsageError(format!(
            "--from: expected a JSON object, as of `vouchsafe product show --json`: {error}. Use @FILE to \
             read a file, - for standard input"
        ))
    })?;
    let mut fields = BTreeMap::new();
    for (name, value) in shown {
        if fields.insert(name.clone(), value).is_some() {
            return Err(UsageError(format!("--from: the field {name} occurs twice")).into());
        }
    }
    fields.remove("updated_at");
    fields.remove("translations");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_shown_product_are_sent_once_and_as_they_are() {
        let product = ProductRef {
            product_id: "a".to_owned(),
        };
        let shown = r#"{"product_id":"a","name":"A","face":25.50,"translations":[],"updated_at":"2026-01-01T00:00:00Z"}"#;
        let sent = serde_json::to_string(&parse_product(shown, &product).unwrap()).unwrap();
        assert_eq!(sent, r#"{"face":25.50,"name":"A"}"#);
        for (refused, expected) in [
            (r#"{"name":"A","name":"B"}"#, "the field name occurs twice"),
            (r#"{"name":"A""#, "--from: expected a JSON object"),
            ("[]", "--from: expected a JSON object"),
            (r#"{"product_id":"b"}"#, "remove `product_id`"),
        ] {
            let error = parse_product(refused, &product).unwrap_err();
            assert!(
                error.is::<UsageError>() && error.to_string().contains(expected),
                "{error}"
            );
        }
    }
}
