//! What is a voucher code, in the clear?
//!
//! The rules: its text is trimmed, holds no control character, and is bounded in length, so that one code has one
//! spelling. It has no `Debug` text, no `Serialize` and no `==`, and is wiped when dropped; the retrieval endpoint
//! alone asks for its parts.

use std::fmt;

use zeroize::Zeroizing;

/// First byte of an encoded code. Another layout gets another byte, and this one stays readable.
const ENCODING_V1: u8 = 1;

/// The parts of a code, in the order in which they are encoded and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodePart {
    Code,
    /// Asked for beside the code.
    Pin,
    /// Printed on the card, for support.
    Serial,
    /// Where it is redeemed.
    Url,
}

impl CodePart {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Code, Self::Pin, Self::Serial, Self::Url];

    /// Its name on the wire and in imports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Pin => "pin",
            Self::Serial => "serial",
            Self::Url => "url",
        }
    }

    /// Longest text in bytes: generous for what vendors print, and small enough for two length bytes and a row.
    #[must_use]
    pub const fn max_bytes(self) -> usize {
        match self {
            Self::Code => 512,
            Self::Pin | Self::Serial => 128,
            Self::Url => 2048,
        }
    }
}

impl fmt::Display for CodePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The texts of a code as an import or a vendor gives them. An empty text is an absent one.
#[derive(Clone, Copy, Default)]
pub struct CodeParts<'a> {
    pub code: &'a str,
    /// If there is one.
    pub pin: Option<&'a str>,
    /// If there is one.
    pub serial: Option<&'a str>,
    /// If there is one.
    pub url: Option<&'a str>,
}

/// Why some texts are no code. It never holds the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCode {
    /// There is no code.
    #[error("the code is missing")]
    Missing,
    /// A part is longer than it may be.
    #[error("{part} has {bytes} bytes, at most {} are allowed", part.max_bytes())]
    TooLong {
        part: CodePart,
        /// How many bytes it has.
        bytes: usize,
    },
    /// A part holds a control character, as a broken import leaves them.
    #[error("{part} holds a control character")]
    Control {
        part: CodePart,
    },
}

/// Bytes that are no encoded code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an encoded voucher code of a known version")]
pub struct UnknownEncoding;

/// A voucher code in the clear: the texts of its [`Part`]s, empty where there is none.
pub struct VoucherCode {
    texts: [Zeroizing<String>; 4],
}

impl VoucherCode {
    /// Takes the texts in, trimmed of white space at both ends.
    ///
    /// # Errors
    /// [`InvalidCode`] names the first part that will not do.
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
        Ok(Self {
            texts: [code, pin, serial, validate_part(CodePart::Url, optional(url))?],
        })
    }

    /// The parts that are there, with their texts: for the answer of the retrieval endpoint, and nothing else.
    pub fn parts(&self) -> impl Iterator<Item = (CodePart, &str)> {
        let parts = CodePart::ALL
            .into_iter()
            .zip(&self.texts)
            .map(|(part, text)| (part, text.as_str()));
        parts.filter(|(_, text)| !text.is_empty())
    }

    /// What makes it one code of its brand: the code and its PIN, empty if it has none.
    pub(super) fn identity(&self) -> (&str, &str) {
        let [code, pin, ..] = &self.texts;
        (code, pin)
    }

    /// A byte of version, then each part behind two bytes of length, the high one first.
    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let length = 1 + self.texts.iter().map(|text| 2 + text.len()).sum::<usize>();
        // Full size from the start: growing would leave copies behind that nobody wipes.
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        bytes.push(ENCODING_V1);
        for text in &self.texts {
            let Ok(length) = u16::try_from(text.len()) else {
                unreachable!("every part is bounded when it is taken in");
            };
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }

    /// Reads what [`VoucherCode::encode`] wrote. Limits are not checked again: what was sealed under older ones must
    /// still open.
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

impl fmt::Debug for VoucherCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VoucherCode(***)")
    }
}

fn validate_part(part: CodePart, text: &str) -> Result<Zeroizing<String>, InvalidCode> {
    let text = text.trim();
    if text.len() > part.max_bytes() {
        return Err(InvalidCode::TooLong {
            part,
            bytes: text.len(),
        });
    }
    if text.contains(char::is_control) {
        return Err(InvalidCode::Control { part });
    }
    Ok(Zeroizing::new(text.to_owned()))
}

fn read_text(rest: &mut &[u8]) -> Option<Zeroizing<String>> {
    let (length, behind) = rest.split_first_chunk::<2>()?;
    let (text, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    *rest = behind;
    Some(Zeroizing::new(std::str::from_utf8(text).ok()?.to_owned()))
}

#[cfg(test)]
mod tests;
