//! Certificates of the listeners: loaded at the start, and again when their files change.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::MissedTickBehavior;
use tracing::{error, info, warn};
use vouchsafe_cli::invalid_setting;

use crate::metrics::{Metrics, OPERATOR_LISTENER, PARTNER_LISTENER};
use crate::settings::ServeSettings;
use crate::tls::{ListenerTls, Reload, TlsFiles, TlsFilesError};

/// How long a renewed certificate waits for its use, at most.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// TLS of the listeners that have it.
pub(super) struct Certificates {
    pub(super) partners: Option<Arc<ListenerTls>>,
    pub(super) operators: Option<Arc<ListenerTls>>,
}

impl Certificates {
    /// # Errors
    /// If a setting is missing, or a file cannot be used. A restart can help against the second: a renewal
    /// may be writing the files.
    pub(super) fn load(settings: &ServeSettings) -> anyhow::Result<Self> {
        Ok(Self {
            partners: load(settings.partner_tls().map_err(invalid_setting)?)
                .context("load the certificate of the partner listener")?,
            operators: load(settings.operator_tls().map_err(invalid_setting)?)
                .context("load the certificate of the operator listener")?,
        })
    }

    /// Uses changed files for new connections, forever.
    pub(super) async fn follow_files(&self, metrics: &Metrics) -> Infallible {
        let listeners = [
            (PARTNER_LISTENER, &self.partners),
            (OPERATOR_LISTENER, &self.operators),
        ];
        // A series exists from the start, also without TLS.
        for (listener, _) in listeners {
            metrics.record_certificate_files(listener, true);
        }
        let mut followed: Vec<FollowedFiles> = listeners
            .into_iter()
            .filter_map(|(listener, tls)| {
                let tls = Arc::clone(tls.as_ref()?);
                Some(FollowedFiles {
                    listener,
                    tls,
                    reported: None,
                })
            })
            .collect();
        let mut interval = tokio::time::interval(CHECK_INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            for files in &mut followed {
                files.check(metrics).await;
            }
        }
    }
}

fn load(files: Option<TlsFiles>) -> anyhow::Result<Option<Arc<ListenerTls>>> {
    let Some(files) = files else { return Ok(None) };
    let (tls, exposed) = ListenerTls::load(files)?;
    if let Some(exposed) = exposed {
        warn!("{exposed}");
    }
    Ok(Some(Arc::new(tls)))
}

/// The files of a listener, with the error that was logged last.
struct FollowedFiles {
    listener: &'static str,
    tls: Arc<ListenerTls>,
    reported: Option<TlsFilesError>,
}

impl FollowedFiles {
    async fn check(&mut self, metrics: &Metrics) {
        let tls = Arc::clone(&self.tls);
        // Files may be on a slow disk.
        let Ok(outcome) = tokio::task::spawn_blocking(move || tls.reload()).await else {
            return; // the runtime is shutting down
        };
        let listener = self.listener;
        match outcome {
            Ok(Reload::Unchanged) => return,
            Ok(Reload::Changed { closed }) => {
                info!(
                    listener,
                    connections.closed = closed,
                    "using the changed certificate files for new connections"
                );
                self.reported = None;
            }
            Err(error) if self.reported.as_ref() == Some(&error) => return,
            Err(error) => {
                error!(
                    listener,
                    error.message = %error,
                    "cannot use the changed certificate files; new connections still get the previous certificate"
                );
                self.reported = Some(error);
            }
        }
        metrics.record_certificate_files(listener, self.reported.is_none());
    }
}
