//! `vouchsafe keys`: data keys and the key that wraps them, in the database and without the operator API.

use anyhow::{anyhow, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use vouchsafe_kms::WrappingKeyArgs;
use vouchsafe_security::vault::wrapping_key::WrappingKeys;
use vouchsafe_store::StoreError;
use vouchsafe_store::keyring::advice;
use vouchsafe_store::{
    DataKeyError, KeyReport, NodeWrappingKeys, RequestOutcome, RewrapOutcome, create_data_key, list_keys,
    request_reencryption, rewrap,
};
use vouchsafe_wire::column::{Column, col};

use super::database::DatabaseArgs;
use super::examples::examples;
use super::exit::UsageError;
use super::output::format_field_table;
use super::{CommandOutput, LocalService};

const DATA_KEY_COLUMNS: [Column; 6] = [
    col("Key", "key_id"),
    col("Purpose", "purpose"),
    col("Created", "created_at"),
    col("Wrapped by", "wrapped_by"),
    col("Active", "is_active"),
    col("Codes", "codes"),
];

const NODE_COLUMNS: [Column; 2] = [col("Node", "node"), col("Wrapping keys", "wrapping_keys")];

const REENCRYPTION_COLUMNS: [Column; 5] = [
    col("Requested", "requested_at"),
    col("To key", "key_id"),
    col("Codes", "codes"),
    col("Failures", "failures"),
    col("Ended", "ended_at"),
];

/// Actions on data keys.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List data keys with the key that wraps each, live nodes with their wrapping keys, and re-encryptions.
    #[command(after_help = examples!["vouchsafe keys list", "vouchsafe keys list --codes"])]
    List(ListKeysArgs),
    /// Create the next data key for codes now, before the active one reaches its age.
    #[command(after_help = examples!["vouchsafe keys create"])]
    Create(KeysArgs),
    /// Wrap all data keys with the configured key, e.g. after a change of the master key. Refused while a
    /// live node lacks that key.
    #[command(after_help = examples!["vouchsafe keys rotate"])]
    Rotate(KeysArgs),
    /// Let the service encrypt all codes under older data keys again, in the background.
    #[command(after_help = examples!["vouchsafe keys reencrypt"])]
    Reencrypt(ReencryptArgs),
}

