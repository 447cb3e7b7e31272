//! The pages of the console, each a declaration of what it shows and changes.

mod access;
mod bulk;
mod catalogue;
mod monitoring;
mod orders;
mod overview;
mod partners;
mod payouts;
mod requests;
mod supply;
mod vendors;
mod webhooks;

use vouchsafe_wire::operator::change_requests::LIST_CHANGE_REQUESTS;
use vouchsafe_wire::operator::monitoring::LIST_AUDIT;

use crate::page::{Column, Page, Section, col, target};

/// All pages. A path is found in this order.
pub(crate) fn all_pages() -> impl Iterator<Item = &'static Page> {
    let groups: [&'static [Page]; 12] = [
        &overview::PAGES,
        &orders::PAGES,
        &payouts::PAGES,
        &requests::PAGES,
        &partners::PAGES,
        &webhooks::PAGES,
        &catalogue::PAGES,
        &supply::PAGES,
        &vendors::PAGES,
        &bulk::PAGES,
        &access::PAGES,
        &monitoring::PAGES,
    ];
    groups.into_iter().flatten()
}

const AUDIT_COLUMNS: [Column; 5] = [
    col("Time", "at"),
    col("Operator", "operator"),
    col("Action", "action"),
    col("Before", "before"),
    col("After", "after"),
];

/// Changes of an object that wait for a second operator.
const fn waiting_changes(query: &'static str, page: &'static str) -> Section {
    Section::list(
        "Waits for a second operator",
        target(LIST_CHANGE_REQUESTS).query(query),
        page,
        "",
    )
}

/// Entries of the audit trail about an object.
const fn audit_of(query: &'static str, page: &'static str) -> Section {
    Section::list(
        "Audit trail",
        target(LIST_AUDIT).query(query),
        page,
        "No operator has changed it.",
    )
    .columns(&AUDIT_COLUMNS)
}
