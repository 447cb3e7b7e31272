//! Reconciliation harness: a service that buys from the vendor simulator, and the simulator's records.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hyper::Method;
use serde_json::{Value, json};
use time::Date;
use time::format_description::well_known::Rfc3339;
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_procurement::VendorRecord;

use crate::vendor_protocol::adapter;
use vouchsafe_test_harness::VendorSimulator;
use vouchsafe_test_harness::{
    Instance, Operator, Partner, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_success, id_of, unique,
};

pub(crate) const VENDOR: &str = "simulated";

/// Number of vouchers, `records`, and the counts of the comparison.
pub(crate) type BatchCounts = (u64, String, [Option<u64>; 3]);

pub(crate) struct ReconciliationHarness {
    pub(crate) service: Instance,
    pub(crate) operator: Operator,
    pub(crate) simulator: VendorSimulator,
}

impl ReconciliationHarness {
    /// Starts with these products, each bought from the simulator.
    pub(crate) async fn start(products: &[&str]) -> Self {
        let service = Instance::start_with(&[("VOUCHSAFE_RECONCILIATION_PREVIEW", "on")]);
        let simulator = VendorSimulator::start(&[]);
        let mut operator = Operator::of(&service);
        let vendor = json!({ "adapter": "http", "url": simulator.url, "credentials": "simulator" });
        let path = format!("/admin/v1/vendors/{VENDOR}");
        operator.send_json(Method::PUT, &path, &vendor).await;
        for product in products {
            let changes = json!({ "vendor": VENDOR, "route": "vendor" });
            operator.put_product(product, changes).await;
        }
        Self {
            service,
            operator,
            simulator,
        }
    }

    /// Orders each product and waits until the orders are closed.
    pub(crate) async fn order_and_wait(&mut self, partner: &mut Partner, quantities: &[(&str, u32)]) {
        for (product, quantity) in quantities {
            let body =
                json!({ "items": [{ "product_id": product, "denomination": 25, "quantity": quantity }] });
            let response = partner.send(&unique("key"), &body).await;
            let order_id = id_of(&expect_success(&response, 202));
            let path = format!("/orders/{order_id}");
            eventually("the order to be closed", WAIT_TIMEOUT, async || {
                let order = partner.read(&path).await;
                (order["closed"] == true).then_some(())
            })
            .await;
        }
        // Move all purchases to the start of the day, so that the result does not depend on the hour of the
        // test.
        let mut database = ServiceDatabase::of(&self.service).await;
        let early =
            "UPDATE codes SET bought_at = date_trunc('day', bought_at, 'UTC') WHERE bought_at IS NOT NULL";
        database.run(early.to_owned()).await;
    }

    /// Returns yesterday and today by the database's clock: midnight may pass during the test.
    pub(crate) async fn days(&mut self) -> [Date; 2] {
        let mut database = ServiceDatabase::of(&self.service).await;
        let today = "SELECT ((now() AT TIME ZONE 'UTC')::date - $1::date)::bigint";
        let days = database.count(today, "1970-01-01").await;
        let today = Date::from_ordinal_date(1970, 1).unwrap() + time::Duration::days(days);
        [today.previous_day().unwrap(), today]
    }

    /// Compares both days; returns the summed counts in the order of the spec, and all drifts.
    pub(crate) async fn reconcile(&mut self) -> ([u64; 5], Vec<Value>) {
        let days = self.days().await;
        for day in days {
            let path = format!("/admin/v1/reconciliation/{day}/run");
            let response = self.operator.call_json(Method::POST, &path, "");
            expect_success(&response.await, 202);
            self.wait_until_reconciled(day).await;
        }
        (self.summary_counts(&days).await, self.drifts().await)
    }

    /// Waits until the day is reconciled with every vendor.
    async fn wait_until_reconciled(&mut self, day: Date) {
        let path = format!("/admin/v1/reconciliation/{day}");
        eventually("the day to be reconciled", WAIT_TIMEOUT, async || {
            let found = self.operator.get(&path).await;
            let mut vendors = found["vendors"].as_array().unwrap().iter();
            vendors
                .all(|vendor| vendor["next_attempt_at"].is_null() && vendor["generated_at"].is_string())
                .then_some(())
        })
        .await;
    }