#[derive(Debug, Args)]
pub struct ListKeysArgs {
    /// Count the codes under each data key. Reads the whole table of codes.
    #[arg(long)]
    codes: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
pub struct KeysArgs {
    #[command(flatten)]
    keys: WrappingKeyArgs,

    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
pub struct ReencryptArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(super) async fn run(
    action: Action,
    json: bool,
    local_service: &LocalService,
) -> anyhow::Result<CommandOutput> {
    match action {
        Action::List(args) => list(args, json, local_service).await,
        Action::Create(args) => create(args, json, local_service).await,
        Action::Rotate(args) => rotate(args, json, local_service).await,
        Action::Reencrypt(args) => reencrypt(args, json, local_service).await,
    }
}

impl KeysArgs {
    fn load(&self, local_service: &LocalService) -> anyhow::Result<WrappingKeys> {
        let keys = self.database.load_wrapping_keys(&self.keys, local_service)?;
        Ok(keys.ok_or_else(|| {
            UsageError("no master key: set VOUCHSAFE_MASTER_KEY_FILE, as for the service".to_owned())
        })?)
    }
}

async fn list(args: ListKeysArgs, json: bool, local_service: &LocalService) -> anyhow::Result<CommandOutput> {
    let list = async |options| list_keys(&options, args.codes).await;
    let report = args.database.run(local_service, "list the keys of", list).await?;
    Ok(CommandOutput::from(if json {
        serde_json::to_string(&report)?
    } else {
        format_report(&report)?
    }))
}

async fn create(args: KeysArgs, json: bool, local_service: &LocalService) -> anyhow::Result<CommandOutput> {
    let wrapping = args.load(local_service)?;
    let create = async |options| split(create_data_key(&options, &wrapping).await);
    let created = args
        .database
        .run(local_service, "create a data key in", create)
        .await??;
    let key_id = created.0;
    Ok(CommandOutput::from(if json {
        json!({ "key_id": key_id }).to_string()
    } else {
        format!("Created data key {key_id}. New codes are encrypted with it within ten seconds.")
    }))
}

async fn rotate(args: KeysArgs, json: bool, local_service: &LocalService) -> anyhow::Result<CommandOutput> {
    let wrapping = args.load(local_service)?;
    let rotate = async |options| split(rewrap(&options, &wrapping).await);
    let outcome = args
        .database
        .run(local_service, "rewrap the keys of", rotate)
        .await??;
    let target = wrapping.current().id();
    let keys = match outcome {
        RewrapOutcome::Rewrapped(keys) => keys,
        RewrapOutcome::NodesLackKey(nodes) => bail!(
            "these live nodes have not loaded the key {target}: {}; give it to them and restart them, or wait 15 s if they are \
             stopped. Nothing was changed",
            describe_all(&nodes)
        ),
    };
    let keys: Vec<_> = keys.iter().map(|key| key.0).collect();
    Ok(CommandOutput::from(if json {
        json!({ "wrapped_by": target.as_str(), "key_ids": keys }).to_string()
    } else {
        format!("Wrapped {} data keys with {target}.", keys.len())
    }))
}

async fn reencrypt(
    args: ReencryptArgs,
    json: bool,
    local_service: &LocalService,
) -> anyhow::Result<CommandOutput> {
    let request = async |options| request_reencryption(&options).await;
    let outcome = args
        .database
        .run(local_service, "request a re-encryption in", request)
        .await?;
    let (row, text) = match outcome {
        RequestOutcome::Requested(row) => {
            let text = format!(
                "Requested: the service encrypts codes under data keys older than {} again. It begins a \
                 minute after that key was created; `vouchsafe keys list` shows its progress.",
                row.key_id
            );
            (Some(row), text)
        }
        RequestOutcome::InProgress(row) => {
            let text = format!(
                "In progress: {} codes so far. `vouchsafe keys list` shows its progress.",
                row.codes
            );
            (Some(row), text)
        }
        RequestOutcome::NoOlderKey => (
            None,
            "Nothing to do: there is one data key for codes. `vouchsafe keys create` creates the next."
                .to_owned(),
        ),
    };
    Ok(CommandOutput::from(if json {
        json!({ "reencryption": row }).to_string()
    } else {
        text
    }))
}

/// The outer error concerns the database, the inner one the wrapping keys.
fn split<T>(result: Result<T, DataKeyError>) -> Result<anyhow::Result<T>, StoreError> {
    match result {
        Ok(done) => Ok(Ok(done)),
        Err(DataKeyError::Wrap(error)) => Ok(Err(anyhow!(
            "{error}{advice}. Nothing was changed",
            advice = advice(&error)
        ))),
        Err(DataKeyError::Store(error)) => Err(error),
    }
}

fn describe_all(nodes: &[NodeWrappingKeys]) -> String {
    nodes.iter().map(describe).collect::<Vec<_>>().join(", ")
}

fn describe(node: &NodeWrappingKeys) -> String {
    match &node.wrapping_keys {
        Some(keys) => format!("{} ({})", node.node, keys.join(", ")),
        None => format!("{} (just started)", node.node),
    }
}

fn format_report(report: &KeyReport) -> anyhow::Result<String> {
    if report.data_keys.is_empty() {
        return Ok("No data keys: the first start of the service creates them.".to_owned());
    }
    let body = serde_json::to_string(report)?;
    let mut tables = vec![format_field_table(&body, "data_keys", &DATA_KEY_COLUMNS)?];
    if !report.nodes.is_empty() {
        tables.push(format_field_table(&body, "nodes", &NODE_COLUMNS)?);
    }
    if !report.reencryptions.is_empty() {
        tables.push(format_field_table(&body, "reencryptions", &REENCRYPTION_COLUMNS)?);
    }
    Ok(tables.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_of_a_new_database_says_who_creates_the_data_keys() {
        let report = KeyReport {
            data_keys: Vec::new(),
            nodes: Vec::new(),
            reencryptions: Vec::new(),
        };
        assert!(
            format_report(&report)
                .unwrap()
                .contains("the first start of the service creates them")
        );
    }
}
