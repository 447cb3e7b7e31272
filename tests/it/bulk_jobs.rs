//! Bulk jobs: a result for each object, second operators, interruption, and the ways of console and commands.

use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_test_harness::{
    Instance, Operator, Partner, ServiceDatabase, WAIT_TIMEOUT, expect_error, expect_success, shared,
    text_of, unique,
};

use crate::approvals::{add_manual_product_under_approval, decide, place_order_awaiting_approval};
use crate::change_requests::FourEyes;
use crate::commands::{run_with, utf8};
use crate::console::Browser;
use crate::operator_accounts::add_operator;
use crate::payouts::{payout_body, request_payout};

async fn place_orders(operator: &mut Operator, partner: &mut Partner, count: usize) -> Vec<String> {
    let sale = add_manual_product_under_approval(operator, 0).await;
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(place_order_awaiting_approval(partner, &sale, 1).await);
    }
    ids
}

async fn start(operator: &mut Operator, body: &Value) -> String {
    let response = operator
        .call_json(Method::POST, "/admin/v1/bulk-jobs", body.to_string())
        .await;
    let job = expect_success(&response, 201);
    job["job_id"].as_str().unwrap().to_owned()
}

/// The job after its end, and its objects.
async fn wait_for_end(operator: &mut Operator, job_id: &str) -> (Value, Vec<Value>) {
    let path = format!("/admin/v1/bulk-jobs/{job_id}");
    let begin = std::time::Instant::now();
    let job = loop {
        let job = operator.get(&path).await;
        if job["status"] != "RUNNING" {
            break job;
        }
        assert!(begin.elapsed() < WAIT_TIMEOUT, "{job}");
        tokio::task::yield_now().await;
    };
    let items = operator.get(&format!("{path}/items")).await["data"].clone();
    (job, items.as_array().unwrap().clone())
}

fn results(items: &[Value]) -> Vec<(&str, &str)> {
    items
        .iter()
        .map(|item| {
            (
                item["result"].as_str().unwrap(),
                item["error_code"].as_str().unwrap_or_default(),
            )
        })
        .collect()
}

#[tokio::test]
async fn job_changes_each_object_and_shows_what_was_refused() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let ids = place_orders(&mut operator, &mut partner, 3).await;
    expect_success(&decide(&mut operator, "reject", &ids[1]).await, 200);
    let unknown = "ord_00000000000000000000000000000000".to_owned();
    let all = [&ids[..], &[unknown]].concat();
    let body = json!({ "action": "ORDER_APPROVE", "ids": all, "reason": "agreed" });
    let job_id = start(&mut operator, &body).await;
    let (job, items) = wait_for_end(&mut operator, &job_id).await;
    assert_eq!(
        results(&items),
        [
            ("DONE", ""),
            ("REFUSED", "ORDER_NOT_AWAITING_APPROVAL"),
            ("DONE", ""),
            ("REFUSED", "ORDER_NOT_FOUND"),
        ]
    );
    assert_eq!(
        (&job["status"], &job["objects"], &job["done"], &job["refused"]),
        (&json!("ENDED"), &json!(4), &json!(2), &json!(2))
    );
    for (item, id) in items.iter().zip(&all) {
        assert_eq!(item["object_id"], **id);
    }
    // The job and each of its changes are entries with its trace id.
    let trace = &job["trace_id"];
    for (subject, action) in [
        (&job_id, "bulk_job.start"),
        (&ids[0], "order.approve"),
        (&ids[2], "order.approve"),
    ] {
        let entries = operator
            .audit_entries(&format!("subject={subject}&action={action}"))
            .await;
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!(&entries[0]["trace_id"], trace);
    }
    let refused = operator
        .get(&format!(
            "/admin/v1/bulk-jobs/{job_id}/items?result=REFUSED&limit=1"
        ))
        .await;
    assert_eq!(refused["data"][0]["position"], 2);
    assert_eq!(refused["has_more"], true);
}

