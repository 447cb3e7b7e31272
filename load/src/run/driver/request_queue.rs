//! Request queue of one thread: requests drawn when they are due, or drawn and signed before the run.

use std::collections::VecDeque;

use rand::rngs::StdRng;
use uuid::Uuid;
use vouchsafe_api_client::RequestFailure;
use vouchsafe_api_client::partner::{PartnerClient, SignedRequest};

use super::LoadPlan;
use crate::run::result::RunError;
use crate::traffic::request::RequestSpec;

/// A request; `signed` holds key and signature of a presigned order.
pub(super) struct QueuedRequest {
    pub(super) spec: RequestSpec,
    pub(super) signed: Option<(Uuid, SignedRequest)>,
}

pub(super) struct RequestQueue {
    rng: StdRng,
    presigned: VecDeque<QueuedRequest>,
}

impl RequestQueue {
    /// Draws and signs `count` requests.
    pub(super) fn new(plan: &LoadPlan, rng: StdRng, count: usize) -> Result<Self, RunError> {
        let mut queue = Self {
            rng,
            presigned: VecDeque::with_capacity(count),
        };
        let mut signers = Vec::new();
        if count > 0 {
            for credentials in &plan.partners {
                signers.push(PartnerClient::new(&plan.base_url, credentials.clone())?);
            }
        }
        for _ in 0..count {
            let ask = plan.traffic.draw(&mut queue.rng);
            let signed = match &ask {
                RequestSpec::Order { partner, body, .. } => {
                    let key = Uuid::new_v4();
                    let request = sign_order(&signers[*partner], key, body.clone());
                    let request = request.map_err(|failure| RunError::Presigned(failure.to_string()))?;
                    Some((key, request))
                }
                RequestSpec::PastOrder { .. } | RequestSpec::PartnerRead { .. } => None,
            };
            queue.presigned.push_back(QueuedRequest { spec: ask, signed });
        }
        Ok(queue)
    }

    pub(super) fn next(&mut self, plan: &LoadPlan) -> QueuedRequest {
        match self.presigned.pop_front() {
            Some(request) => request,
            None => QueuedRequest {
                spec: plan.traffic.draw(&mut self.rng),
                signed: None,
            },
        }
    }
}

/// Signs an order under a UUID key.
pub(super) fn sign_order(
    signer: &PartnerClient,
    key: Uuid,
    body: bytes::Bytes,
) -> Result<SignedRequest, RequestFailure> {
    let mut text = Uuid::encode_buffer();
    signer.sign_order(key.hyphenated().encode_lower(&mut text), body)
}
