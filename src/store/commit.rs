//! The batch statement: a batch of records into the arrays of `commit_batch`, its rows back into verdicts.
//!
//! Rule: the answer of a write counts when the server is ready for the next query, not when the first row is here; so the
//! rows are always read to the end.

mod rest;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::domain::answer::{Answer, Fingerprint, Keep, KnownAnswer};
use vouchsafe_actors::domain::event::EventBundle;
use vouchsafe_actors::domain::ledger::{Movement, Receipt};
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::order::Order;
use vouchsafe_actors::journal::{Record, Stale, Verdict};

use self::rest::Rest;
use super::lane::Fence;

const COMMIT_BATCH: &str = "SELECT * FROM commit_batch(\
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, \
    $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, \
    $47::jsonb)";

/// The columns of the records themselves.
#[derive(Default)]
struct Records<'a> {
    partner: Vec<Uuid>,
    key: Vec<Uuid>,
    fingerprint: Vec<&'a [u8]>,
    status: Vec<i16>,
    body: Vec<&'a [u8]>,
    forever: Vec<bool>,
}

/// The columns of money that moves.
#[derive(Default)]
struct Movements<'a> {
    record: Vec<i32>,
    transaction: Vec<Uuid>,
    currency: Vec<&'a str>,
    kind: Vec<&'static str>,
    amount: Vec<i64>,
    order: Vec<Option<Uuid>>,
    payout: Vec<Option<Uuid>>,
    reference: Vec<Option<&'a str>>,
    operator: Vec<Option<&'a str>>,
    trace: Vec<Option<&'a str>>,
}

/// The columns of orders.
#[derive(Default)]
struct Orders<'a> {
    record: Vec<i32>,
    order: Vec<Uuid>,
    status: Vec<&'static str>,
    currency: Vec<&'a str>,
    total: Vec<i64>,
    source: Vec<Option<&'static str>>,
    pending_reason: Vec<Option<&'static str>>,
    closed: Vec<bool>,
    sequence: Vec<i32>,
    reference: Vec<Option<&'a str>>,
    metadata: Vec<Option<&'a str>>,
    lines: Vec<String>,
    timeline: Vec<String>,
    created: Vec<OffsetDateTime>,
}

/// The columns of allocations.
#[derive(Default)]
struct Allocations {
    record: Vec<i32>,
    stock: Vec<i64>,
    chunk: Vec<i64>,
    voucher: Vec<Uuid>,
    order: Vec<Uuid>,
    line: Vec<i16>,
}

/// The columns of events.
#[derive(Default)]
struct Events {
    record: Vec<i32>,
    order: Vec<Uuid>,
    count: Vec<i32>,
    sequence: Vec<i32>,
    body: Vec<String>,
}

/// A batch, column by column.
#[derive(Default)]
struct Columns<'a> {
    records: Records<'a>,
    movements: Movements<'a>,
    orders: Orders<'a>,
    allocations: Allocations,
    events: Events,
    rest: Rest<'a>,
}

/// Writes a batch and reads what became of each record.
pub(super) async fn commit_batch(
    connection: &mut PgConnection,
    fence: &Fence,
    batch: i64,
    records: &[Record],
) -> Result<Vec<Verdict>, sqlx::Error> {
    let Columns {
        records: r,
        movements: m,
        orders: o,
        allocations: a,
        events: e,
        rest,
    } = Columns::of(records)?;
    let rows = sqlx::query(COMMIT_BATCH)
        .bind(&fence.node)
        .bind(fence.incarnation)
        .bind(fence.lane)
        .bind(fence.generation)
        .bind(batch)
        .bind(r.partner)
        .bind(r.key)
        .bind(r.fingerprint)
        .bind(r.status)
        .bind(r.body)
        .bind(r.forever)
        .bind(m.record)
        .bind(m.transaction)
        .bind(m.currency)
        .bind(m.kind)
        .bind(m.amount)
        .bind(m.order)
        .bind(m.payout)
        .bind(m.reference)
        .bind(m.operator)
        .bind(m.trace)
        .bind(o.record)
        .bind(o.order)
        .bind(o.status)
        .bind(o.currency)
        .bind(o.total)
        .bind(o.source)
        .bind(o.pending_reason)
        .bind(o.closed)
        .bind(o.sequence)
        .bind(o.reference)
        .bind(o.metadata)
        .bind(o.lines)
        .bind(o.timeline)
        .bind(o.created)
        .bind(a.record)
        .bind(a.stock)
        .bind(a.chunk)
        .bind(a.voucher)
        .bind(a.order)
        .bind(a.line)
        .bind(e.record)
        .bind(e.order)
        .bind(e.count)
        .bind(e.sequence)
        .bind(e.body)
        .bind(rest.text()?)
        .fetch_all(connection)
        .await?;
    rows.iter().map(verdict).collect()
}

impl<'a> Columns<'a> {
    fn of(records: &'a [Record]) -> Result<Self, sqlx::Error> {
        let mut columns = Self::default();
        for (record, number) in records.iter().zip(1..) {
            columns.records.push(record);
            if let Some(movement) = &record.movement {
                columns.movements.push(number, movement);
            }
            if let Some(order) = &record.order {
                let sequence = record.events.as_ref().map_or(0, EventBundle::last_sequence);
                columns.orders.push(number, order, sequence)?;
            }
            columns.allocations.push(number, record);
            columns.rest.push(number, record);
            if let Some(events) = &record.events {
                columns.events.push(number, events)?;
            }
        }
        Ok(columns)
    }
}

