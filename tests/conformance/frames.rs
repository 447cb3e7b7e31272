//! Messages of the Postgres protocol (version 3), cut out of a stream of bytes.
//!
//! Rule: waiting for a frame can be given up at any time; what has arrived of it stays in the buffer.

use std::io;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The server is done with everything up to the last Sync.
pub(crate) const READY_FOR_QUERY: u8 = b'Z';

/// The client waits for everything so far.
const SYNC: u8 = b'S';

/// The client names a statement.
const PARSE: u8 = b'P';

/// The client gives a statement its values.
const BIND: u8 = b'B';

/// Bytes of a message's type and length.
const HEADER: usize = 5;

/// One message, with its header.
#[derive(Debug, Clone)]
pub(crate) struct Frame(BytesMut);

impl Frame {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn tag(&self) -> u8 {
        self.0[0]
    }

    /// Name and text of the statement that this message prepares.
    pub(crate) fn prepares(&self) -> Option<(&[u8], &[u8])> {
        let [name, text] = self.texts(PARSE)?;
        Some((name, text))
    }

    /// The name of the statement that this message gives its values.
    pub(crate) fn binds(&self) -> Option<&[u8]> {
        let [_portal, statement] = self.texts(BIND)?;
        Some(statement)
    }

    /// The same message with another text in it; `None` if `from` is not in it.
    pub(crate) fn replaced(&self, from: &[u8], to: &[u8]) -> Option<Self> {
        let at = self.0.windows(from.len()).position(|window| window == from)?;
        let body = [&self.0[HEADER..at], to, &self.0[at + from.len()..]].concat();
        let mut changed = BytesMut::new();
        changed.put_u8(self.tag());
        changed.put_u32(u32::try_from(body.len() + 4).unwrap());
        changed.put_slice(&body);
        Some(Self(changed))
    }

    /// The two texts, each ended by a zero, that a message of this type begins with.
    fn texts(&self, tag: u8) -> Option<[&[u8]; 2]> {
        let body = Some(&self.0[HEADER..]).filter(|_| self.tag() == tag)?;
        let mut texts = body.split(|byte| *byte == 0);
        Some([texts.next()?, texts.next()?])
    }
}

/// A stream, frame by frame.
pub(crate) struct Frames<R> {
    stream: R,
    arrived: BytesMut,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self {
            stream,
            arrived: BytesMut::new(),
        }
    }

    /// The first message of a client, which has no type.
    pub(crate) async fn startup(&mut self) -> io::Result<BytesMut> {
        self.fill(4).await?;
        let length = (&self.arrived[..]).get_u32() as usize;
        self.fill(length).await?;
        Ok(self.arrived.split_to(length))
    }

    /// The next message.
    ///
    /// # Errors
    /// What reading says; `UnexpectedEof` where the stream is over.
    pub(crate) async fn next(&mut self) -> io::Result<Frame> {
        self.fill(HEADER).await?;
        let length = 1 + (&self.arrived[1..]).get_u32() as usize;
        self.fill(length).await?;
        Ok(Frame(self.arrived.split_to(length)))
    }

    /// The messages from `first` on, up to the client's Sync.
    pub(crate) async fn until_sync(&mut self, first: Frame) -> io::Result<Vec<u8>> {
        let mut bytes = first.0.to_vec();
        loop {
            let frame = self.next().await?;
            bytes.extend_from_slice(frame.bytes());
            if frame.tag() == SYNC {
                return Ok(bytes);
            }
        }
    }

    /// Skips what the server says until it is done.
    pub(crate) async fn until_ready(&mut self) -> io::Result<()> {
        while self.next().await?.tag() != READY_FOR_QUERY {}
        Ok(())
    }

    async fn fill(&mut self, length: usize) -> io::Result<()> {
        while self.arrived.len() < length {
            if self.stream.read_buf(&mut self.arrived).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }
}
