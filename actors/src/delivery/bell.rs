//! Whose events were committed a moment ago? So that they are delivered at once, and nobody asks the database in a circle.
//!
//! Rule: the bell is a hint. What it does not tell, or tells of what another process has committed, is found by looking.

use dashmap::DashSet;
use tokio::sync::Notify;

use crate::domain::ids::PartnerId;

/// Partners whose events were committed since somebody last looked.
#[derive(Debug, Default)]
pub struct Bell {
    partners: DashSet<PartnerId>,
    rings: Notify,
}

impl Bell {
    /// A commit of this process has written events of the partner.
    pub fn ring(&self, partner_id: PartnerId) {
        if self.partners.insert(partner_id) {
            self.rings.notify_one();
        }
    }

    /// Waits until it has rung, and says for whom.
    pub async fn heard(&self) -> Vec<PartnerId> {
        loop {
            let partners: Vec<_> = self.partners.iter().map(|partner| *partner).collect();
            if !partners.is_empty() {
                for partner in &partners {
                    self.partners.remove(partner);
                }
                return partners;
            }
            self.rings.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_partner_is_told_once_and_none_is_lost() {
        let bell = Bell::default();
        let (one, other) = (PartnerId::generate(), PartnerId::generate());
        bell.ring(one);
        bell.ring(one);
        bell.ring(other);
        let mut heard = bell.heard().await;
        heard.sort();
        let mut expected = [one, other];
        expected.sort();
        assert_eq!(heard, expected);
        bell.ring(one);
        assert_eq!(bell.heard().await, [one]);
    }
}
