//! Reader of Postgres wire protocol messages (version 3).
//!
//! Reads are cancellation safe: a partial message stays in the buffer.

use std::io;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

const READY_FOR_QUERY: u8 = b'Z';

const SYNC: u8 = b'S';

const PARSE: u8 = b'P';

const BIND: u8 = b'B';

const QUERY: u8 = b'Q';

const EXECUTE: u8 = b'E';

/// Bytes of a message's type and length.
const HEADER: usize = 5;

/// A message, including its header.
#[derive(Debug, Clone)]
pub struct Frame(BytesMut);

impl Frame {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn tag(&self) -> u8 {
        self.0[0]
    }

    /// Whether the server runs a statement when it receives this message.
    pub fn runs_statement(&self) -> bool {
        [QUERY, EXECUTE].contains(&self.tag())
    }

    /// Name and text of the statement that this Parse message prepares.
    pub fn prepared_statement(&self) -> Option<(&[u8], &[u8])> {
        let [name, text] = self.leading_strings(PARSE)?;
        Some((name, text))
    }

    /// Name of the statement that this Bind message uses.
    pub fn bound_statement(&self) -> Option<&[u8]> {
        let [_portal, statement] = self.leading_strings(BIND)?;
        Some(statement)
    }

    /// The message with `from` replaced by `to`; `None` if it does not contain `from`.
    pub fn with_replacement(&self, from: &[u8], to: &[u8]) -> Option<Self> {
        let at = self.0.windows(from.len()).position(|window| window == from)?;
        let body = [&self.0[HEADER..at], to, &self.0[at + from.len()..]].concat();
        let mut changed = BytesMut::new();
        changed.put_u8(self.tag());
        changed.put_u32(u32::try_from(body.len() + 4).unwrap());
        changed.put_slice(&body);
        Some(Self(changed))
    }

    /// The two NUL-terminated strings at the start of a message with this tag.
    fn leading_strings(&self, tag: u8) -> Option<[&[u8]; 2]> {
        let body = Some(&self.0[HEADER..]).filter(|_| self.tag() == tag)?;
        let mut texts = body.split(|byte| *byte == 0);
        Some([texts.next()?, texts.next()?])
    }
}

pub struct FrameReader<R> {
    stream: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(stream: R) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
        }
    }

    /// Reads a client's startup message, which has no type.
    ///
    /// # Errors
    /// Those of [`Self::next`].
    pub async fn startup(&mut self) -> io::Result<BytesMut> {
        self.fill(4).await?;
        let length = (&self.buffer[..]).get_u32() as usize;
        self.fill(length).await?;
        Ok(self.buffer.split_to(length))
    }

    /// Reads the next message.
    ///
    /// # Errors
    /// I/O errors of the stream; `UnexpectedEof` at its end.
    pub async fn next(&mut self) -> io::Result<Frame> {
        self.fill(HEADER).await?;
        let length = 1 + (&self.buffer[1..]).get_u32() as usize;
        self.fill(length).await?;
        Ok(Frame(self.buffer.split_to(length)))
    }

    /// Reads from `first` through the message after which the server responds.
    ///
    /// # Errors
    /// Those of [`Self::next`].
    pub async fn read_until_sync(&mut self, first: Frame) -> io::Result<Vec<u8>> {
        let mut bytes = first.0.to_vec();
        let mut tag = first.tag();
        while ![SYNC, QUERY].contains(&tag) {
            let frame = self.next().await?;
            bytes.extend_from_slice(frame.bytes());
            tag = frame.tag();
        }
        Ok(bytes)
    }

    /// Skips messages through the server's `ReadyForQuery`.
    ///
    /// # Errors
    /// Those of [`Self::next`].
    pub async fn skip_until_ready(&mut self) -> io::Result<()> {
        while self.next().await?.tag() != READY_FOR_QUERY {}
        Ok(())
    }

    async fn fill(&mut self, length: usize) -> io::Result<()> {
        while self.buffer.len() < length {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }
}
