//! Webhooks of the peer: senders poll the outbox, send what they have locked over kept connections, and
//! delete what was received.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use hyper::Method;
use hyper::header::HeaderMap;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use tokio::task::LocalSet;
use uuid::Uuid;
use vouchsafe_api_client::Client;
use vouchsafe_api_client::origin::Origin;
use vouchsafe_api_client::partner::unix_seconds;
use vouchsafe_api_client::signer::Credentials;

/// Database connections that send.
const SENDERS: usize = 2;
/// Connections of a sender to the receiver.
const CLIENTS: usize = 16;
/// Webhooks per transaction.
const MAX_BATCH: usize = 128;
/// Delay after an empty poll.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

const LOCK_BATCH: &str = "SELECT outbox_id,
       event_id,
       body
  FROM outbox
 ORDER BY outbox_id
 LIMIT $1
   FOR UPDATE SKIP LOCKED";

/// The only endpoint. It is registered once per process.
pub(super) struct Outbox {
    database: PgConnectOptions,
    signer: Credentials,
    url: OnceLock<String>,
}

/// A locked row.
type Webhook = (i64, Uuid, String);

impl Outbox {
    pub(super) fn new(database: PgConnectOptions, signer: Credentials) -> Arc<Self> {
        Arc::new(Self {
            database,
            signer,
            url: OnceLock::new(),
        })
    }

    /// Whether orders write webhooks.
    pub(super) fn has_endpoint(&self) -> bool {
        self.url.get().is_some()
    }

    /// Registers the endpoint; the first call starts the senders, which run until the process ends.
    pub(super) fn register(self: &Arc<Self>, url: &str) -> anyhow::Result<()> {
        let origin = Origin::parse(url.trim_end_matches('/'))?;
        if self.url.set(url.to_owned()).is_err() {
            return Ok(());
        }
        let runtime = crate::runtime::new_runtime()?;
        let outbox = Arc::clone(self);
        thread::Builder::new().name("outbox".to_owned()).spawn(move || {
            let senders = LocalSet::new();
            for _ in 0..SENDERS {
                let (outbox, origin) = (Arc::clone(&outbox), origin.clone());
                senders.spawn_local(async move {
                    // Events that do not arrive fail the audit of the turn.
                    if let Err(error) = outbox.send_all(&origin).await {
                        eprintln!("a sender of webhooks has ended: {error:#}");
                    }
                });
            }
            runtime.block_on(senders);
        })?;
        Ok(())
    }

    async fn send_all(&self, origin: &Origin) -> anyhow::Result<()> {
        let mut connection = PgConnection::connect_with(&self.database).await?;
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| Client::new(origin.clone())).collect();
        let batch = i64::try_from(MAX_BATCH)?;
        loop {
            let mut transaction = connection.begin().await?;
            let locked: Vec<Webhook> = sqlx::query_as(LOCK_BATCH)
                .bind(batch)
                .fetch_all(&mut *transaction)
                .await?;
            if locked.is_empty() {
                transaction.rollback().await?;
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            }
            let shares = locked.chunks(locked.len().div_ceil(CLIENTS));
            let sent = clients
                .iter_mut()
                .zip(shares)
                .map(|(client, share)| self.send(client, share));
            for result in join_all(sent).await {
                result?;
            }
            let ids: Vec<i64> = locked.iter().map(|(outbox_id, ..)| *outbox_id).collect();
            sqlx::query("DELETE FROM outbox WHERE outbox_id = ANY ($1)")
                .bind(ids)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
        }
    }

    /// Sends webhooks one after the other. An error leaves the rows of the whole batch in the outbox.
    async fn send(&self, client: &mut Client, webhooks: &[Webhook]) -> anyhow::Result<()> {
        for (_, event_id, body) in webhooks {
            let id = format!("evt_{}", event_id.simple());
            let timestamp = unix_seconds().to_string();
            let signature = self.signer.signature_hex(&timestamp, &id, ".", body.as_bytes());
            let mut headers = HeaderMap::new();
            headers.insert("webhook-id", id.parse()?);
            headers.insert("webhook-timestamp", timestamp.parse()?);
            headers.insert("webhook-signature", format!("v1,{signature}").parse()?);
            headers.insert("content-type", "application/json".parse()?);
            let body = Bytes::copy_from_slice(body.as_bytes());
            let response = client.call(Method::POST, "/", headers, body).await?;
            anyhow::ensure!(
                response.status.is_success(),
                "the receiver responded {}",
                response.status
            );
        }
        Ok(())
    }
}
