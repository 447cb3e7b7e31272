//! A body that streams in, cut into blocks of whole lines: what one commit takes.
//!
//! Rule: memory is bounded whatever comes. A block ends after 10,000 lines or 4 MiB, and of a line that is too long only
//! its beginning is kept, enough to tell that it is.

use std::collections::VecDeque;

use zeroize::Zeroizing;

/// Lines of a block (contract §10: a commit per 10,000 lines).
const MAX_LINES: usize = 10_000;

/// Bytes of a block from which on it ends: 10,000 ordinary lines have about 0.5 MiB.
const MAX_BLOCK_BYTES: usize = 4 * 1024 * 1024;

/// Longest line. Bytes: all parts of a code at their longest, quoted and escaped, and room to spare.
pub(super) const MAX_LINE_BYTES: usize = 16 * 1024;

/// Some lines of the body, each ended by a line feed. It holds codes, and is wiped.
pub(in crate::admin) struct Block {
    /// The number of the first line, from 1.
    pub(super) first_line: u64,
    /// How many lines there are.
    pub(super) lines: usize,
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

    /// The lines with their numbers, without what ends them.
    pub(in crate::admin) fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let lines = self.text.split(|byte| *byte == b'\n').take(self.lines);
        let bare = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        (self.first_line..).zip(bare)
    }
}

/// Takes the body as it comes, and gives blocks as they are full.
pub(in crate::admin) struct Blocks {
    current: Block,
    /// Bytes of the line that has not ended yet.
    line_bytes: usize,
    full: VecDeque<Block>,
}

impl Blocks {
    /// Nothing has come yet.
    pub(in crate::admin) fn new() -> Self {
        Self {
            current: Block::empty(1),
            line_bytes: 0,
            full: VecDeque::new(),
        }
    }

    /// The next part of the body.
    pub(in crate::admin) fn push(&mut self, mut part: &[u8]) {
        while let Some(end) = part.iter().position(|byte| *byte == b'\n') {
            self.extend_line(&part[..end]);
            self.end_line();
            part = &part[end + 1..];
        }
        self.extend_line(part);
    }

    /// The body has ended; its last line may lack its end.
    pub(in crate::admin) fn finish(&mut self) {
        if self.line_bytes > 0 {
            self.end_line();
        }
        if self.current.lines > 0 {
            self.end_block();
        }
    }

    /// The oldest block that is full.
    pub(in crate::admin) fn take(&mut self) -> Option<Block> {
        self.full.pop_front()
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        // One byte more than a line may have: it tells that this one is too long.
        let room = (MAX_LINE_BYTES + 1).saturating_sub(self.line_bytes);
        let kept = &bytes[..bytes.len().min(room)];
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
        let mut blocks = Blocks::new();
        parts.iter().for_each(|part| blocks.push(part));
        blocks.finish();
        let full: Vec<Block> = std::iter::from_fn(|| blocks.take()).collect();
        full.iter()
            .flat_map(|block| block.lines().map(|(n, line)| (n, line.to_vec())))
            .collect()
    }

    #[test]
    fn lines_end_with_a_feed_with_or_without_a_return_or_with_the_body() {
        for (body, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a\nb\n", &["a", "b"]),
            ("a\r\nb\r\n", &["a", "b"]),
            ("a\n\nb", &["a", "", "b"]),
            ("\n", &[""]),
            ("a\rb\n", &["a\rb"]),
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
    fn a_block_ends_after_so_many_lines_or_bytes() {
        let mut blocks = Blocks::new();
        blocks.push("x\n".repeat(MAX_LINES + 1).as_bytes());
        let first = blocks.take().unwrap();
        assert_eq!((first.first_line, first.lines), (1, MAX_LINES));
        assert!(blocks.take().is_none());
        let long = "y".repeat(10_000) + "\n";
        (0..500).for_each(|_| blocks.push(long.as_bytes()));
        let second = blocks.take().unwrap();
        assert_eq!(second.first_line, MAX_LINES as u64 + 1);
        assert!(second.lines < 500 && second.text.len() < MAX_BLOCK_BYTES + MAX_LINE_BYTES);
    }

    #[test]
    fn of_a_line_without_end_only_the_beginning_is_kept() {
        let mut blocks = Blocks::new();
        (0..1_000).for_each(|_| blocks.push(&[b'x'; 10_000]));
        blocks.push(b"\nshort\n");
        blocks.finish();
        let block = blocks.take().unwrap();
        let lengths: Vec<_> = block.lines().map(|(_, line)| line.len()).collect();
        assert_eq!(lengths, [MAX_LINE_BYTES + 1, 5]);
    }

    proptest! {
        #[test]
        fn where_the_parts_are_cut_makes_no_difference(body in "[ab\r\n]{0,60}", cuts in prop::collection::vec(0_usize..60, 0..5)) {
            let body = body.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|w| &body[w[0]..w[1]]).collect();
            prop_assert_eq!(lines_of(&parts), lines_of(&[body]));
        }
    }
}