impl<'a> Records<'a> {
    fn push(&mut self, record: &'a Record) {
        let claim = &record.claim;
        self.partner.push(record.partner_id.as_uuid());
        self.key.push(claim.key.0);
        self.fingerprint.push(&claim.fingerprint.0);
        self.status.push(claim.answer.status.cast_signed());
        self.body.push(&claim.answer.body);
        self.forever.push(claim.keep == Keep::Forever);
    }
}

impl<'a> Movements<'a> {
    fn push(&mut self, record: i32, movement: &'a Movement) {
        self.record.push(record);
        self.transaction.push(movement.transaction_id.as_uuid());
        self.currency.push(movement.currency.as_str());
        self.kind.push(movement.kind.as_str());
        self.amount.push(movement.amount.minor());
        self.order.push(movement.order_id.map(|id| id.as_uuid()));
        self.payout.push(movement.payout_id.map(|id| id.as_uuid()));
        self.reference.push(movement.reference.as_deref());
        let by = movement.booked_by.as_ref();
        self.operator.push(by.map(|by| by.operator.as_str()));
        self.trace.push(by.and_then(|by| by.trace_id.as_deref()));
    }
}

impl<'a> Orders<'a> {
    fn push(&mut self, record: i32, order: &'a Order, sequence: u32) -> Result<(), sqlx::Error> {
        self.record.push(record);
        self.order.push(order.order_id.as_uuid());
        self.status.push(order.status.as_str());
        self.currency.push(order.total.currency.as_str());
        self.total.push(order.total.amount.minor());
        self.source
            .push(order.fulfilled_from.map(|source| source.as_str()));
        self.pending_reason
            .push(order.pending_reason.map(|reason| reason.as_str()));
        self.closed.push(order.closed);
        self.sequence.push(sequence.cast_signed());
        self.reference.push(order.reference.as_deref());
        self.metadata.push(order.metadata.as_deref());
        self.lines.push(json(&order.lines)?);
        self.timeline.push(json(&order.timeline)?);
        self.created.push(order.created_at);
        Ok(())
    }
}

impl Allocations {
    fn push(&mut self, number: i32, record: &Record) {
        for (order_id, allocation) in record.issued() {
            self.record.push(number);
            self.stock.push(allocation.voucher.stock_id.0);
            self.chunk.push(allocation.voucher.chunk_id.0);
            self.voucher.push(allocation.voucher_id.as_uuid());
            self.order.push(order_id.as_uuid());
            self.line.push(allocation.line.cast_signed());
        }
    }
}

impl Events {
    fn push(&mut self, record: i32, bundle: &EventBundle) -> Result<(), sqlx::Error> {
        self.record.push(record);
        self.order.push(bundle.order_id.as_uuid());
        self.count.push(bundle.count().cast_signed());
        self.sequence.push(bundle.first_sequence.cast_signed());
        self.body.push(json(bundle)?);
        Ok(())
    }
}

fn json(value: &impl serde::Serialize) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()))
}

fn verdict(row: &PgRow) -> Result<Verdict, sqlx::Error> {
    let word: i16 = row.try_get("verdict")?;
    Ok(match word {
        0 => Verdict::Committed(receipt(row)?),
        1 => known(row)?.map_or(Verdict::Stale(Stale::KeyPurged), Verdict::KeyKnown),
        2 => Verdict::Stale(Stale::Balance),
        3 => Verdict::Stale(Stale::Stock),
        4 => Verdict::Stale(Stale::Moved),
        other => {
            return Err(sqlx::Error::Decode(
                format!("verdict {other} is not known").into(),
            ));
        }
    })
}

fn receipt(row: &PgRow) -> Result<Option<Receipt>, sqlx::Error> {
    let sequence: Option<i64> = row.try_get("wallet_sequence")?;
    let balance: Option<i64> = row.try_get("wallet_balance")?;
    let receipt = sequence.zip(balance);
    Ok(receipt.map(|(sequence, balance)| Receipt {
        sequence,
        balance: Amount::from_minor(balance),
    }))
}

/// `None` when the answer was purged between the claim and the read: then its time is over, and the record decides anew.
fn known(row: &PgRow) -> Result<Option<KnownAnswer>, sqlx::Error> {
    let fingerprint: Option<Vec<u8>> = row.try_get("known_fingerprint")?;
    let Some(fingerprint) = fingerprint else {
        return Ok(None);
    };
    let status: i16 = row.try_get("known_status")?;
    let body: Vec<u8> = row.try_get("known_body")?;
    known_answer(fingerprint, status, body).map(Some)
}

/// An answer as its columns hold it.
pub(super) fn known_answer(
    fingerprint: Vec<u8>,
    status: i16,
    body: Vec<u8>,
) -> Result<KnownAnswer, sqlx::Error> {
    let fingerprint = fingerprint
        .try_into()
        .map_err(|_| sqlx::Error::Decode("a fingerprint has 32 bytes".into()))?;
    let answer = Answer {
        status: status.cast_unsigned(),
        body: body.into(),
    };
    Ok(KnownAnswer {
        fingerprint: Fingerprint(fingerprint),
        answer,
    })
}