#[tokio::test]
async fn job_without_use_is_refused() {
    let mut operator = Operator::of(shared());
    let id = "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";
    for (body, field) in [
        (json!({ "action": "ORDER_APPROVE", "ids": [id] }), "reason"),
        (
            json!({ "action": "ORDER_APPROVE", "ids": [], "reason": "r" }),
            "ids",
        ),
        (
            json!({ "action": "ORDER_APPROVE", "ids": vec![id; 1_001], "reason": "r" }),
            "ids",
        ),
        (
            json!({ "action": "ORDER_APPROVE", "ids": [id, id], "reason": "r" }),
            "ids[1]",
        ),
        (
            json!({ "action": "ORDER_APPROVE", "ids": ["../partners"], "reason": "r" }),
            "ids[0]",
        ),
        (
            json!({ "action": "DELIVERY_REPLAY", "ids": [id], "reason": "r" }),
            "reason",
        ),
        (
            json!({ "action": "ORDER_ERASE", "ids": [id], "reason": "r" }),
            "action",
        ),
    ] {
        let response = operator
            .call_json(Method::POST, "/admin/v1/bulk-jobs", body.to_string())
            .await;
        let error = expect_error(&response, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], field, "{error}");
    }
    let unknown = operator
        .call_json(
            Method::GET,
            "/admin/v1/bulk-jobs/blk_00000000000000000000000000000000",
            "",
        )
        .await;
    expect_error(&unknown, 404, "BULK_JOB_NOT_FOUND");
    let (_, issued) = add_operator(&mut operator, "operator").await;
    let body = json!({ "action": "PAYOUT_PAY", "ids": ["po_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f"] });
    let response = Operator::of(shared())
        .with_token(issued["token"].as_str().unwrap())
        .call_json(Method::POST, "/admin/v1/bulk-jobs", body.to_string())
        .await;
    expect_error(&response, 403, "FORBIDDEN");
}

#[tokio::test]
async fn second_operator_confirms_the_changes_of_a_job_with_another_job() {
    let mut eyes = FourEyes::start();
    let mut partner = eyes.admin.add_partner("900").await;
    let mut payouts = Vec::new();
    for _ in 0..2 {
        let payout = request_payout(&mut partner, &unique("key"), &payout_body("10.00")).await;
        let payout = expect_success(&payout, 202);
        payouts.push(payout["payout_id"].as_str().unwrap().to_owned());
    }
    let body = json!({ "action": "PAYOUT_REJECT", "ids": payouts, "reason": "no such account" });
    let job_id = start(&mut eyes.admin, &body).await;
    let (_, items) = wait_for_end(&mut eyes.admin, &job_id).await;
    assert_eq!(results(&items), [("REQUESTED", ""), ("REQUESTED", "")]);
    let requests: Vec<_> = items.iter().map(|item| item["request_id"].clone()).collect();

    let confirm = json!({ "action": "REQUEST_CONFIRM", "ids": requests });
    let own = start(&mut eyes.admin, &confirm).await;
    let (_, items) = wait_for_end(&mut eyes.admin, &own).await;
    assert_eq!(results(&items), [("REFUSED", "OWN_CHANGE_REQUEST"); 2]);

    // The secret of a credential is shown to the operator that confirms it, and nobody else.
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let secret = eyes.request(Method::POST, &path, &json!({})).await;
    let secret = secret.rsplit('/').next().unwrap();
    let mut ids = requests.clone();
    ids.push(json!(secret));
    let by_sam = start(&mut eyes.sam, &json!({ "action": "REQUEST_CONFIRM", "ids": ids })).await;
    let (_, items) = wait_for_end(&mut eyes.sam, &by_sam).await;
    assert_eq!(
        results(&items),
        [("DONE", ""), ("DONE", ""), ("REFUSED", "VALIDATION_FAILED")]
    );
    assert_eq!(
        eyes.status(&format!("/admin/v1/requests/{secret}")).await,
        "WAITING"
    );
    for payout in &payouts {
        assert_eq!(
            partner.read(&format!("/payouts/{payout}")).await["status"],
            "REJECTED"
        );
    }
    eyes.service.assert_verified();
}

#[tokio::test]
async fn job_of_a_dead_node_is_continued_by_another_job() {
    const ORDERS: usize = 25;
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let mut partner = operator.add_partner("1000").await;
    let ids = place_orders(&mut operator, &mut partner, ORDERS).await;
    let body = json!({ "action": "ORDER_REJECT", "ids": ids, "reason": "ordered twice" });
    let job_id = start(&mut operator, &body).await;
    service.kill();
    service.restart();
    // Time passes: nothing has carried the job on.
    let mut database = ServiceDatabase::of(&service).await;
    database
        .run("UPDATE bulk_jobs SET runs_until = now()".to_owned())
        .await;
    let mut operator = Operator::of(&service);
    let (job, _) = wait_for_end(&mut operator, &job_id).await;
    assert_eq!(job["status"], "INTERRUPTED", "{job}");
    let page = Browser::of(&service).read(&format!("/bulk-jobs/{job_id}")).await;
    assert!(
        page.contains(&format!("href=\"/bulk-jobs/new?job={job_id}\"")),
        "{page}"
    );

    let output = run_with(&service, &["bulk", "continue", &job_id, "--json"], None);
    let rest: Value = serde_json::from_slice(&output.stdout).unwrap();
    let left = i64::try_from(ORDERS).unwrap() - job["done"].as_i64().unwrap();
    assert_eq!(
        (&rest["status"], &rest["objects"]),
        (&json!("ENDED"), &json!(left))
    );
    // An order may have been rejected without the result of it.
    assert!(rest["refused"].as_i64().unwrap() <= 1, "{rest}");
    for id in &ids {
        assert_eq!(
            operator.get(&format!("/admin/v1/orders/{id}")).await["status"],
            "REFUNDED"
        );
        let rejected = operator
            .audit_entries(&format!("subject={id}&action=order.reject"))
            .await;
        assert_eq!(rejected.len(), 1);
    }
    assert_eq!(partner.balance("USD").await, "1000.00");
    service.assert_verified();
}