    /// Returns the allocations of both days by vendor, source and batch.
    pub(crate) async fn allocations(&mut self) -> BTreeMap<[String; 3], BatchCounts> {
        let mut sums = BTreeMap::new();
        for day in self.days().await {
            let path = format!("/admin/v1/reconciliation/{day}");
            let found = self.operator.get(&path).await;
            for batch in found["allocations"].as_array().unwrap() {
                let key =
                    ["vendor", "source", "batch"].map(|name| batch[name].as_str().unwrap_or("-").to_owned());
                let records = batch["records"].as_str().unwrap().to_owned();
                let sum = sums.entry(key).or_insert((0, records, [None; 3]));
                sum.0 += batch["vouchers"].as_u64().unwrap();
                for (sum, name) in sum.2.iter_mut().zip(["matched", "drifted", "unmatched"]) {
                    *sum = batch[name].as_u64().map(|count| count + sum.unwrap_or_default());
                }
            }
        }
        sums
    }

    pub(crate) async fn summary_counts(&mut self, days: &[Date]) -> [u64; 5] {
        let mut sums = [0; 5];
        for day in days {
            let found = self
                .operator
                .get(&format!("/admin/v1/reconciliation/{day}"))
                .await;
            sums = add_counts(sums, &found["summary"]);
        }
        sums
    }

    pub(crate) async fn drifts(&mut self) -> Vec<Value> {
        let list = self.operator.get("/admin/v1/drifts?limit=100").await;
        assert_eq!(list["has_more"], false);
        list["data"].as_array().unwrap().clone()
    }

    /// Returns the simulator's records of both days.
    pub(crate) async fn vendor_records(&mut self) -> Vec<VendorRecord> {
        let adapter = adapter(&self.simulator.url);
        let mut found = Vec::new();
        for day in self.days().await {
            let mut records = adapter.records(day).unwrap();
            while let Some(record) = records.next().await.unwrap() {
                found.push(record);
            }
        }
        found
    }

    /// Returns product and number of sold vouchers by purchase key.
    pub(crate) async fn vendor_sales(&mut self) -> BTreeMap<String, (String, u64)> {
        let mut sales = BTreeMap::new();
        for record in self.vendor_records().await {
            let sale = sales
                .entry(record.key.to_string())
                .or_insert((record.product_id.to_string(), 0));
            sale.1 += 1;
        }
        sales
    }
}

/// Returns a vendor's comparison of a day.
pub(crate) fn of_vendor<'d>(day: &'d Value, vendor: &str) -> &'d Value {
    let mut vendors = day["vendors"].as_array().unwrap().iter();
    vendors.find(|found| found["vendor"] == vendor).unwrap()
}

/// Requests the preview with an unchecked client: the shared service's document does not contain the route.
pub(crate) async fn get_preview(service: &Instance, partner: &Partner, date: &str) -> ApiResponse {
    let mut client = PartnerClient::new(&service.base_url(), partner.client.credentials().clone()).unwrap();
    client.get(&format!("/reconciliation/{date}")).await.unwrap()
}

pub(crate) fn add_counts(sums: [u64; 5], summary: &Value) -> [u64; 5] {
    let names = [
        "orders_total",
        "vouchers_allocated",
        "matched",
        "drifted",
        "unmatched",
    ];
    let mut sums = sums.into_iter();
    names.map(|name| sums.next().unwrap() + summary[name].as_u64().unwrap())
}

/// Returns the records of a day as CSV for an upload.
pub(crate) fn records_csv(records: &[VendorRecord], day: Date) -> String {
    let mut text = "reference,product_id,denomination,currency,sold_at,purchase_id\n".to_owned();
    for record in records.iter().filter(|record| record.sold_at.date() == day) {
        let denomination = serde_json::to_string(&record.denomination).unwrap();
        let sold_at = record.sold_at.format(&Rfc3339).unwrap();
        let currency = record.currency();
        writeln!(
            text,
            "{},{},{denomination},{currency},{sold_at},{}",
            record.reference, record.product_id, record.key
        )
        .unwrap();
    }
    text
}
