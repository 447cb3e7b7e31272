//! Columnar encoding of a batch: one array per column, one element per row. Rows that several records share
//! and that are locked in order (wallets, chunks, feeds) occur once, sorted; other rows refer to them by
//! position.

use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_actors::ports::record::Record;
use vouchsafe_domain::event::EventBundle;
use vouchsafe_domain::idempotency::Retention;
use vouchsafe_domain::ids::{ChunkId, OrderId, PartnerId, PayoutId, StockId, TransactionId, VoucherId};
use vouchsafe_domain::ledger::Movement;
use vouchsafe_domain::order::Order;
use vouchsafe_domain::order::trace::OrderTrace;
use vouchsafe_domain::voucher::Allocation;

use super::sparse::SparseColumns;
use super::to_json;

/// Declares a struct with a vector per column, in the order of the parameters of `commit_batch`, whose names
/// have the prefix.
macro_rules! columns {
    ($(#[$doc:meta])* struct $name:ident $(<$lifetime:lifetime>)? as $prefix:literal {
        $($(#[$column_doc:meta])* $column:ident: $element:ty,)+
    }) => {
        $(#[$doc])*
        pub(super) struct $name $(<$lifetime>)? {
            $($(#[$column_doc])* $column: Vec<$element>,)+
        }

        impl $(<$lifetime>)? $name $(<$lifetime>)? {
            pub(super) const PARAMETERS: &'static [&'static str] = &[$(concat!($prefix, stringify!($column))),+];

            fn with_capacity(rows: usize) -> Self {
                Self {
                    $($column: Vec::with_capacity(rows),)+
                }
            }

            pub(super) fn bind(self, statement: Statement) -> Statement {
                statement$(.bind(self.$column))+
            }
        }
    };
}

pub(super) type Statement = Query<'static, Postgres, PgArguments>;

pub(super) struct BatchColumns<'a> {
    pub(super) records: Records<'a>,
    pub(super) wallets: Wallets<'a>,
    pub(super) movements: Movements<'a>,
    pub(super) orders: Orders<'a>,
    pub(super) chunks: Vec<ChunkId>,
    pub(super) allocations: Allocations,
    pub(super) feeds: Vec<PartnerId>,
    pub(super) events: Events,
    pub(super) sparse: SparseColumns<'a>,
}

columns! {
    struct Records<'a> as "r_" {
        partner: PartnerId,
        key: Uuid,
        /// Record numbers in key order.
        by_key: i32,
        fingerprint: &'a [u8],
        status: i16,
        body: &'a [u8],
        forever: bool,
    }
}

columns! {
    /// Wallets that change.
    struct Wallets<'a> as "w_" {
        partner: PartnerId,
        currency: &'a str,
        /// Sum and number of movements per wallet; empty unless there are movements and all of them are
        /// debits.
        amount: i64,
        entries: i64,
    }
}

columns! {
    struct Movements<'a> as "m_" {
        record: i32,
        wallet: i32,
        transaction: TransactionId,
        kind: &'static str,
        amount: i64,
        order: Option<OrderId>,
        payout: Option<PayoutId>,
        reference: Option<&'a str>,
        operator: Option<&'a str>,
        trace: Option<&'a str>,
    }
}

columns! {
    /// New orders.
    struct Orders<'a> as "o_" {
        record: i32,
        order: OrderId,
        status: &'static str,
        currency: &'a str,
        total: i64,
        source: Option<&'static str>,
        pending_reason: Option<&'static str>,
        closed: bool,
        sequence: i32,
        reference: Option<&'a str>,
        metadata: Option<&'a str>,
        lines: String,
        timeline: Option<String>,
        created: OffsetDateTime,
        trace: Option<[u8; 28]>,
    }
}

columns! {
    /// Sorted by stock id.
    struct Allocations as "a_" {
        record: i32,
        chunk: i32,
        stock: StockId,
        voucher: VoucherId,
        order: OrderId,
        line: i16,
    }
}

columns! {
    struct Events as "e_" {
        record: i32,
        feed: i32,
        order: OrderId,
        count: i32,
        sequence: i32,
        body: String,
    }
}

