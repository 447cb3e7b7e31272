//! Blocks of whole lines of a streamed request body, with a limit on its pauses.

use std::time::Duration;

use actix_web::web;
use futures_util::StreamExt as _;
use vouchsafe_wire::error_body::InvalidRequest;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::table::blocks::{Block, BlockSplitter};
use vouchsafe_wire::operator::table::notice::Notice;

use crate::api::body::incomplete;
use crate::api::error::ApiError;

/// Longest pause of the body (contract §10).
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// Blocks of a request body, in order.
pub(super) struct LineBlocks {
    payload: web::Payload,
    blocks: BlockSplitter,
    /// Log event of an interrupted body.
    interrupted: &'static str,
    /// Message after a pause.
    idle: &'static str,
}

impl LineBlocks {
    pub(super) fn new(payload: web::Payload, interrupted: &'static str, idle: &'static str) -> Self {
        Self {
            payload,
            blocks: BlockSplitter::default(),
            interrupted,
            idle,
        }
    }

    /// What was found out about encoding and line ends so far.
    pub(super) fn notices(&self) -> &[Notice] {
        self.blocks.notices()
    }

    /// Returns the next block; `None` at the end of the body.
    ///
    /// # Errors
    /// `MALFORMED_REQUEST` for an interrupted body, `REQUEST_TIMEOUT` after a pause, `VALIDATION_FAILED` for
    /// one that is no text.
    pub(super) async fn next(&mut self) -> Result<Option<Block>, ApiError> {
        loop {
            if let Some(block) = self.blocks.take() {
                return Ok(Some(block));
            }
            match tokio::time::timeout(IDLE_LIMIT, self.payload.next()).await {
                Ok(Some(Ok(part))) => self.blocks.push(&part).map_err(InvalidRequest::from)?,
                Ok(Some(Err(error))) => {
                    tracing::warn!(error.message = %error, "{}", self.interrupted);
                    return Err(incomplete());
                }
                Ok(None) => {
                    self.blocks.finish().map_err(InvalidRequest::from)?;
                    return Ok(self.blocks.take());
                }
                Err(_) => return Err(ApiError::new(Code::RequestTimeout, self.idle)),
            }
        }
    }
}
