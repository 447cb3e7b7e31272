//! What is asked for next by a thread, and is it signed already? Drawn when it is due, or, with its new orders signed,
//! before the run.

use std::collections::VecDeque;

use rand::rngs::StdRng;
use uuid::Uuid;

use super::LoadPlan;
use crate::client::RequestFailure;
use crate::partner::{PartnerClient, SignedRequest};
use crate::run::RunError;
use crate::traffic::RequestSpec;

/// A request with its key, if it is a new order that was signed beforehand.
pub(super) struct QueuedRequest {
    pub(super) spec: RequestSpec,
    pub(super) signed: Option<(Uuid, SignedRequest)>,
}

/// The requests of one thread.
pub(super) struct RequestQueue {
    chance: StdRng,
    prepared: VecDeque<QueuedRequest>,
}

impl RequestQueue {
    /// Draws and signs `count` of them now.
    pub(super) fn new(drive: &LoadPlan, chance: StdRng, count: usize) -> Result<Self, RunError> {
        let mut deck = Self {
            chance,
            prepared: VecDeque::with_capacity(count),
        };
        let mut signers = Vec::new();
        if count > 0 {
            for credentials in &drive.partners {
                signers.push(PartnerClient::new(&drive.base_url, credentials.clone())?);
            }
        }
        for _ in 0..count {
            let ask = drive.traffic.draw(&mut deck.chance);
            let signed = match &ask {
                RequestSpec::Order { partner, body, .. } => {
                    let key = Uuid::new_v4();
                    let request = sign_order(&signers[*partner], key, body.clone());
                    let request = request.map_err(|failure| RunError::Presigned(failure.to_string()))?;
                    Some((key, request))
                }
                RequestSpec::PastOrder { .. } | RequestSpec::PartnerRead { .. } => None,
            };
            deck.prepared.push_back(QueuedRequest { spec: ask, signed });
        }
        Ok(deck)
    }

    /// The next one.
    pub(super) fn next(&mut self, drive: &LoadPlan) -> QueuedRequest {
        match self.prepared.pop_front() {
            Some(dealt) => dealt,
            None => QueuedRequest {
                spec: drive.traffic.draw(&mut self.chance),
                signed: None,
            },
        }
    }
}

/// Signs an order under a key that is a uuid.
pub(super) fn sign_order(
    signer: &PartnerClient,
    key: Uuid,
    body: bytes::Bytes,
) -> Result<SignedRequest, RequestFailure> {
    let mut text = Uuid::encode_buffer();
    signer.sign_order(key.hyphenated().encode_lower(&mut text), body)
}
