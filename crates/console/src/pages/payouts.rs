//! Payouts of all partners, and their outcome.

use vouchsafe_domain::payout::PayoutStatus;
use vouchsafe_wire::operator::payouts;

use super::{audit_of, waiting_changes};
use crate::json::Json;
use crate::page::{Action, Input, List, Object, Page, REASON, Section, Source, choice, col, filter, labels};

fn is_pending(payout: &Json) -> bool {
    payout.is("status", "PENDING")
}

fn is_decided(payout: &Json) -> bool {
    !is_pending(payout)
}

const PAYMENT: Input = Input::field("reference", "Reference of the payment")
    .hint("At the bank, such as the number of a statement.");

pub(super) static PAGES: [Page; 2] = [
    Page::list(
        "/payouts",
        "Payouts",
        List::of(payouts::LIST_PAYOUTS).filters(&[
            filter("partner_id", "Partner ID"),
            choice("status", "Status", labels::<PayoutStatus>),
        ]),
    ),
    Page::object(
        "/payouts/{payout_id}",
        "Payout",
        // For an admin with the destination, which the trail records.
        Object::of(
            payouts::GET_PAYOUT,
            "payout_id",
            &[
                col("Status", "status"),
                col("Partner", "partner_id"),
                col("Amount", "amount currency"),
                col("Destination", "destination"),
                col("Reference", "reference"),
                col("Created", "created_at"),
                col("Changed", "updated_at"),
            ],
            &[
                waiting_changes("status=WAITING&object={payout_id}", "/requests?status=WAITING&object={payout_id}"),
                Section::new(
                    "Timeline",
                    Source::Field("timeline"),
                    &[
                        col("Time", "at"),
                        col("Status", "status"),
                        col("By", "by"),
                        col("Reason", "reason"),
                        col("Reference", "reference"),
                    ],
                    "No entries.",
                ),
                audit_of("subject={payout_id}&limit=20", "/audit?subject={payout_id}"),
            ],
        ),
    )
    .actions(&[
        Action::new("pay", "Record as paid", payouts::PAY_PAYOUT)
            .inputs(&[PAYMENT, REASON])
            .when(is_pending)
            .note("The service moves no money: pay at the bank first.")
            .done("The payout was recorded as paid."),
        Action::new("reject", "Reject this payout", payouts::REJECT_PAYOUT)
            .inputs(&[REASON, PAYMENT])
            .when(is_pending)
            .dangerous()
            .note("The amount returns to the wallet.")
            .done("The payout was rejected."),
        Action::new("fail", "Record as failed", payouts::FAIL_PAYOUT)
            .inputs(&[REASON, PAYMENT])
            .when(is_pending)
            .dangerous()
            .note("The bank sent it back: the amount returns to the wallet.")
            .done("The payout was recorded as failed."),
        Action::new("erase", "Erase personal data", payouts::ERASE_PAYOUT)
            .inputs(&[REASON])
            .when(is_decided)
            .dangerous()
            .note("Destination, reference and reasons are removed for ever. The amount and the audit trail stay.")
            .done("The personal data of the payout was erased."),
    ]),
];
