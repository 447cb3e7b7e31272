//! A batch, column by column: an element a row. What rows of several records have in common, and is locked in order, stands
//! there once, sorted; the rows name it by its place.

use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::domain::answer::Keep;
use vouchsafe_actors::domain::event::EventBundle;
use vouchsafe_actors::domain::ids::OrderId;
use vouchsafe_actors::domain::ledger::Movement;
use vouchsafe_actors::domain::order::Order;
use vouchsafe_actors::domain::voucher::Allocation;
use vouchsafe_actors::journal::Record;

use super::json;
use super::rest::Rest;

/// A batch.
pub(super) struct Columns<'a> {
    pub(super) records: Records<'a>,
    pub(super) wallets: Wallets<'a>,
    pub(super) movements: Movements<'a>,
    pub(super) orders: Orders<'a>,
    pub(super) chunks: Vec<i64>,
    pub(super) allocations: Allocations,
    pub(super) feeds: Vec<Uuid>,
    pub(super) events: Events,
    pub(super) rest: Rest<'a>,
}

/// The columns of the records themselves.
pub(super) struct Records<'a> {
    pub(super) partner: Vec<Uuid>,
    pub(super) key: Vec<Uuid>,
    /// The records in the order of their keys.
    pub(super) by_key: Vec<i32>,
    pub(super) fingerprint: Vec<&'a [u8]>,
    pub(super) status: Vec<i16>,
    pub(super) body: Vec<&'a [u8]>,
    pub(super) forever: Vec<bool>,
}

/// The columns of the wallets that change.
pub(super) struct Wallets<'a> {
    pub(super) partner: Vec<Uuid>,
    pub(super) currency: Vec<&'a str>,
    /// What moves in each, and how often: empty unless something moves and all of it are debits.
    pub(super) amount: Vec<i64>,
    pub(super) entries: Vec<i64>,
}

/// The columns of money that moves.
pub(super) struct Movements<'a> {
    pub(super) record: Vec<i32>,
    pub(super) wallet: Vec<i32>,
    pub(super) transaction: Vec<Uuid>,
    pub(super) kind: Vec<&'static str>,
    pub(super) amount: Vec<i64>,
    pub(super) order: Vec<Option<Uuid>>,
    pub(super) payout: Vec<Option<Uuid>>,
    pub(super) reference: Vec<Option<&'a str>>,
    pub(super) operator: Vec<Option<&'a str>>,
    pub(super) trace: Vec<Option<&'a str>>,
}

/// The columns of orders.
pub(super) struct Orders<'a> {
    pub(super) record: Vec<i32>,
    pub(super) order: Vec<Uuid>,
    pub(super) status: Vec<&'static str>,
    pub(super) currency: Vec<&'a str>,
    pub(super) total: Vec<i64>,
    pub(super) source: Vec<Option<&'static str>>,
    pub(super) pending_reason: Vec<Option<&'static str>>,
    pub(super) closed: Vec<bool>,
    pub(super) sequence: Vec<i32>,
    pub(super) reference: Vec<Option<&'a str>>,
    pub(super) metadata: Vec<Option<&'a str>>,
    pub(super) lines: Vec<String>,
    pub(super) timeline: Vec<Option<String>>,
    pub(super) created: Vec<OffsetDateTime>,
}

/// The columns of allocations, in the order of their vouchers.
pub(super) struct Allocations {
    pub(super) record: Vec<i32>,
    pub(super) chunk: Vec<i32>,
    pub(super) stock: Vec<i64>,
    pub(super) voucher: Vec<Uuid>,
    pub(super) order: Vec<Uuid>,
    pub(super) line: Vec<i16>,
}

/// The columns of events.
pub(super) struct Events {
    pub(super) record: Vec<i32>,
    pub(super) feed: Vec<i32>,
    pub(super) order: Vec<Uuid>,
    pub(super) count: Vec<i32>,
    pub(super) sequence: Vec<i32>,
    pub(super) body: Vec<String>,
}

/// Whose wallet in which currency.
type WalletColumns<'a> = (Uuid, &'a str);

