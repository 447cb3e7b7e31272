//! Audit trail of one partner: every action on it and its objects, also on deleted ones, and nothing of
//! another partner.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_test_harness::{
    Instance, Operator, Partner, Receiver, Sale, ServiceDatabase, VendorSimulator, WAIT_TIMEOUT, eventually,
    expect_success, id_of, unique,
};

use crate::approvals::{add_manual_product_under_approval, place_order_awaiting_approval};
use crate::change_requests::FourEyes;
use crate::commands::run_with;
use crate::deliveries::register_webhook;
use crate::payouts::{payout_body, request_payout};

/// Days of the drifts in the database: a reconciliation of today does not touch them.
const DAY: &str = "2026-01-05";

/// Prefixes of actions that concern a partner, apart from imports and requests.
const OF_PARTNERS: [&str; 10] = [
    "partner.",
    "credential.",
    "certification.",
    "wallet.",
    "order.",
    "codes.",
    "payout.",
    "webhook.",
    "purchase.",
    "drift.",
];

/// Products that the walk of each partner orders.
struct Catalogue {
    under_approval: Sale,
    by_hand: Sale,
    bought: String,
}

impl Catalogue {
    async fn create(eyes: &mut FourEyes, simulator: &VendorSimulator) -> Self {
        let vendor = unique("simulated");
        let terms = json!({ "adapter": "http", "url": simulator.url, "credentials": "simulator" });
        let path = format!("/admin/v1/vendors/{vendor}");
        eyes.change(Method::PUT, &path, &terms, &mut Vec::new()).await;
        let operator = &mut eyes.admin;
        let bought = unique("bought");
        let changes = json!({ "route": "vendor", "vendor": vendor });
        operator.put_product(&bought, changes).await;
        Self {
            under_approval: add_manual_product_under_approval(operator, 0).await,
            by_hand: operator.add_product("vendor", 0).await,
            bought,
        }
    }
}

/// An action of each kind on a partner and its objects. Returns action and subject of the expected entries.
async fn act_on_partner(
    eyes: &mut FourEyes,
    partner: &mut Partner,
    catalogue: &Catalogue,
) -> Vec<(&'static str, String)> {
    let id = partner.partner_id.clone();
    let wallet = format!("{id}/USD");
    let mut expected = vec![
        ("partner.create", id.clone()),
        ("credential.issue", partner.credential_id.clone()),
        ("wallet.top_up", wallet.clone()),
    ];
    let path = format!("/admin/v1/partners/{id}");
    let terms = json!({ "cancel_window_s": 600 });
    eyes.change(Method::PATCH, &path, &terms, &mut expected).await;
    for (kind, amount) in [("top-ups", "2000"), ("adjustments", "-1")] {
        let posting = json!({ "amount": amount, "reference": unique("posting") });
        let post = format!("{path}/wallets/USD/{kind}");
        eyes.change(Method::POST, &post, &posting, &mut expected).await;
    }
    let restart = format!("{path}/certification");
    eyes.admin.send_json(Method::DELETE, &restart, &Value::Null).await;
    expected.extend([
        ("partner.change", id.clone()),
        ("wallet.top_up", wallet.clone()),
        ("wallet.adjust", wallet),
        ("certification.restart", id),
    ]);

    let issue = format!("{path}/credentials");
    let issued = eyes.change(Method::POST, &issue, &json!({}), &mut expected).await;
    let credential = issued["credential_id"].as_str().unwrap().to_owned();
    let revoke = format!("/admin/v1/credentials/{credential}");
    eyes.admin.send_json(Method::DELETE, &revoke, &Value::Null).await;
    expected.extend([
        ("credential.issue", credential.clone()),
        ("credential.revoke", credential),
    ]);
    act_on_orders(eyes, partner, catalogue, &mut expected).await;
    act_on_payout(eyes, partner, &mut expected).await;
    act_on_webhook(eyes, partner, &mut expected).await;
    expected
}

