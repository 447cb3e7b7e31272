//! Commit notifications: tell the delivery poller which partners have new events, so that they are delivered
//! at once.
//!
//! A notification is a hint. The periodic poll finds what it missed and what other processes committed.

use dashmap::DashSet;
use tokio::sync::Notify;
use vouchsafe_domain::ids::PartnerId;

/// Partners with events committed since the last call of [`notified`](Self::notified).
#[derive(Debug, Default)]
pub struct CommitNotifier {
    partners: DashSet<PartnerId>,
    changed: Notify,
}

impl CommitNotifier {
    /// Reports the partners whose events a commit has written. It notifies once for all of them: with a
    /// notification for each, the poller would wake for each and take the lane's core once per record of the
    /// batch.
    pub fn notify(&self, partners: impl IntoIterator<Item = PartnerId>) {
        let mut has_new = false;
        for partner_id in partners {
            has_new |= self.partners.insert(partner_id);
        }
        if has_new {
            self.changed.notify_one();
        }
    }

    /// Waits for a notification and returns the partners.
    pub async fn notified(&self) -> Vec<PartnerId> {
        loop {
            let partners: Vec<_> = self.partners.iter().map(|partner| *partner).collect();
            if !partners.is_empty() {
                for partner in &partners {
                    self.partners.remove(partner);
                }
                return partners;
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn partner_is_returned_once_per_notification() {
        let notifier = CommitNotifier::default();
        let partners = [PartnerId::generate(), PartnerId::generate()];
        notifier.notify(partners);
        notifier.notify(partners);
        assert_eq!(notifier.notified().await.len(), 2);
        // A stored permit may be left over, but no partner is.
        let notified = tokio::time::timeout(Duration::from_secs(1), notifier.notified()).await;
        assert!(notified.is_err(), "{notified:?}");
    }

    #[tokio::test]
    async fn each_partner_is_returned_once_and_none_is_lost() {
        let notifier = CommitNotifier::default();
        let (one, other) = (PartnerId::generate(), PartnerId::generate());
        notifier.notify([one, one]);
        notifier.notify([one, other]);
        let mut notified = notifier.notified().await;
        notified.sort();
        let mut expected = [one, other];
        expected.sort();
        assert_eq!(notified, expected);
        notifier.notify([one]);
        assert_eq!(notifier.notified().await, [one]);
    }
}