impl<'a> Columns<'a> {
    pub(super) fn of(records: &'a [Record]) -> Result<Self, sqlx::Error> {
        let wallets = sorted(records.iter().flat_map(wallets_of));
        let feeds = sorted(records.iter().filter_map(feed_of));
        let (chunks, allocations) = Allocations::of(records);
        let rows = records.len();
        let (mut movements, mut orders) = (Movements::with_room_for(rows), Orders::with_room_for(rows));
        let (mut events, mut rest) = (Events::with_room_for(rows), Rest::default());
        for (record, number) in records.iter().zip(1..) {
            if let Some(movement) = &record.movement {
                let wallet = (record.partner_id.as_uuid(), movement.currency.as_str());
                movements.push(number, place(&wallets, &wallet), movement);
            }
            if let Some(order) = &record.order {
                let sequence = record.events.as_ref().map_or(0, EventBundle::last_sequence);
                orders.push(number, order, sequence)?;
            }
            if let Some(bundle) = &record.events {
                events.push(number, place(&feeds, &record.partner_id.as_uuid()), bundle)?;
            }
            rest.push(number, record);
        }
        movements.leave_out_nulls();
        orders.leave_out_nulls();
        Ok(Self {
            records: Records::of(records),
            wallets: Wallets::of(wallets, &movements),
            movements,
            orders,
            chunks,
            allocations,
            feeds,
            events,
            rest,
        })
    }
}

fn wallets_of(record: &Record) -> impl Iterator<Item = WalletColumns<'_>> {
    let moved = record.movement.iter().map(|movement| movement.currency.as_str());
    let shifted = record.pending.iter().map(|shift| shift.currency.as_str());
    let partner = record.partner_id.as_uuid();
    moved.chain(shifted).map(move |currency| (partner, currency))
}

fn feed_of(record: &Record) -> Option<Uuid> {
    record.events.as_ref().map(|_| record.partner_id.as_uuid())
}

/// Each once.
fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A column that has nothing comes without rows: beyond the end of an array the database reads null, and each null that it is
/// sent costs it as much as a value.
fn leave_out_nulls<T>(column: &mut Vec<Option<T>>) {
    if column.iter().all(Option::is_none) {
        column.clear();
    }
}

/// Where it stands, from 1 as the database counts. What is not there is at 0, where the database finds nothing either.
fn place<T: Ord>(sorted: &[T], one: &T) -> i32 {
    let place = sorted.binary_search(one).map_or(0, |index| index + 1);
    i32::try_from(place).unwrap_or_default()
}

/// The index behind a place.
fn index(place: i32) -> Option<usize> {
    usize::try_from(place).ok()?.checked_sub(1)
}

impl<'a> Records<'a> {
    fn with_room_for(rows: usize) -> Self {
        Self {
            partner: Vec::with_capacity(rows),
            key: Vec::with_capacity(rows),
            by_key: Vec::with_capacity(rows),
            fingerprint: Vec::with_capacity(rows),
            status: Vec::with_capacity(rows),
            body: Vec::with_capacity(rows),
            forever: Vec::with_capacity(rows),
        }
    }

    fn of(records: &'a [Record]) -> Self {
        let mut columns = Self::with_room_for(records.len());
        for record in records {
            let claim = &record.claim;
            columns.partner.push(record.partner_id.as_uuid());
            columns.key.push(claim.key.0);
            columns.fingerprint.push(&claim.fingerprint.0);
            columns.status.push(claim.answer.status.cast_signed());
            columns.body.push(&claim.answer.body);
            columns.forever.push(claim.keep == Keep::Forever);
        }
        let mut by_key: Vec<(Uuid, i32)> = columns.key.iter().copied().zip(1..).collect();
        by_key.sort_unstable();
        columns.by_key = by_key.into_iter().map(|(_, record)| record).collect();
        columns
    }
}

impl<'a> Wallets<'a> {
    fn of(wallets: Vec<WalletColumns<'a>>, movements: &Movements<'_>) -> Self {
        let (mut amount, mut entries) = (Vec::new(), Vec::new());
        if !movements.amount.is_empty() && movements.amount.iter().all(|amount| *amount < 0) {
            amount.resize(wallets.len(), 0_i64);
            entries.resize(wallets.len(), 0);
            let moved = movements.wallet.iter().zip(&movements.amount);
            for (index, minor) in moved.filter_map(|(place, minor)| Some((index(*place)?, minor))) {
                amount[index] = amount[index].saturating_add(*minor);
                entries[index] += 1;
            }
        }
        let (partner, currency) = wallets.into_iter().unzip();
        Self {
            partner,
            currency,
            amount,
            entries,
        }
    }
}

impl<'a> Movements<'a> {
    fn with_room_for(rows: usize) -> Self {
        Self {
            record: Vec::with_capacity(rows),
            wallet: Vec::with_capacity(rows),
            transaction: Vec::with_capacity(rows),
            kind: Vec::with_capacity(rows),
            amount: Vec::with_capacity(rows),
            order: Vec::with_capacity(rows),
            payout: Vec::with_capacity(rows),
            reference: Vec::with_capacity(rows),
            operator: Vec::with_capacity(rows),
            trace: Vec::with_capacity(rows),
        }
    }

