//! Data keys in the background: keys of other nodes, the next key when the active one is old, wrapping keys
//! that work again, and re-encryption of old codes.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use actix_web::web;
use tracing::info;

use super::every;
use crate::service::JobState;

/// A sixth of the time that a re-encryption leaves to the nodes to load a new key.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// A failing key is one line in the log and two requests to the key manager per interval.
const PROBE_INTERVAL: Duration = Duration::from_secs(60);

/// One indexed lookup.
const REENCRYPTION_INTERVAL: Duration = Duration::from_secs(10);

/// Bounds the rate to 10,000 codes per second, some 5 MiB of WAL.
const MIN_PAUSE: Duration = Duration::from_millis(100);

/// Loads data keys of other nodes, and creates the next one in time.
pub(super) async fn refresh_keys(service: &JobState) -> Infallible {
    every(REFRESH_INTERVAL, "cannot refresh the data keys", async || {
        Ok(service.keyring.refresh(service.max_data_key_age).await?)
    })
    .await
}

/// Probes wrapping keys that did not work at the start, and reports those that work again, so that a rotation
/// may use them. Apart from [`refresh_keys`], which a key manager that hangs must not delay.
pub(super) async fn probe_wrapping_keys(service: &JobState) -> Infallible {
    let failing = || service.keyring.failing_wrapping_keys().len();
    service.metrics.record_failing_wrapping_keys(failing());
    let mut reported = failing();
    // The start has probed all keys.
    tokio::time::sleep(PROBE_INTERVAL).await;
    every(
        PROBE_INTERVAL,
        "cannot report the wrapping keys that work",
        async || {
            let working = service.keyring.probe_failing_wrapping_keys().await;
            service.metrics.record_failing_wrapping_keys(failing());
            if failing() != reported {
                let nodes = &service.store.nodes;
                nodes
                    .report_wrapping_keys(service.node.identity(), working)
                    .await?;
                reported = failing();
            }
            Ok(())
        },
    )
    .await
}

/// Encrypts old codes again on request.
pub(super) async fn reencrypt_codes(service: &JobState) -> Infallible {
    every(
        REENCRYPTION_INTERVAL,
        "cannot encrypt old codes again",
        async || reencrypt_all(service).await,
    )
    .await
}

async fn reencrypt_all(service: &JobState) -> anyhow::Result<()> {
    let mut is_reloaded = false;
    let mut total = 0;
    loop {
        let started = Instant::now();
        let reencryptions = &service.store.reencryptions;
        let Some(batch) = reencryptions.next_batch().await? else {
            return Ok(());
        };
        if !is_reloaded {
            // The previous run may have ended with a failover to a standby that lacks the active key.
            service.keyring.reload().await?;
            is_reloaded = true;
            info!(key.id = batch.key_id().0, "encryption of old codes started");
        }
        let old_keys = batch.old_codes().map(|code| code.sealed.key_id);
        service
            .keyring
            .vault_with(old_keys.chain([batch.key_id()]))
            .await?;
        // The vault from now on, or with the next key if that one is exhausted.
        let vault = service.keyring.sealing_vault().await?;
        let (batch, codes) = web::block(move || {
            let codes = batch.encrypt_again(&vault);
            (batch, codes)
        })
        .await?;
        let codes = codes?;
        total += codes.len();
        let has_more = reencryptions.store(batch, codes).await?;
        if !has_more {
            info!(codes = total, "encryption of old codes ended on this node");
            return Ok(());
        }
        // A backlog takes at most half of a CPU.
        tokio::time::sleep(started.elapsed().max(MIN_PAUSE)).await;
    }
}
