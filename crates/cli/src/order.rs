//! `vouchsafe order`: search orders of all partners, decide and fulfil them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use vouchsafe_domain::order::filter::OrderSearch;
use vouchsafe_wire::json::JsonObject;
use vouchsafe_wire::operator::decision::ReasonRequest;
use vouchsafe_wire::operator::erasure::ErasureRequest;
use vouchsafe_wire::operator::orders::fulfil::{FulfilRequest, VoucherRequest};
use vouchsafe_wire::operator::orders::{
    APPROVE_ORDER, CANCEL_ORDER, ERASE_ORDER, FULFIL_ORDER, GET_ORDER, LIST_ORDER_EVENTS, REJECT_ORDER,
    SEARCH_ORDERS,
};
use vouchsafe_wire::operator::stock::voucher_list::ListPurpose;

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs, RequestArgs};
use super::examples::examples;
use super::id::{ObjectRef as _, OrderRef};
use super::voucher_file::{parse_list, read_bytes};

type DecisionArgs = RequestArgs<OrderRef, ReasonRequest>;

#[derive(Debug, Subcommand)]
pub enum Action {
    /// List orders of all partners, newest first.
    #[command(after_help = examples![
        "vouchsafe order list --pending-reason APPROVAL --since 2d",
        "vouchsafe order list --partner PARTNER_ID --reference PO-4711 --json",
    ])]
    List(Box<ListArgs<OrderSearch>>),
    /// Show an order with its vouchers, without codes.
    #[command(after_help = examples!["vouchsafe order show ORDER_ID"])]
    Show(OrderRef),
    /// List the events of an order, as its partner receives them.
    #[command(after_help = examples!["vouchsafe order events ORDER_ID"])]
    Events {
        #[command(flatten)]
        order: OrderRef,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Approve an order that waits for approval.
    #[command(after_help = examples!["vouchsafe order approve ORDER_ID --reason 'agreed by telephone'"])]
    Approve(DecisionArgs),
    /// Reject an order that waits for approval; it is refunded completely.
    #[command(after_help = examples!["vouchsafe order reject ORDER_ID --reason 'the buyer is not known'"])]
    Reject(DecisionArgs),
    /// Cancel an order; vouchers whose codes were not retrieved are refunded.
    #[command(after_help = examples!["vouchsafe order cancel ORDER_ID --reason 'ordered twice'"])]
    Cancel(DecisionArgs),
    /// Erase reference, metadata and reasons of a closed order. This cannot be undone.
    #[command(after_help = examples!["vouchsafe order erase ORDER_ID --reason 'request of the buyer of 24 November'"])]
    Erase(RequestArgs<OrderRef, ErasureRequest>),
    /// Fulfil an order with vouchers from a file. Can be repeated: no voucher is stored twice.
    #[command(after_help = examples![
        "vouchsafe order fulfil ORDER_ID vouchers.csv",
        "vouchsafe order fulfil ORDER_ID vouchers.ndjson --product game-us --denomination 25",
    ])]
    Fulfil(FulfilArgs),
}

#[derive(Debug, Args)]
pub struct FulfilArgs {
    #[command(flatten)]
    order: OrderRef,
    /// CSV or NDJSON file as for an import; - reads standard input.
    file: PathBuf,
    #[command(flatten)]
    request: FulfilRequest,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::List(args) => admin.list(SEARCH_ORDERS, &*args).await,
        Action::Show(order) => admin.run(order.at(GET_ORDER)).await,
        Action::Events { order, list } => admin.list(order.at(LIST_ORDER_EVENTS), &list).await,
        Action::Fulfil(mut args) => {
            args.request.vouchers = read_vouchers(&args)?;
            admin.send(args.order.at(FULFIL_ORDER), &args.request).await
        }
        Action::Approve(args) => args.send(APPROVE_ORDER, admin).await,
        Action::Reject(args) => args.send(REJECT_ORDER, admin).await,
        Action::Cancel(args) => args.send(CANCEL_ORDER, admin).await,
        Action::Erase(args) => args.send(ERASE_ORDER, admin).await,
    }
}

/// The vouchers of the file. The service validates their values.
fn read_vouchers(args: &FulfilArgs) -> anyhow::Result<Vec<JsonObject<VoucherRequest>>> {
    let FulfilArgs { file, request, .. } = args;
    let vouchers = parse_list(
        file,
        &read_bytes(file)?,
        ListPurpose::Store,
        request.accept_as_is,
        |listed| {
            request.check_listed(listed)?;
            Ok(JsonObject(VoucherRequest::new(&listed.voucher)))
        },
    );
    Ok(vouchers?.into_iter().map(|(_, voucher)| voucher).collect())
}
