//! Call of the SQL function `commit_batch`: encodes a batch of records as arrays and decodes the verdicts.
//!
//! A write has succeeded only when the server is ready for the next query, not when the first row arrives:
//! rows are always read to the end. The statement is not checked at compile time: it has a parameter per
//! column that the engine's records are split into. The conformance tests run it.

mod columns;
mod sparse;

use std::sync::LazyLock;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};
use vouchsafe_actors::ports::record::{Record, StaleReason, Verdict};
use vouchsafe_domain::idempotency::StoredResponse;
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::Amount;

use self::columns::{Allocations, BatchColumns, Events, Movements, Orders, Records, Wallets};
use super::idempotency_keys::parse_stored_response;

/// The parameters of `commit_batch`, in the order in which [`commit_batch`] binds them.
const PARAMETERS: [&[&str]; 10] = [
    &["p_node", "p_incarnation", "p_lane", "p_generation", "p_batch"],
    Records::PARAMETERS,
    Wallets::PARAMETERS,
    Movements::PARAMETERS,
    Orders::PARAMETERS,
    &["c_chunk"],
    Allocations::PARAMETERS,
    &["f_partner"],
    Events::PARAMETERS,
    &["p_rest"],
];

static COMMIT_BATCH: LazyLock<String> = LazyLock::new(|| {
    let parameters: Vec<_> = (1..=PARAMETERS.concat().len())
        .map(|number| format!("${number}"))
        .collect();
    format!("SELECT * FROM commit_batch_v2({}::jsonb)", parameters.join(", "))
});

/// Fencing token of a lane.
#[derive(Debug, Clone)]
pub(super) struct Fence {
    pub(super) node: String,
    pub(super) incarnation: i64,
    pub(super) lane: i16,
    pub(super) generation: i64,
}

/// Writes a batch and returns a verdict per record.
pub(super) async fn commit_batch(
    connection: &mut PgConnection,
    fence: &Fence,
    batch: i64,
    records: &[Record],
) -> Result<Vec<Verdict>, sqlx::Error> {
    let columns = BatchColumns::of(records)?;
    let statement = sqlx::query(COMMIT_BATCH.as_str())
        .bind(&fence.node)
        .bind(fence.incarnation)
        .bind(fence.lane)
        .bind(fence.generation)
        .bind(batch);
    let statement = columns.records.bind(statement);
    let statement = columns.wallets.bind(statement);
    let statement = columns.movements.bind(statement);
    let statement = columns.orders.bind(statement).bind(columns.chunks);
    let statement = columns.allocations.bind(statement).bind(columns.feeds);
    let statement = columns.events.bind(statement).bind(columns.sparse.to_json()?);
    let rows = statement.fetch_all(connection).await?;
    match &rows[..] {
        [row] => VerdictRow::read(row)?.verdicts(records.len()),
        _ => Err(decode_error("commit_batch returned no row or several")),
    }
}

/// The row that `commit_batch` returns: arrays with one element per record.
struct VerdictRow {
    verdicts: Vec<i16>,
    sequences: Vec<Option<i64>>,
    balances: Vec<Option<i64>>,
    known: Option<KnownResponses>,
}

/// Responses stored earlier under the keys of the records.
struct KnownResponses {
    fingerprints: Vec<Option<Vec<u8>>>,
    statuses: Vec<Option<i16>>,
    bodies: Vec<Option<Vec<u8>>>,
}

impl VerdictRow {
    fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        let fingerprints: Option<_> = row.try_get(3)?;
        let known = match fingerprints {
            None => None,
            Some(fingerprints) => Some(KnownResponses {
                fingerprints,
                statuses: row.try_get(4)?,
                bodies: row.try_get(5)?,
            }),
        };
        Ok(Self {
            verdicts: row.try_get(0)?,
            sequences: row.try_get(1)?,
            balances: row.try_get(2)?,
            known,
        })
    }

    fn verdicts(mut self, records: usize) -> Result<Vec<Verdict>, sqlx::Error> {
        let lengths = [self.verdicts.len(), self.sequences.len(), self.balances.len()];
        if lengths != [records; 3] {
            return Err(decode_error(
                "commit_batch returned another number of verdicts than records",
            ));
        }
        let verdicts = std::mem::take(&mut self.verdicts);
        verdicts
            .into_iter()
            .enumerate()
            .map(|(index, verdict)| self.verdict(index, verdict))
            .collect()
    }

    fn verdict(&mut self, index: usize, verdict: i16) -> Result<Verdict, sqlx::Error> {
        Ok(match verdict {
            0 => Verdict::Committed(self.receipt(index)),
            1 => {
                let known = self.known.as_mut().map(|known| known.take(index));
                let known = known.transpose()?.flatten();
                known.map_or(Verdict::Stale(StaleReason::KeyPurged), Verdict::KeyKnown)
            }
            2 => Verdict::Stale(StaleReason::Balance),
            3 => Verdict::Stale(StaleReason::Stock),
            4 => Verdict::Stale(StaleReason::StateChanged),
            5 => Verdict::Stale(StaleReason::Cap),
            other => return Err(decode_error(&format!("unknown verdict {other}"))),
        })
    }

    fn receipt(&self, index: usize) -> Option<WalletState> {
        Some(WalletState {
            sequence: self.sequences[index]?,
            balance: Amount::from_minor(self.balances[index]?),
        })
    }
}

impl KnownResponses {
    /// Returns `None` if the response was purged after the claim met its key: it has expired, and the caller
    /// decides again.
    fn take(&mut self, index: usize) -> Result<Option<StoredResponse>, sqlx::Error> {
        let fingerprint = self.fingerprints.get_mut(index).and_then(Option::take);
        let status = self.statuses.get(index).copied().flatten();
        let body = self.bodies.get_mut(index).and_then(Option::take);
        match (fingerprint, status, body) {
            (Some(fingerprint), Some(status), Some(body)) => {
                parse_stored_response(fingerprint, status, body).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Usual size of the JSON of an order's lines or events. Bytes.
const USUAL_JSON_BYTES: usize = 512;

fn to_json(value: &impl serde::Serialize) -> Result<String, sqlx::Error> {
    let mut text = Vec::with_capacity(USUAL_JSON_BYTES);
    let written = serde_json::to_writer(&mut text, value).map_err(|error| sqlx::Error::Encode(error.into()));
    written.and_then(|()| String::from_utf8(text).map_err(|error| sqlx::Error::Encode(error.into())))
}

fn decode_error(reason: &str) -> sqlx::Error {
    sqlx::Error::Decode(reason.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of one type could change places.
    #[test]
    fn columns_are_in_the_order_of_the_function() {
        let function = include_str!("../../../migrations/functions/commit_batch_v2.sql");
        let (_, parameters) = function.split_once("FUNCTION commit_batch_v2(").unwrap();
        let (parameters, _) = parameters.split_once(") RETURNS").unwrap();
        let names = parameters
            .trim()
            .lines()
            .map(|line| line.trim().split(' ').next().unwrap());
        assert_eq!(PARAMETERS.concat(), names.collect::<Vec<_>>());
    }
}
