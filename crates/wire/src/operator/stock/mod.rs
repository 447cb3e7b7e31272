//! Operations and bodies of `/stock`, and readers of lists of vouchers.

pub mod expiries;
pub mod import;
pub mod level;
pub mod quarantine;
pub mod row;
pub mod spreadsheet;
pub mod void;
pub mod voucher_list;

use vouchsafe_domain::operator::Role;

use crate::column::col;
use crate::error_code::Code;
use crate::operation::{Page, operations};
use crate::operator::operation::SecondOperator::Never;
use crate::operator::operation::{Operation, OperatorAccess, get, post};
use crate::operator::stock::expiries::StockExpiry;
use crate::operator::stock::import::{ImportQuery, ImportReport};
use crate::operator::stock::level::{LevelFilter, SkuFilter, StockLevelBody};
use crate::operator::stock::quarantine::{
    ComparisonReport, QuarantineReport, QuarantineRequest, ReleaseReport, ReleaseRequest, SoldRequest,
};
use crate::operator::stock::void::{VoidReport, VoidRequest};

operations! {
    OperatorAccess;
    LIST_STOCK: Operation<LevelFilter, Page<StockLevelBody>> =
        get("/stock", Role::Viewer, "listStock", "List stock levels")
            .columns(&[
                col("Product", "product_id"),
                col("Denomination", "denomination currency"),
                col("Free", "free"),
                col("Sold in 7 days", "sold_7d"),
                col("Days left", "days_left"),
                col("Quarantined", "quarantined"),
                col("Sold", "sold"),
                col("Void", "void"),
                col("Expired", "expired"),
                col("Next expiry", "next_expiry"),
                col("Loaded", "loaded").at(2).terminal_only(),
            ]);
    LIST_STOCK_EXPIRIES: Operation<SkuFilter, Page<StockExpiry>> =
        get("/stock/expiries", Role::Viewer, "listStockExpiries", "List stock by expiry")
            .columns(&[
                col("Last valid in", "month"),
                col("Vouchers", "vouchers"),
                col("Share", "share"),
            ]);
    IMPORT_STOCK: Operation<ImportQuery, ImportReport> =
        post("/stock", Role::Operator, Never, "importStock", "Import vouchers")
            .errors(&[Code::ProductNotFound, Code::DenominationNotAllowed]);
    VOID_STOCK: Operation<VoidRequest, VoidReport> =
        post("/stock/void", Role::Admin, Never, "voidStock", "Void vouchers")
            .errors(&[Code::ProductNotFound, Code::DenominationNotAllowed]);
    QUARANTINE_STOCK: Operation<QuarantineRequest, QuarantineReport> =
        post("/stock/quarantine", Role::Admin, Never, "quarantineStock", "Quarantine all available stock");
    WITHDRAW_SOLD_STOCK: Operation<SoldRequest, ComparisonReport> = post(
        "/stock/quarantine/sold",
        Role::Admin,
        Never,
        "withdrawSoldStock",
        "Take vouchers out of sale that were sold since the backup",
    )
        .errors(&[Code::ProductNotFound]);
    RELEASE_STOCK: Operation<ReleaseRequest, ReleaseReport> =
        post("/stock/quarantine/release", Role::Admin, Never, "releaseStock", "Release quarantined stock")
            .errors(&[Code::ProductNotFound, Code::DenominationNotAllowed]);
}
