//! Language tags (BCP 47), and the choice of a language by `Accept-Language` (RFC 9110, 12.5.4).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::{Object, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::text_schema::{described, text};

/// A language with an optional script and region, such as `de`, `zh-Hant` or `pt-BR`, in its canonical
/// spelling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Language(String);

/// The text is not a language tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a language such as de, pt-BR or zh-Hant")]
pub struct InvalidLanguage;

impl Default for Language {
    fn default() -> Self {
        Self("en".to_owned())
    }
}

impl Language {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Language {
    type Err = InvalidLanguage;

    fn from_str(text: &str) -> Result<Self, InvalidLanguage> {
        let mut subtags = text.trim().split('-').peekable();
        let language = subtags.next().filter(|tag| is_alphabetic(tag, 2..=3));
        let mut canonical = language.ok_or(InvalidLanguage)?.to_ascii_lowercase();
        if let Some(script) = subtags.next_if(|tag| is_alphabetic(tag, 4..=4)) {
            let (first, rest) = script.split_at(1);
            canonical.extend(["-", &first.to_ascii_uppercase(), &rest.to_ascii_lowercase()]);
        }
        let is_region = |tag: &&str| {
            is_alphabetic(tag, 2..=2) || (tag.len() == 3 && tag.bytes().all(|byte| byte.is_ascii_digit()))
        };
        if let Some(region) = subtags.next_if(is_region) {
            canonical.extend(["-", &region.to_ascii_uppercase()]);
        }
        match subtags.next() {
            None => Ok(Self(canonical)),
            Some(_) => Err(InvalidLanguage),
        }
    }
}

fn is_alphabetic(tag: &str, length: std::ops::RangeInclusive<usize>) -> bool {
    length.contains(&tag.len()) && tag.bytes().all(|byte| byte.is_ascii_alphabetic())
}

impl<'de> Deserialize<'de> for Language {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

described! {
    Language => language();
}

fn language() -> Object {
    text("A language, with a script and a region where it needs them (BCP 47).")
        .pattern(Some("^[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?$"))
        .examples(["de"])
        .build()
}

/// The languages that a client accepts, best first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcceptedLanguages(Vec<String>);

impl AcceptedLanguages {
    /// Parses the lines of the header. What is malformed, and what has the quality 0, is ignored.
    #[must_use]
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let ranges = lines.into_iter().flat_map(|line| line.split(','));
        let mut accepted: Vec<(u32, String)> = ranges
            .filter_map(|range| {
                let (tag, parameters) = range.split_once(';').unwrap_or((range, ""));
                let thousandths = match parameters.trim().strip_prefix("q=") {
                    Some(quality) => parse_quality(quality)?,
                    None => 1_000,
                };
                (thousandths > 0).then(|| (thousandths, tag.trim().to_ascii_lowercase()))
            })
            .collect();
        // The sort is stable: the client's order decides between equal qualities.
        accepted.sort_by_key(|(thousandths, _)| std::cmp::Reverse(*thousandths));
        Self(accepted.into_iter().map(|(_, tag)| tag).collect())
    }

    /// The best of the available languages (RFC 4647, 3.4: a range without a match loses its last subtag),
    /// else one of the same language in another region or script; `None` if no range matches, or any language
    /// is accepted before one does.
    #[must_use]
    pub fn choose<'a>(&self, available: &[&'a Language]) -> Option<&'a Language> {
        let accepted = self.0.iter().take_while(|range| *range != "*");
        accepted.into_iter().find_map(|range| find_for(range, available))
    }
}

fn find_for<'a>(range: &str, available: &[&'a Language]) -> Option<&'a Language> {
    let exact = |range: &str| {
        let mut available = available.iter();
        available
            .find(|language| language.0.eq_ignore_ascii_case(range))
            .copied()
    };
    let shorter = std::iter::successors(Some(range), |range| Some(range.rsplit_once('-')?.0));
    shorter.into_iter().find_map(exact).or_else(|| {
        let primary = |tag: &str| tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
        let mut available = available.iter();
        available
            .find(|language| primary(&language.0) == primary(range))
            .copied()
    })
}

/// A quality from 0 to 1 with at most three decimals, in thousandths.
fn parse_quality(text: &str) -> Option<u32> {
    let (whole, decimals) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let is_decimal = decimals.len() <= 3 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths = format!("{decimals:0<3}").parse().ok().filter(|_| is_decimal)?;
    match (whole, thousandths) {
        ("0", thousandths) => Some(thousandths),
        ("1", 0) => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_has_one_spelling() {
        for (text, expected) in [
            ("DE", "de"),
            ("pt-br", "pt-BR"),
            ("ZH-hANT", "zh-Hant"),
            ("zh-hant-tw", "zh-Hant-TW"),
            ("es-419", "es-419"),
        ] {
            assert_eq!(text.parse::<Language>().unwrap().as_str(), expected);
        }
        for text in [
            "", "d", "deutsch", "de-", "de-D", "de-DE-x", "de_DE", "d\u{e9}", "*",
        ] {
            assert_eq!(text.parse::<Language>(), Err(InvalidLanguage), "{text}");
        }
    }

    #[test]
    fn best_accepted_language_is_chosen() {
        let [english, german, brazilian] = ["en", "de", "pt-BR"].map(|tag| tag.parse::<Language>().unwrap());
        let available = [&english, &german, &brazilian];
        for (header, expected) in [
            ("de", Some("de")),
            ("DE-at", Some("de")),
            ("de-Latn-AT", Some("de")),
            ("fr, de;q=0.5, en;q=0.7", Some("en")),
            ("fr, de;q=0.5, en;q=0.5", Some("de")),
            ("pt", Some("pt-BR")),
            ("pt-PT, en;q=0.9", Some("pt-BR")),
            ("de;q=0, en", Some("en")),
            ("de;q=0.0001, en;q=0.1", Some("en")),
            ("de;q=2, en;q=0.1", Some("en")),
            ("fr", None),
            ("*, de", None),
            ("fr, *;q=0.1", None),
            ("", None),
            (";;q=,,", None),
        ] {
            let chosen = AcceptedLanguages::parse([header]).choose(&available);
            assert_eq!(chosen.map(Language::as_str), expected, "{header}");
        }
        assert_eq!(
            AcceptedLanguages::parse(["fr", "de"]).choose(&available),
            Some(&german)
        );
        assert_eq!(AcceptedLanguages::default().choose(&available), None);
    }
}
