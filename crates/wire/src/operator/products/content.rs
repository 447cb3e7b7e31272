//! Content of a product in requests: texts by language, images, barcode, balance check and support.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vouchsafe_domain::arguments::enum_parser;
use vouchsafe_domain::bounds::List;
use vouchsafe_domain::language::Language;
use vouchsafe_domain::product::content::{BarcodeFormat, ProductContent, Redemption, Translation};

use crate::json::{self, JsonObject};
use crate::operator::text::{Email, HttpsUrl, LongText, Phone};

/// More than a page shows.
const MAX_IMAGES: usize = 20;

type Images = List<HttpsUrl, 0, MAX_IMAGES>;

/// What partners show of the product.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub(super) struct ProductContentRequest {
    /// Language of the description and of the information on redemption; default `en`.
    #[serde(default)]
    #[arg(long, default_value = "en")]
    language: Language,
    /// What the product is.
    #[serde(default)]
    #[arg(long, default_value = "")]
    description: LongText,
    /// URLs of images, the most important one first.
    #[serde(default)]
    #[schema(value_type = Images)]
    #[arg(
        long = "image",
        value_name = "URL",
        help = "Image, the most important one first. Can be repeated"
    )]
    images: Vec<HttpsUrl>,
    /// Barcode in which a shop reads the code; null if the code is typed in.
    #[serde(default, deserialize_with = "json::optional_enum_value")]
    #[arg(long, value_parser = enum_parser::<BarcodeFormat>())]
    barcode_format: Option<BarcodeFormat>,
    /// Page on which a holder reads the balance of a voucher.
    #[serde(default)]
    #[arg(long, value_name = "URL")]
    balance_check_url: Option<HttpsUrl>,
    /// Address of the brand's support for holders.
    #[serde(default)]
    #[arg(long, value_name = "ADDRESS")]
    support_email: Option<Email>,
    /// Telephone number of the brand's support.
    #[serde(default)]
    #[arg(long, value_name = "NUMBER")]
    support_phone: Option<Phone>,
    /// Page of the brand's support.
    #[serde(default)]
    #[arg(long, value_name = "URL")]
    support_url: Option<HttpsUrl>,
}

/// More than the languages of any brand.
pub const MAX_TRANSLATIONS: usize = 50;

impl ProductContentRequest {
    pub(super) fn into_content(self) -> Result<ProductContent, String> {
        if self.images.len() > MAX_IMAGES {
            return Err(format!("expected at most {MAX_IMAGES}"));
        }
        Ok(ProductContent {
            language: self.language,
            description: self.description.into(),
            images: self.images.into_iter().map(String::from).collect(),
            barcode_format: self.barcode_format,
            balance_check_url: self.balance_check_url.map(String::from),
            support_email: self.support_email.map(String::from),
            support_phone: self.support_phone.map(String::from),
            support_url: self.support_url.map(String::from),
        })
    }
}

/// Information for the holder of a voucher.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub(super) struct RedemptionRequest {
    /// How to redeem the voucher.
    #[serde(default)]
    #[arg(long, default_value = "")]
    instructions: LongText,
    /// Terms of redemption.
    #[serde(default)]
    #[arg(long, default_value = "")]
    terms: LongText,
}

impl From<RedemptionRequest> for Redemption {
    fn from(request: RedemptionRequest) -> Self {
        Self {
            instructions: request.instructions.into(),
            terms: request.terms.into(),
        }
    }
}

/// The texts of a product in another language than its own.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct ProductTranslationRequest {
    /// What the product is.
    #[serde(default)]
    #[arg(long, default_value = "")]
    description: LongText,
    /// Information for the holder of a voucher.
    #[schema(value_type = RedemptionRequest)]
    #[command(flatten)]
    redemption: JsonObject<RedemptionRequest>,
}

impl ProductTranslationRequest {
    /// The texts in this language.
    #[must_use]
    pub fn into_translation(self, language: Language) -> Translation {
        let JsonObject(redemption) = self.redemption;
        Translation {
            language,
            description: self.description.into(),
            redemption: redemption.into(),
        }
    }
}
