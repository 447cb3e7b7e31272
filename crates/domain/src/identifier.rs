//! Policy for texts that are an identity: codes, PINs, serials, references, batches, brands, ids.
//!
//! Two spellings that look the same are the same identity. A text is trimmed, has no character that a reader
//! cannot see, and is in Unicode normalization form C. Spreadsheets, mail clients and chat programs add such
//! characters to a text that is pasted.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer};
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

use crate::deceptive::is_deceptive;

/// Pattern of a text without the characters that identifiers must not have, for JSON Schema. White space at
/// the ends is trimmed.
pub const IDENTIFIER_PATTERN: &str = r"^[^\u0000-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]*$";

/// A character that an identifier must not have, and where it is. Says nothing about the rest of the text,
/// which may be a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct ForbiddenCharacter {
    character: char,
    /// Number of the character in the trimmed text, from 1.
    position: usize,
}

impl fmt::Display for ForbiddenCharacter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { character, position } = *self;
        let kind = match character {
            c if c.is_control() => "control character",
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                "bidirectional mark"
            }
            '\u{fffd}' => "replacement character of a text in another encoding",
            c if c.is_whitespace() => "white space other than a space",
            _ => "invisible character",
        };
        write!(
            f,
            "{kind} (U+{:04X}) at position {position}",
            u32::from(character)
        )
    }
}

/// Trims a text, checks it and normalizes it to form C.
///
/// # Errors
/// [`ForbiddenCharacter`] for the first control, bidirectional or invisible character, also for white space
/// that only looks like a space.
pub fn normalize(text: &str) -> Result<Cow<'_, str>, ForbiddenCharacter> {
    let text = text.trim();
    if let Some((index, character)) = text.chars().enumerate().find(|(_, c)| is_forbidden(*c)) {
        return Err(ForbiddenCharacter {
            character,
            position: index + 1,
        });
    }
    Ok(compose(text))
}

/// The identity that a text names, for a filter or a comparison: without the characters that it must not
/// have, in form C.
#[must_use]
pub fn normalize_stored(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if !text.contains(is_forbidden) {
        return compose(text);
    }
    let visible: String = text.chars().filter(|c| !is_forbidden(*c)).collect();
    Cow::Owned(visible.trim().nfc().collect())
}

/// Deserializes a filter, which finds an identity in any spelling.
///
/// # Errors
/// If the value is no text.
pub fn deserialize_filter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.map(|text| normalize_stored(&text).into_owned()))
}

/// The text in form C. A copy has its final capacity from the start: growing would leave parts of a code in
/// memory.
fn compose(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(text);
    }
    // Form C takes at most three times the bytes.
    let mut composed = String::with_capacity(3 * text.len());
    composed.extend(text.nfc());
    Cow::Owned(composed)
}

fn is_forbidden(c: char) -> bool {
    is_deceptive(c)
        || (c.is_whitespace() && c != ' ')
        || matches!(
            c,
            // Characters that Unicode defines to be ignored in display, and fillers that show nothing.
            '\u{34f}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{ffff}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_trimmed_and_composed() {
        for (text, expected) in [
            (" GC-1\u{a0}\r\n", "GC-1"),
            ("Acme & S\u{f6}hne", "Acme & S\u{f6}hne"),
            ("So\u{308}hne", "S\u{f6}hne"),
            // A sign of its own that is only another spelling of a letter.
            ("\u{212b}", "\u{c5}"),
            ("", ""),
        ] {
            assert_eq!(normalize(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn invisible_character_is_refused_with_its_position() {
        for (text, expected) in [
            ("GC-1\u{200b}", "invisible character (U+200B) at position 5"),
            ("\u{feff}GC-1", "invisible character (U+FEFF) at position 1"),
            (" GC\u{ad}-1", "invisible character (U+00AD) at position 3"),
            ("GC-1\u{200e}", "bidirectional mark (U+200E) at position 5"),
            ("GC\t1", "control character (U+0009) at position 3"),
            (
                "GC\u{a0}1",
                "white space other than a space (U+00A0) at position 3",
            ),
            ("G\u{e0100}", "invisible character (U+E0100) at position 2"),
            (
                "S\u{fffd}hne",
                "replacement character of a text in another encoding (U+FFFD) at position 2",
            ),
        ] {
            assert_eq!(normalize(text).unwrap_err().to_string(), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn normalized_text_stays_as_it_is(text in "\\PC{0,20}|[\u{0}-\u{20}a\u{308}\u{200b}\u{a0}o\u{feff}]{0,9}") {
            if let Ok(once) = normalize(&text) {
                prop_assert_eq!(&normalize(&once), &Ok(once.clone()));
                prop_assert_eq!(&normalize_stored(&text), &once);
            }
            let stored = normalize_stored(&text);
            prop_assert_eq!(&normalize(&stored).unwrap(), &stored);
        }
    }
}
