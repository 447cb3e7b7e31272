//! Splitter of a CSV line into its fields, with quotes as in RFC 4180 and nothing else.
//!
//! A quote within a field that does not begin with one is refused: other readers keep it, drop it or join
//! fields, and a code or a PIN would get a part that it does not have.

use zeroize::Zeroizing;

use super::line_error::LineError;
use super::separator::Separator;

/// The fields of a line, wiped when dropped.
#[derive(Default)]
pub(super) struct SplitLine {
    text: Zeroizing<String>,
    ends: Vec<usize>,
}

impl SplitLine {
    /// Splits a line.
    ///
    /// # Errors
    /// [`LineError::OpenQuote`] and [`LineError::MisplacedQuote`].
    pub(super) fn parse(line: &str, separator: Separator) -> Result<Self, LineError> {
        let separator = separator.character();
        let mut split = Self {
            // Full capacity from the start: growing would leave unwiped copies in memory.
            text: Zeroizing::new(String::with_capacity(line.len())),
            ends: Vec::new(),
        };
        let mut rest = line;
        loop {
            rest = match rest.strip_prefix('"') {
                Some(quoted) => split.push_quoted(quoted)?,
                None => {
                    let end = rest.find(separator).unwrap_or(rest.len());
                    let (field, tail) = rest.split_at(end);
                    if field.contains('"') {
                        return Err(LineError::MisplacedQuote);
                    }
                    split.text.push_str(field);
                    tail
                }
            };
            split.ends.push(split.text.len());
            match rest.strip_prefix(separator) {
                Some(tail) => rest = tail,
                None if rest.trim().is_empty() => return Ok(split),
                None => return Err(LineError::MisplacedQuote),
            }
        }
    }

    /// Appends a field after its first quote; returns what follows its last one.
    fn push_quoted<'l>(&mut self, mut rest: &'l str) -> Result<&'l str, LineError> {
        loop {
            let (field, tail) = rest.split_once('"').ok_or(LineError::OpenQuote)?;
            self.text.push_str(field);
            match tail.strip_prefix('"') {
                Some(tail) => {
                    self.text.push('"');
                    rest = tail;
                }
                None => return Ok(tail),
            }
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, position: usize) -> &str {
        let begin = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(begin..self.ends[position]).unwrap_or_default()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|position| self.get(position))
    }
}
