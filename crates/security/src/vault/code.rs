//! Voucher code in plaintext.
//!
//! Each text is an identifier (`vouchsafe_domain::identifier`) of bounded length, so that a code has one
//! spelling. The type has no `Serialize` and no `==`, its `Debug` output is redacted, and it is wiped when
//! dropped; only the retrieval endpoint reads its parts for a response.

use strum::{IntoStaticStr, VariantArray};
use url::Url;
use vouchsafe_domain::identifier::{self, ForbiddenCharacter};
use zeroize::Zeroizing;

use crate::secret::hidden;

/// First byte of an encoded code. Another layout gets another byte; this one stays readable.
const ENCODING_V1: u8 = 1;

/// The parts of a code, in the order of encoding and display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum CodePart {
    Code,
    /// Requested together with the code at redemption.
    Pin,
    /// Printed on the card, for support.
    Serial,
    /// The redemption page: an `http` or `https` URL, since partners show it as a link to their customers.
    Url,
}

impl CodePart {
    /// Generous for what vendors print, and small enough for a two-byte length and a row.
    #[must_use]
    pub const fn max_bytes(self) -> usize {
        match self {
            Self::Code => 512,
            Self::Pin | Self::Serial => 128,
            Self::Url => 2048,
        }
    }
}

/// The parts of a code as an import or a vendor provides them. An empty text counts as absent.
#[derive(Clone, Copy, Default)]
pub struct CodeParts<'a> {
    pub code: &'a str,
    pub pin: Option<&'a str>,
    pub serial: Option<&'a str>,
    pub url: Option<&'a str>,
}

/// Why a code was refused. It never contains the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCode {
    #[error("the code is missing")]
    Missing,
    #[error("{part} has {bytes} bytes; at most {} are allowed", part.max_bytes())]
    TooLong { part: CodePart, bytes: usize },
    /// Broken imports and pasted texts contain such characters.
    #[error("{part} has a forbidden character: {character}")]
    Forbidden {
        part: CodePart,
        character: ForbiddenCharacter,
    },
    /// One example is a `javascript:` URL.
    #[error("url is not an http or https URL with a host")]
    NotAWebUrl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an encoded voucher code of a known version")]
pub struct UnknownEncoding;

/// A plaintext voucher code: the texts of its [`CodePart`]s, empty if absent.
pub struct VoucherCode {
    texts: [Zeroizing<String>; 4],
}

impl VoucherCode {
    /// Validates the texts and normalizes them. Two spellings of a text become one.
    ///
    /// # Errors
    /// [`InvalidCode`] for the first invalid part.
    pub fn parse(parts: CodeParts<'_>) -> Result<Self, InvalidCode> {
        let CodeParts {
            code,
            pin,
            serial,
            url,
        } = parts;
        let optional = Option::unwrap_or_default;
        let code = validate_part(CodePart::Code, code)?;
        if code.is_empty() {
            return Err(InvalidCode::Missing);
        }
        let pin = validate_part(CodePart::Pin, optional(pin))?;
        let serial = validate_part(CodePart::Serial, optional(serial))?;
        let url = validate_part(CodePart::Url, optional(url))?;
        let url = if url.is_empty() {
            url
        } else {
            let normalized = parse_web_url(&url).ok_or(InvalidCode::NotAWebUrl)?;
            check_length(CodePart::Url, Zeroizing::new(normalized.into()))?
        };
        Ok(Self {
            texts: [code, pin, serial, url],
        })
    }

    /// The parts that are present, for the response of the retrieval endpoint.
    pub fn parts(&self) -> impl Iterator<Item = (CodePart, &str)> {
        let parts = CodePart::VARIANTS
            .iter()
            .copied()
            .zip(&self.texts)
            .map(|(part, text)| (part, text.as_str()));
        parts.filter(|(_, text)| !text.is_empty())
    }

    /// Code and PIN (empty if absent), which identify a code of a brand.
    pub(super) fn identity(&self) -> [&str; 2] {
        let [code, pin, ..] = &self.texts;
        [code, pin]
    }

    /// A version byte, then each part after its two-byte big-endian length.
    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let length = 1 + self.texts.iter().map(|text| 2 + text.len()).sum::<usize>();
        // Full capacity from the start: growing would leave unwiped copies in memory.
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        bytes.push(ENCODING_V1);
        for text in &self.texts {
            let Ok(length) = u16::try_from(text.len()) else {
                unreachable!("parse bounds the length of every part");
            };
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }

    /// Decodes the output of [`VoucherCode::encode`]. Limits are not checked again: codes encrypted under
    /// older limits must still decode.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, UnknownEncoding> {
        let mut rest = bytes.strip_prefix(&[ENCODING_V1]).ok_or(UnknownEncoding)?;
        let mut texts = <[Zeroizing<String>; 4]>::default();
        for text in &mut texts {
            *text = read_text(&mut rest).ok_or(UnknownEncoding)?;
        }
        if rest.is_empty() {
            Ok(Self { texts })
        } else {
            Err(UnknownEncoding)
        }
    }
}

hidden!(VoucherCode);

fn validate_part(part: CodePart, text: &str) -> Result<Zeroizing<String>, InvalidCode> {
    let normalized = identifier::normalize(text);
    let normalized = normalized.map_err(|character| InvalidCode::Forbidden { part, character })?;
    check_length(part, Zeroizing::new(normalized.into_owned()))
}

fn check_length(part: CodePart, text: Zeroizing<String>) -> Result<Zeroizing<String>, InvalidCode> {
    let bytes = text.len();
    if bytes > part.max_bytes() {
        return Err(InvalidCode::TooLong { part, bytes });
    }
    Ok(text)
}

/// Parses an absolute `http` or `https` URL with a host. The prefix is checked on the text itself: the parser
/// also accepts `https:example.com` and `https:/example.com`, which not every client does.
fn parse_web_url(text: &str) -> Option<Url> {
    let has_prefix = ["http://", "https://"].iter().any(|prefix| {
        text.get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
            && !text[prefix.len()..].starts_with(['/', '\\'])
    });
    let url = Url::parse(text).ok().filter(|_| has_prefix);
    url.filter(Url::has_host)
}

fn read_text(rest: &mut &[u8]) -> Option<Zeroizing<String>> {
    let (length, tail) = rest.split_first_chunk::<2>()?;
    let (text, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    *rest = tail;
    Some(Zeroizing::new(std::str::from_utf8(text).ok()?.to_owned()))
}

#[cfg(test)]
mod tests;