async fn act_on_orders(
    eyes: &mut FourEyes,
    partner: &mut Partner,
    catalogue: &Catalogue,
    expected: &mut Vec<(&'static str, String)>,
) {
    let reason = json!({ "reason": "as agreed" });
    let path = |order_id: &str, verb: &str| format!("/admin/v1/orders/{order_id}/{verb}");
    let rejected = place_order_awaiting_approval(partner, &catalogue.under_approval, 1).await;
    eyes.change(Method::POST, &path(&rejected, "reject"), &reason, expected)
        .await;
    let approved = place_order_awaiting_approval(partner, &catalogue.under_approval, 1).await;
    eyes.change(Method::POST, &path(&approved, "approve"), &reason, expected)
        .await;
    let vouchers = json!({ "vouchers": [{ "code": unique("code") }] });
    eyes.change(Method::POST, &path(&approved, "fulfil"), &vouchers, expected)
        .await;
    assert_eq!(partner.count_codes(&approved).await, 1);
    expected.extend([
        ("order.reject", rejected),
        ("order.approve", approved.clone()),
        ("order.fulfil", approved.clone()),
        ("codes.retrieve", approved),
    ]);

    let [canceled, ended] = [
        expect_success(&partner.order(&catalogue.by_hand, 1).await, 202),
        expect_success(&partner.order(&catalogue.by_hand, 1).await, 202),
    ]
    .map(|order| id_of(&order));
    eyes.change(Method::POST, &path(&canceled, "cancel"), &reason, expected)
        .await;
    let purchases = format!("/admin/v1/purchases?order_id={ended}");
    let purchase = eventually("the purchase of the order", WAIT_TIMEOUT, async || {
        let purchases = eyes.admin.get(&purchases).await;
        purchases["data"][0]["purchase_id"].as_str().map(str::to_owned)
    })
    .await;
    let end = format!("/admin/v1/purchases/{purchase}/end");
    eyes.change(Method::POST, &end, &reason, expected).await;
    expected.extend([("order.cancel", canceled), ("purchase.end", purchase)]);

    let body = json!({ "items": [{ "product_id": catalogue.bought, "denomination": 25, "quantity": 1 }] });
    let bought = id_of(&expect_success(&partner.send(&unique("key"), &body).await, 202));
    eventually("the vendor's voucher", WAIT_TIMEOUT, async || {
        let order = partner.read(&format!("/orders/{bought}")).await;
        (order["status"] == "DELIVERED").then_some(())
    })
    .await;
    expected.push(("stock.import", format!("{}/2500", catalogue.bought)));
}

async fn act_on_payout(
    eyes: &mut FourEyes,
    partner: &mut Partner,
    expected: &mut Vec<(&'static str, String)>,
) {
    let response = request_payout(partner, &unique("key"), &payout_body("10")).await;
    let payout = expect_success(&response, 202)["payout_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/admin/v1/payouts/{payout}");
    eyes.admin.get(&path).await;
    let paid = json!({ "reference": unique("wire") });
    eyes.change(Method::POST, &format!("{path}/pay"), &paid, expected)
        .await;
    expected.extend([("payout.read", payout.clone()), ("payout.pay", payout)]);
}

async fn act_on_webhook(
    eyes: &mut FourEyes,
    partner: &mut Partner,
    expected: &mut Vec<(&'static str, String)>,
) {
    let receiver = Receiver::start();
    let webhook = register_webhook(partner, &receiver, &json!({})).await;
    let webhook = webhook["webhook_id"].as_str().unwrap().to_owned();
    let own = format!("/webhooks/{webhook}");
    let feed = partner.list_all("/events").await;
    let replay = json!({ "event_id": feed[0]["event_id"] }).to_string();
    let replayed = partner
        .send_signed(Method::POST, &format!("{own}/replay"), &replay)
        .await;
    expect_success(&replayed, 202);
    receiver.wait_for_events(1);
    let deliveries = format!("/admin/v1/deliveries?webhook_id={webhook}");
    let delivery = eyes.admin.get(&deliveries).await["data"][0]["delivery_id"].clone();
    let again = format!("/admin/v1/deliveries/{}/replay", delivery.as_str().unwrap());
    for path in [
        again,
        format!("/admin/v1{own}/retry"),
        format!("/admin/v1{own}/enable"),
    ] {
        eyes.admin.send_json(Method::POST, &path, &json!({})).await;
    }
    let removed = partner.send_signed(Method::DELETE, &own, "").await;
    assert!(removed.status.is_success(), "{}", removed.status);
    let actions = [
        "webhook.create",
        "webhook.replay",
        "webhook.replay",
        "webhook.retry",
        "webhook.enable",
        "webhook.remove",
    ];
    expected.extend(actions.map(|action| (action, webhook.clone())));
}

/// Resolves a drift of each partner, then lets it vanish as a later comparison does, together with the
/// partner's ended credentials.
async fn resolve_and_delete_drifts(
    service: &Instance,
    operator: &mut Operator,
    walks: &mut [(Partner, Vec<(&'static str, String)>)],
) {
    let mut database = ServiceDatabase::of(service).await;
    let day = format!("INSERT INTO reconciliations (vendor, day) VALUES ('some-vendor', '{DAY}')");
    database.run(day).await;
    for (number, (partner, expected)) in (1..).zip(walks) {
        let drift = format!("{number:032x}");
        let partner_id = partner.partner_id.trim_start_matches("ptn_");
        let insert = format!(
            "INSERT INTO drifts (drift_id, vendor, day, reference, kind, occurrence, partner_id, order_id, ours)
             VALUES ('{drift}', 'some-vendor', '{DAY}', '{drift}', 'MISSING', 1, '{partner_id}', gen_random_uuid(),
                     '{{\"purchase_id\": \"{drift}\", \"product_id\": \"gift\", \"denomination\": 100, \"currency\": \"USD\"}}')"
        );
        database.run(insert).await;
        let path = format!("/admin/v1/drifts/drf_{drift}/resolve");
        let body = json!({ "resolution": "resolved", "reason": "the vendor agrees" });
        operator.send_json(Method::POST, &path, &body).await;
        expected.push(("drift.resolve", format!("drf_{drift}")));
    }
    database
        .run("DELETE FROM drifts; DELETE FROM reconciliations".to_owned())
        .await;
    database
        .run("DELETE FROM credentials WHERE revoked_at IS NOT NULL".to_owned())
        .await;
}

#[tokio::test]
async fn audit_of_a_partner_has_everything_about_it_and_nothing_of_another() {
    let mut eyes = FourEyes::start();
    let simulator = VendorSimulator::start(&[]);
    let catalogue = Catalogue::create(&mut eyes, &simulator).await;
    let mut walks = Vec::new();
    for _ in 0..2 {
        let mut partner = eyes.admin.add_partner("500").await;
        let expected = act_on_partner(&mut eyes, &mut partner, &catalogue).await;
        walks.push((partner, expected));
    }
    resolve_and_delete_drifts(&eyes.service, &mut eyes.admin, &mut walks).await;

    for (partner, expected) in &walks {
        let filter = format!("partner_id={}&limit=100", partner.partner_id);
        let entries = eyes.admin.audit_entries(&filter).await;
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
        let mut found: Vec<_> = entries
            .iter()
            .map(|entry| (text(entry, "action"), text(entry, "subject")))
            .collect();
        let mut expected: Vec<_> = expected
            .iter()
            .map(|(action, subject)| ((*action).to_owned(), subject.clone()))
            .collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        assert!(
            entries
                .iter()
                .all(|entry| entry["partner_id"] == json!(partner.partner_id))
        );
        let ids: Vec<_> = entries.iter().map(|entry| entry["audit_id"].as_i64()).collect();
        assert!(ids.is_sorted_by(|a, b| a > b), "{ids:?}");

        let of_action = eyes
            .admin
            .audit_entries(&format!("{filter}&action=order.reject"))
            .await;
        assert_eq!(of_action.len(), 1);
        let page = [
            "audit",
            "--partner",
            &partner.partner_id,
            "--limit",
            "1",
            "--json",
        ];
        let page: Value = serde_json::from_slice(&run_with(&eyes.service, &page, None).stdout).unwrap();
        assert_eq!(page["data"][0]["audit_id"].as_i64(), ids[0]);
        assert!(page["next_cursor"].is_string());
    }
    let mut database = ServiceDatabase::of(&eyes.service).await;
    let without = "SELECT action FROM audit_log WHERE partner_id IS NULL AND $1 = ''";
    let without = database.texts(without, "").await;
    let missed = |action: &&String| OF_PARTNERS.iter().any(|prefix| action.starts_with(prefix));
    assert_eq!(without.iter().find(missed), None);
    eyes.service.assert_verified();
}

#[tokio::test]
async fn amounts_in_the_audit_of_a_partner_are_decimals() {
    let mut operator = Operator::of(vouchsafe_test_harness::shared());
    let partner = operator.add_partner("100").await;
    let filter = format!("partner_id={}&action=wallet.top_up", partner.partner_id);
    let entries = operator.audit_entries(&filter).await;
    assert_eq!(
        (&entries[0]["after"]["amount"], &entries[0]["before"]["balance"]),
        (&json!(100.0), &json!(0.0))
    );
}