    fn push(&mut self, record: i32, wallet: i32, movement: &'a Movement) {
        self.record.push(record);
        self.wallet.push(wallet);
        self.transaction.push(movement.transaction_id.as_uuid());
        self.kind.push(movement.kind.as_str());
        self.amount.push(movement.amount.minor());
        self.order.push(movement.order_id.map(|id| id.as_uuid()));
        self.payout.push(movement.payout_id.map(|id| id.as_uuid()));
        self.reference.push(movement.reference.as_deref());
        let by = movement.booked_by.as_ref();
        self.operator.push(by.map(|by| by.operator.as_str()));
        self.trace.push(by.and_then(|by| by.trace_id.as_deref()));
    }

    fn leave_out_nulls(&mut self) {
        leave_out_nulls(&mut self.order);
        leave_out_nulls(&mut self.payout);
        leave_out_nulls(&mut self.reference);
        leave_out_nulls(&mut self.operator);
        leave_out_nulls(&mut self.trace);
    }
}

impl<'a> Orders<'a> {
    fn with_room_for(rows: usize) -> Self {
        Self {
            record: Vec::with_capacity(rows),
            order: Vec::with_capacity(rows),
            status: Vec::with_capacity(rows),
            currency: Vec::with_capacity(rows),
            total: Vec::with_capacity(rows),
            source: Vec::with_capacity(rows),
            pending_reason: Vec::with_capacity(rows),
            closed: Vec::with_capacity(rows),
            sequence: Vec::with_capacity(rows),
            reference: Vec::with_capacity(rows),
            metadata: Vec::with_capacity(rows),
            lines: Vec::with_capacity(rows),
            timeline: Vec::with_capacity(rows),
            created: Vec::with_capacity(rows),
        }
    }

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
        let timeline = (!order.stands_as_placed()).then(|| json(&order.timeline));
        self.timeline.push(timeline.transpose()?);
        self.created.push(order.created_at);
        Ok(())
    }

    fn leave_out_nulls(&mut self) {
        leave_out_nulls(&mut self.source);
        leave_out_nulls(&mut self.pending_reason);
        leave_out_nulls(&mut self.reference);
        leave_out_nulls(&mut self.metadata);
        leave_out_nulls(&mut self.timeline);
    }
}

impl Allocations {
    fn with_room_for(rows: usize) -> Self {
        Self {
            record: Vec::with_capacity(rows),
            chunk: Vec::with_capacity(rows),
            stock: Vec::with_capacity(rows),
            voucher: Vec::with_capacity(rows),
            order: Vec::with_capacity(rows),
            line: Vec::with_capacity(rows),
        }
    }

    /// With the chunks that the vouchers lie in.
    fn of(records: &[Record]) -> (Vec<i64>, Self) {
        let issued = records.iter().zip(1..).flat_map(|(record, number)| {
            let issued = record.issued();
            issued.map(move |(order_id, allocation)| (number, order_id, allocation))
        });
        let mut issued: Vec<(i32, OrderId, &Allocation)> = issued.collect();
        issued.sort_unstable_by_key(|(_, _, allocation)| allocation.voucher.stock_id);
        let chunks = sorted(
            issued
                .iter()
                .map(|(_, _, allocation)| allocation.voucher.chunk_id.0),
        );
        let mut columns = Self::with_room_for(issued.len());
        for (record, order_id, allocation) in issued {
            columns.record.push(record);
            columns.chunk.push(place(&chunks, &allocation.voucher.chunk_id.0));
            columns.stock.push(allocation.voucher.stock_id.0);
            columns.voucher.push(allocation.voucher_id.as_uuid());
            columns.order.push(order_id.as_uuid());
            columns.line.push(allocation.line.cast_signed());
        }
        (chunks, columns)
    }
}

impl Events {
    fn with_room_for(rows: usize) -> Self {
        Self {
            record: Vec::with_capacity(rows),
            feed: Vec::with_capacity(rows),
            order: Vec::with_capacity(rows),
            count: Vec::with_capacity(rows),
            sequence: Vec::with_capacity(rows),
            body: Vec::with_capacity(rows),
        }
    }

    fn push(&mut self, record: i32, feed: i32, bundle: &EventBundle) -> Result<(), sqlx::Error> {
        self.record.push(record);
        self.feed.push(feed);
        self.order.push(bundle.order_id.as_uuid());
        self.count.push(bundle.count().cast_signed());
        self.sequence.push(bundle.first_sequence.cast_signed());
        self.body.push(json(bundle)?);
        Ok(())
    }
}
