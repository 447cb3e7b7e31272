//! Decodes a streamed body and splits it into blocks of whole lines; one block is one commit.
//!
//! Memory is bounded: a block ends after 10,000 lines or 4 MiB, and only the beginning of an overlong line is
//! kept.

use std::collections::VecDeque;

use zeroize::Zeroizing;

use super::line_error::MAX_LINE_BYTES;
use super::notice::{FileError, Notice};
use super::text_decoder::TextDecoder;

/// Contract §10: a commit per 10,000 lines.
const MAX_LINES: usize = 10_000;

/// 10,000 ordinary lines have about 0.5 MiB.
const MAX_BLOCK_BYTES: usize = 4 * 1024 * 1024;

/// Lines of the body, each ended by a line feed. Contains codes; zeroized on drop.
pub struct Block {
    /// Number of the first line, from 1.
    pub first_line: u64,
    pub lines: usize,
    text: Zeroizing<Vec<u8>>,
}

impl Block {
    fn empty(first_line: u64) -> Self {
        Self {
            first_line,
            lines: 0,
            text: Zeroizing::default(),
        }
    }

    /// Lines with their numbers, without line endings.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let lines = self.text.split(|byte| *byte == b'\n').take(self.lines);
        let bare = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        (self.first_line..).zip(bare)
    }
}

/// Collects the parts of a body into blocks.
pub struct BlockSplitter {
    decoder: TextDecoder,
    current: Block,
    /// Length of the current, unfinished line.
    line_bytes: usize,
    full: VecDeque<Block>,
}

impl Default for BlockSplitter {
    fn default() -> Self {
        Self {
            decoder: TextDecoder::default(),
            current: Block::empty(1),
            line_bytes: 0,
            full: VecDeque::new(),
        }
    }
}

impl BlockSplitter {
    /// Adds the next part of the body.
    ///
    /// # Errors
    /// [`FileError`] for a body that is no text in a known encoding.
    pub fn push(&mut self, part: &[u8]) -> Result<(), FileError> {
        let decoded = self.decoder.decode(part)?;
        self.split(&decoded);
        Ok(())
    }

    /// What was found out about encoding and line ends so far.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        self.decoder.notices()
    }

    fn split(&mut self, mut part: &[u8]) {
        while let Some(end) = part.iter().position(|byte| *byte == b'\n') {
            self.extend_line(&part[..end]);
            self.end_line();
            part = &part[end + 1..];
        }
        self.extend_line(part);
    }

    /// Ends the body; its last line may lack a line ending.
    ///
    /// # Errors
    /// [`FileError`] for a body that is no text in a known encoding.
    pub fn finish(&mut self) -> Result<(), FileError> {
        let decoded = self.decoder.finish()?;
        self.split(&decoded);
        if self.line_bytes > 0 {
            self.end_line();
        }
        if self.current.lines > 0 {
            self.end_block();
        }
        Ok(())
    }

    /// Returns the next complete block.
    pub fn take(&mut self) -> Option<Block> {
        self.full.pop_front()
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        // One byte over the limit marks the line as too long.
        let remaining = (MAX_LINE_BYTES + 1).saturating_sub(self.line_bytes);
        let kept = &bytes[..bytes.len().min(remaining)];
        self.line_bytes += kept.len();
        self.current.text.extend_from_slice(kept);
    }

    fn end_line(&mut self) {
        self.line_bytes = 0;
        self.current.text.push(b'\n');
        self.current.lines += 1;
        if self.current.lines >= MAX_LINES || self.current.text.len() >= MAX_BLOCK_BYTES {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        let next = Block::empty(self.current.first_line + self.current.lines as u64);
        self.full.push_back(std::mem::replace(&mut self.current, next));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines_of(parts: &[&[u8]]) -> Vec<(u64, Vec<u8>)> {
        let mut blocks = BlockSplitter::default();
        parts.iter().for_each(|part| blocks.push(part).unwrap());
        blocks.finish().unwrap();
        let full: Vec<Block> = std::iter::from_fn(|| blocks.take()).collect();
        full.iter()
            .flat_map(|block| block.lines().map(|(n, line)| (n, line.to_vec())))
            .collect()
    }

    #[test]
    fn lines_end_with_lf_crlf_or_end_of_body() {
        for (body, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a\nb\n", &["a", "b"]),
            ("a\r\nb\r\n", &["a", "b"]),
            ("a\n\nb", &["a", "", "b"]),
            ("\n", &[""]),
            ("a\r\nb\rc\n", &["a", "b\rc"]),
            ("a\rb\r", &["a", "b"]),
        ] {
            let lines = lines_of(&[body.as_bytes()]);
            let texts: Vec<_> = lines
                .iter()
                .map(|(_, line)| std::str::from_utf8(line).unwrap())
                .collect();
            assert_eq!(texts, expected, "{body:?}");
            assert!(lines.iter().map(|(n, _)| *n).eq(1..=expected.len() as u64));
        }
    }

    #[test]
    fn block_ends_at_line_or_byte_limit() {
        let mut blocks = BlockSplitter::default();
        blocks.push("x\n".repeat(MAX_LINES + 1).as_bytes()).unwrap();
        let first = blocks.take().unwrap();
        assert_eq!((first.first_line, first.lines), (1, MAX_LINES));
        assert!(blocks.take().is_none());
        let long = "y".repeat(10_000) + "\n";
        (0..500).for_each(|_| blocks.push(long.as_bytes()).unwrap());
        let second = blocks.take().unwrap();
        assert_eq!(second.first_line, MAX_LINES as u64 + 1);
        assert!(second.lines < 500 && second.text.len() < MAX_BLOCK_BYTES + MAX_LINE_BYTES);
    }

    #[test]
    fn overlong_line_is_truncated() {
        let mut blocks = BlockSplitter::default();
        (0..1_000).for_each(|_| blocks.push(&[b'x'; 10_000]).unwrap());
        blocks.push(b"\nshort\n").unwrap();
        blocks.finish().unwrap();
        let block = blocks.take().unwrap();
        let lengths: Vec<_> = block.lines().map(|(_, line)| line.len()).collect();
        assert_eq!(lengths, [MAX_LINE_BYTES + 1, 5]);
    }

    proptest! {
        #[test]
        fn result_is_independent_of_part_boundaries(body in "[ab\r\n]{0,60}", cuts in prop::collection::vec(0_usize..60, 0..5)) {
            let body = body.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|w| &body[w[0]..w[1]]).collect();
            prop_assert_eq!(lines_of(&parts), lines_of(&[body]));
        }
    }
}
