//! Decoder of a file's bytes: UTF-8 and UTF-16 with and without byte order mark, and the line ends of all
//! systems.
//!
//! Bytes come in parts of any size. The output is UTF-8 (unless the file is in an encoding of one byte per
//! character, which the lines report) with line feeds; a carriage return before a line feed stays.

use zeroize::Zeroizing;

use super::notice::{FileError, Notice};

/// Bytes that show the encoding: a byte order mark, the signature of an archive, or the zero bytes of UTF-16.
const PROBE_BYTES: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16 { is_big_endian: bool },
}

/// How lines end. The first line end decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Undecided,
    LineFeed,
    CarriageReturn,
}

/// Decodes parts of a file.
pub(super) struct TextDecoder {
    /// `None` until [`PROBE_BYTES`] have come.
    encoding: Option<Encoding>,
    /// Bytes that are not decoded yet: fewer than a probe, or half a character of UTF-16.
    rest: Zeroizing<Vec<u8>>,
    line_end: LineEnd,
    /// Whether the last byte was a carriage return about which the next one decides.
    after_return: bool,
    notices: Vec<Notice>,
}

impl Default for TextDecoder {
    fn default() -> Self {
        Self {
            encoding: None,
            rest: Zeroizing::default(),
            line_end: LineEnd::Undecided,
            after_return: false,
            notices: Vec::new(),
        }
    }
}

impl TextDecoder {
    /// Decodes the next part.
    ///
    /// # Errors
    /// [`FileError`] for a file that is no text in one of the encodings.
    pub(super) fn decode(&mut self, part: &[u8]) -> Result<Zeroizing<Vec<u8>>, FileError> {
        self.rest.extend_from_slice(part);
        if self.encoding.is_none() && self.rest.len() < PROBE_BYTES {
            return Ok(Zeroizing::default());
        }
        self.decode_rest(false)
    }

    /// Decodes what is left at the end of the file.
    ///
    /// # Errors
    /// [`FileError`] for a file that is no text in one of the encodings.
    pub(super) fn finish(&mut self) -> Result<Zeroizing<Vec<u8>>, FileError> {
        let mut decoded = self.decode_rest(true)?;
        if std::mem::take(&mut self.after_return) {
            self.end_with_return(&mut decoded);
        }
        Ok(decoded)
    }

    /// What was found out so far.
    pub(super) fn notices(&self) -> &[Notice] {
        &self.notices
    }

    fn decode_rest(&mut self, is_last: bool) -> Result<Zeroizing<Vec<u8>>, FileError> {
        let encoding = match self.encoding {
            Some(encoding) => encoding,
            None => self.detect()?,
        };
        let rest = std::mem::take(&mut self.rest);
        let mut decoded = Zeroizing::new(Vec::with_capacity(2 * rest.len()));
        match encoding {
            Encoding::Utf8 => self.copy(&rest, &mut decoded),
            Encoding::Utf16 { is_big_endian } => {
                let units = rest.chunks_exact(2).map(|pair| {
                    let pair = [pair[0], pair[1]];
                    if is_big_endian {
                        u16::from_be_bytes(pair)
                    } else {
                        u16::from_le_bytes(pair)
                    }
                });
                let mut units: Zeroizing<Vec<u16>> = Zeroizing::new(units.collect());
                let mut undecoded = rest.len() % 2;
                // The second half of the character may come with the next part.
                if !is_last && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
                    units.pop();
                    undecoded += 2;
                }
                self.rest.extend_from_slice(&rest[rest.len() - undecoded..]);
                let text: Zeroizing<String> = Zeroizing::new(
                    // A replacement character is refused wherever it matters.
                    char::decode_utf16(units.iter().copied())
                        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                        .collect(),
                );
                self.copy(text.as_bytes(), &mut decoded);
            }
        }
        Ok(decoded)
    }

    fn detect(&mut self) -> Result<Encoding, FileError> {
        let (encoding, mark) = match &self.rest[..] {
            [0xef, 0xbb, 0xbf, ..] => (Encoding::Utf8, 3),
            [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => {
                return Err(FileError::Utf32);
            }
            [b'P', b'K', 3, 4, ..] => return Err(FileError::Archive),
            [0x1f, 0x8b, ..] => return Err(FileError::Compressed),
            [0xff, 0xfe, ..] => (Encoding::Utf16 { is_big_endian: false }, 2),
            [0xfe, 0xff, ..] => (Encoding::Utf16 { is_big_endian: true }, 2),
            // Names of columns and codes begin with ASCII.
            [a, 0, b, 0, ..] if *a != 0 && *b != 0 => (Encoding::Utf16 { is_big_endian: false }, 0),
            [0, a, 0, b, ..] if *a != 0 && *b != 0 => (Encoding::Utf16 { is_big_endian: true }, 0),
            _ => (Encoding::Utf8, 0),
        };
        if let Encoding::Utf16 { is_big_endian } = encoding {
            let name = if is_big_endian {
                "UTF-16 (big-endian)"
            } else {
                "UTF-16"
            };
            self.notices.push(Notice::Encoding(name));
        }
        self.encoding = Some(encoding);
        self.rest = Zeroizing::new(self.rest[mark..].to_vec());
        Ok(encoding)
    }

    /// Appends text with its line ends as line feeds.
    fn copy(&mut self, text: &[u8], decoded: &mut Vec<u8>) {
        for &byte in text {
            if std::mem::take(&mut self.after_return) {
                if byte == b'\n' {
                    if self.line_end == LineEnd::Undecided {
                        self.line_end = LineEnd::LineFeed;
                    }
                    decoded.push(b'\n');
                    continue;
                }
                self.end_with_return(decoded);
            }
            match byte {
                b'\r' => self.after_return = true,
                b'\n' => {
                    if self.line_end == LineEnd::Undecided {
                        self.line_end = LineEnd::LineFeed;
                    }
                    decoded.push(b'\n');
                }
                byte => decoded.push(byte),
            }
        }
    }

    /// A carriage return without a line feed: a line end of old programs, or a control character in a file
    /// with other line ends.
    fn end_with_return(&mut self, decoded: &mut Vec<u8>) {
        if self.line_end == LineEnd::Undecided {
            self.line_end = LineEnd::CarriageReturn;
            self.notices.push(Notice::CarriageReturns);
        }
        decoded.push(match self.line_end {
            LineEnd::CarriageReturn => b'\n',
            LineEnd::Undecided | LineEnd::LineFeed => b'\r',
        });
    }
}
