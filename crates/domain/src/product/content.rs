//! What partners show of a product: texts by language, images, barcode, balance check and support.

use serde::{Deserialize, Serialize};

use crate::labels::labels;
use crate::language::Language;

labels! {
    /// The symbology in which a shop reads a code.
    pub enum BarcodeFormat: "SCREAMING_SNAKE_CASE",
        "Barcode in which a shop reads the code: `AZTEC`, `CODABAR`, `CODE39`, `CODE128`, `DATA_MATRIX`, `EAN13`, `ITF`, `PDF417`, \
         `QR_CODE` or `UPC_A`." {
        Aztec,
        Codabar,
        Code39,
        Code128,
        DataMatrix,
        Ean13,
        Itf,
        Pdf417,
        QrCode,
        UpcA,
    }
}

/// What partners show of a product.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct ProductContent {
    /// Language of the description and of the information on redemption.
    #[schema(required)]
    pub language: Language,
    /// What the product is.
    #[schema(required)]
    pub description: String,
    /// URLs of images, the most important one first.
    #[schema(required)]
    pub images: Vec<String>,
    /// Barcode in which a shop reads the code; null if the code is typed in.
    #[schema(required)]
    pub barcode_format: Option<BarcodeFormat>,
    /// Page on which a holder reads the balance of a voucher.
    #[schema(required, format = "uri")]
    pub balance_check_url: Option<String>,
    /// Address of the brand's support for holders.
    #[schema(required)]
    pub support_email: Option<String>,
    /// Telephone number of the brand's support.
    #[schema(required)]
    pub support_phone: Option<String>,
    /// Page of the brand's support.
    #[schema(required, format = "uri")]
    pub support_url: Option<String>,
}

/// Redemption information for the holder of a voucher.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Redemption {
    /// How to redeem the voucher.
    #[serde(default)]
    #[schema(required)]
    pub instructions: String,
    /// Terms of redemption.
    #[serde(default)]
    #[schema(required)]
    pub terms: String,
}

/// The texts of a product in another language than its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ProductTranslation)]
pub struct Translation {
    /// Language of the texts.
    pub language: Language,
    /// What the product is.
    pub description: String,
    /// Redemption instructions for the holder of a voucher.
    pub redemption: Redemption,
}

/// The texts of a product in one language.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    pub language: &'a Language,
    pub description: &'a str,
    pub redemption: &'a Redemption,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_content_without_later_fields_is_read() {
        assert_eq!(
            serde_json::from_str::<ProductContent>("{}").unwrap(),
            ProductContent::default()
        );
    }
}