/// Partner and currency.
type WalletColumns<'a> = (PartnerId, &'a str);

impl<'a> BatchColumns<'a> {
    pub(super) fn of(records: &'a [Record]) -> Result<Self, sqlx::Error> {
        let wallets = sorted_unique(records.iter().flat_map(wallets_of));
        let feeds = sorted_unique(records.iter().filter_map(feed_of));
        let (chunks, allocations) = Allocations::of(records);
        let rows = records.len();
        let (mut movements, mut orders) = (Movements::with_capacity(rows), Orders::with_capacity(rows));
        let (mut events, mut rest) = (Events::with_capacity(rows), SparseColumns::default());
        for (record, number) in records.iter().zip(1..) {
            if let Some(movement) = &record.movement {
                let wallet = (record.partner_id, movement.currency.as_str());
                movements.push(number, position_of(&wallets, &wallet), movement);
            }
            if let Some(order) = &record.order {
                let sequence = record.events.as_ref().map_or(0, EventBundle::last_sequence);
                orders.push(number, order, sequence)?;
            }
            if let Some(bundle) = &record.events {
                events.push(number, position_of(&feeds, &record.partner_id), bundle)?;
            }
            rest.push(number, record);
        }
        movements.clear_null_columns();
        orders.clear_null_columns();
        Ok(Self {
            records: Records::of(records),
            wallets: Wallets::of(wallets, &movements),
            movements,
            orders,
            chunks,
            allocations,
            feeds,
            events,
            sparse: rest,
        })
    }
}

fn wallets_of(record: &Record) -> impl Iterator<Item = WalletColumns<'_>> {
    let moved = record.movement.iter().map(|movement| movement.currency.as_str());
    let shifted = record.pending_delta.iter().map(|shift| shift.currency.as_str());
    let partner = record.partner_id;
    moved.chain(shifted).map(move |currency| (partner, currency))
}

fn feed_of(record: &Record) -> Option<PartnerId> {
    record.events.as_ref().map(|_| record.partner_id)
}

fn sorted_unique<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Sends a column without values as an empty array: reading beyond its end yields null in SQL, and a null in
/// an array costs as much as a value.
fn clear_if_all_null<T>(column: &mut Vec<Option<T>>) {
    if column.iter().all(Option::is_none) {
        column.clear();
    }
}

/// SQL position of an element, from 1; 0 if it is missing, which reads as null in SQL.
fn position_of<T: Ord>(sorted: &[T], element: &T) -> i32 {
    let position = sorted.binary_search(element).map_or(0, |index| index + 1);
    i32::try_from(position).unwrap_or_default()
}

fn position_to_index(position: i32) -> Option<usize> {
    usize::try_from(position).ok()?.checked_sub(1)
}

impl<'a> Records<'a> {
    fn of(records: &'a [Record]) -> Self {
        let mut columns = Self::with_capacity(records.len());
        for record in records {
            let claim = &record.claim;
            columns.partner.push(record.partner_id);
            columns.key.push(claim.key.0);
            columns.fingerprint.push(&claim.fingerprint.0);
            columns.status.push(claim.response.status.cast_signed());
            columns.body.push(&claim.response.body);
            columns.forever.push(claim.retention == Retention::Forever);
        }
        let mut by_key: Vec<(Uuid, i32)> = columns.key.iter().copied().zip(1..).collect();
        by_key.sort_unstable();
        columns.by_key = by_key.into_iter().map(|(_, record)| record).collect();
        columns
    }
}

impl<'a> Wallets<'a> {
    fn of(wallets: Vec<WalletColumns<'a>>, movements: &Movements<'_>) -> Self {
        let mut columns = Self::with_capacity(wallets.len());
        if !movements.amount.is_empty() && movements.amount.iter().all(|amount| *amount < 0) {
            columns.amount.resize(wallets.len(), 0);
            columns.entries.resize(wallets.len(), 0);
            let moved = movements.wallet.iter().zip(&movements.amount);
            for (index, minor) in
                moved.filter_map(|(position, minor)| Some((position_to_index(*position)?, minor)))
            {
                columns.amount[index] = columns.amount[index].saturating_add(*minor);
                columns.entries[index] += 1;
            }
        }
        for (partner, currency) in wallets {
            columns.partner.push(partner);
            columns.currency.push(currency);
        }
        columns
    }
}