#[tokio::test]
async fn command_decides_on_all_that_match_a_filter() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let ids = place_orders(&mut operator, &mut partner, 2).await;
    let filter = format!("partner_id={}&pending_reason=APPROVAL", partner.partner_id);
    let arguments = [
        "bulk",
        "start",
        "ORDER_REJECT",
        "--filter",
        &filter,
        "--reason",
        "ordered twice",
    ];
    let output = run_with(shared(), &arguments, None);
    let printed = utf8(&output.stdout);
    assert!(output.status.success(), "{printed}{}", utf8(&output.stderr));
    assert!(
        printed.contains("2 of 2 done, 0 wait for another operator, 0 refused, 0 failed"),
        "{printed}"
    );
    for id in &ids {
        assert!(printed.contains(id), "{printed}");
        assert_eq!(
            operator.get(&format!("/admin/v1/orders/{id}")).await["status"],
            "REFUNDED"
        );
    }
    // What is refused is in the output and in the exit code.
    let again = [
        "bulk",
        "start",
        "ORDER_REJECT",
        &ids[0],
        "--reason",
        "ordered twice",
    ];
    let output = run_with(shared(), &again, None);
    assert_eq!(output.status.code(), Some(1));
    assert!(utf8(&output.stdout).contains("ORDER_NOT_AWAITING_APPROVAL"));
    let none = run_with(shared(), &arguments, None);
    assert_eq!(none.status.code(), Some(2), "{}", utf8(&none.stderr));
}

#[tokio::test]
async fn console_starts_a_job_of_the_selected_and_of_all_that_match() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("1000").await;
    let ids = place_orders(&mut operator, &mut partner, 3).await;
    let mut browser = Browser::of(shared());
    let filter = format!("partner_id={}&pending_reason=APPROVAL", partner.partner_id);
    let list = browser.read(&format!("/orders?{filter}")).await;
    for id in &ids {
        let check_box = format!("<input type=\"checkbox\" form=\"bulk\" name=\"id\" value=\"{id}\"");
        assert!(list.contains(&check_box), "{list}");
    }
    let selected = format!("/bulk-jobs/new?action=ORDER_APPROVE&of=selected&id={}", ids[0]);
    let page = browser.read(&selected).await;
    assert!(
        page.contains("Approve orders: <span class=\"name\">1</span>"),
        "{page}"
    );
    assert!(page.contains(&ids[0]) && !page.contains(&ids[1]), "{page}");
    let encoded = filter.replace('=', "%3D").replace('&', "%26");
    let all = format!("/bulk-jobs/new?action=ORDER_REJECT&of=all&filter={encoded}");
    let page = browser.read(&all).await;
    assert!(
        page.contains("Reject orders: <span class=\"name\">3</span>"),
        "{page}"
    );

    let form = all.replace("/new?", "/new/start?");
    let lines = ids.join("\r\n");
    let refused = browser
        .submit(&form, &[("action", "ORDER_REJECT"), ("ids", &lines)])
        .await;
    assert_eq!(refused.status, 422, "{}", text_of(&refused));
    let fields = [
        ("action", "ORDER_REJECT"),
        ("ids", lines.as_str()),
        ("reason", "ordered twice"),
    ];
    let started = browser.submit(&form, &fields).await;
    assert_eq!(started.status, 303, "{}", text_of(&started));
    let job = started.header("location").unwrap().to_owned();
    wait_for_end(&mut operator, job.rsplit('/').next().unwrap()).await;
    let page = browser.read(&job).await;
    for id in &ids {
        assert!(page.contains(&format!("href=\"/orders/{id}\"")), "{page}");
    }
    assert!(
        page.contains("ENDED") && page.matches("DONE").count() == 3,
        "{page}"
    );
    let (_, viewer) = add_operator(&mut operator, "viewer").await;
    let list = Browser::of(shared())
        .with_token(viewer["token"].as_str().unwrap())
        .read(&format!("/orders?partner_id={}", partner.partner_id))
        .await;
    assert!(!list.contains("type=\"checkbox\""), "{list}");
}