impl<'a> Movements<'a> {
    fn push(&mut self, record: i32, wallet: i32, movement: &'a Movement) {
        self.record.push(record);
        self.wallet.push(wallet);
        self.transaction.push(movement.transaction_id);
        self.kind.push(movement.kind.into_str());
        self.amount.push(movement.amount.minor());
        self.order.push(movement.order_id);
        self.payout.push(movement.payout_id);
        self.reference.push(movement.reference.as_deref());
        let operator = movement.booked_by.as_ref();
        self.operator
            .push(operator.map(|operator| operator.operator.as_str()));
        self.trace
            .push(operator.and_then(|operator| operator.trace_id.as_deref()));
    }

    fn clear_null_columns(&mut self) {
        clear_if_all_null(&mut self.order);
        clear_if_all_null(&mut self.payout);
        clear_if_all_null(&mut self.reference);
        clear_if_all_null(&mut self.operator);
        clear_if_all_null(&mut self.trace);
    }
}

impl<'a> Orders<'a> {
    fn push(&mut self, record: i32, order: &'a Order, sequence: u32) -> Result<(), sqlx::Error> {
        self.record.push(record);
        self.order.push(order.order_id);
        self.status.push(order.status.into_str());
        self.currency.push(order.total.currency.as_str());
        self.total.push(order.total.amount.minor());
        self.source
            .push(order.fulfilled_from.map(|source| source.into_str()));
        self.pending_reason
            .push(order.pending_reason.map(|reason| reason.into_str()));
        self.closed.push(order.closed);
        self.sequence.push(sequence.cast_signed());
        self.reference.push(order.reference.as_deref());
        self.metadata.push(order.metadata.as_deref());
        self.lines.push(to_json(&order.lines)?);
        let timeline = (!order.is_unchanged()).then(|| to_json(&order.timeline));
        self.timeline.push(timeline.transpose()?);
        self.created.push(order.created_at);
        self.trace.push(order.trace.map(OrderTrace::to_bytes));
        Ok(())
    }

    fn clear_null_columns(&mut self) {
        clear_if_all_null(&mut self.source);
        clear_if_all_null(&mut self.pending_reason);
        clear_if_all_null(&mut self.reference);
        clear_if_all_null(&mut self.metadata);
        clear_if_all_null(&mut self.timeline);
        clear_if_all_null(&mut self.trace);
    }
}

impl Allocations {
    /// Returns the chunks of the vouchers, too.
    fn of(records: &[Record]) -> (Vec<ChunkId>, Self) {
        let issued = records.iter().zip(1..).flat_map(|(record, number)| {
            let issued = record.issued();
            issued.map(move |(order_id, allocation)| (number, order_id, allocation))
        });
        let mut issued: Vec<(i32, OrderId, &Allocation)> = issued.collect();
        issued.sort_unstable_by_key(|(_, _, allocation)| allocation.voucher.stock_id);
        let chunks = sorted_unique(
            issued
                .iter()
                .map(|(_, _, allocation)| allocation.voucher.chunk_id),
        );
        let mut columns = Self::with_capacity(issued.len());
        for (record, order_id, allocation) in issued {
            columns.record.push(record);
            columns
                .chunk
                .push(position_of(&chunks, &allocation.voucher.chunk_id));
            columns.stock.push(allocation.voucher.stock_id);
            columns.voucher.push(allocation.voucher_id);
            columns.order.push(order_id);
            columns.line.push(allocation.line.cast_signed());
        }
        (chunks, columns)
    }
}

impl Events {
    fn push(&mut self, record: i32, feed: i32, bundle: &EventBundle) -> Result<(), sqlx::Error> {
        self.record.push(record);
        self.feed.push(feed);
        self.order.push(bundle.order_id);
        self.count.push(bundle.count().cast_signed());
        self.sequence.push(bundle.first_sequence.cast_signed());
        self.body.push(to_json(bundle)?);
        Ok(())
    }
}
