//! Rate limits of families of credentials, of partners with a ceiling and of deployments of several nodes;
//! the daily cap of rotations.

use futures_util::future::join_all;
use hyper::Method;
use serde_json::{Value, json};
use vouchsafe_api_client::ApiResponse;
use vouchsafe_test_harness::{
    Instance, Operator, Partner, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_error, expect_success,
    shared,
};

use crate::credential_rotation::rotate;
use crate::multi_node::{MASTER_KEY, start_two_nodes_with};

/// Longer than any test.
const WINDOW_S: u32 = 86_400;

/// Quota of the class `general` of partners with limits: shows that a node has loaded them.
const GENERAL_QUOTA: u32 = 77_777;

async fn add_partner(operator: &mut Operator, class: &str, quota_of_class: u32) -> Partner {
    let partner = operator.add_partner("0").await;
    let quota = |quota: u32| json!({ "quota": quota, "window_s": WINDOW_S });
    let limits = json!({ "limits": { class: quota(quota_of_class), "general": quota(GENERAL_QUOTA) } });
    operator.patch_partner(&partner, &limits).await;
    partner
}

/// Sends a request of the class `vouchers` and returns whether it was within the limit.
async fn is_within_limit(partner: &mut Partner) -> bool {
    let response = partner.get_codes("ord_0").await;
    if response.status == 429 {
        expect_error(&response, 429, "RATE_LIMIT_EXCEEDED");
        assert!(response.header("ratelimit").unwrap().contains(";r=0;"));
        return false;
    }
    expect_error(&response, 404, "ORDER_NOT_FOUND");
    true
}

/// Sends this many requests in turn to each client, whose requests run at the same time, and returns how many
/// were within the limit.
async fn count_within_limit(clients: &mut [Partner], each: usize) -> usize {
    let counts = join_all(clients.iter_mut().map(async |client| {
        let mut within = 0;
        for _ in 0..each {
            within += usize::from(is_within_limit(client).await);
        }
        within
    }));
    counts.await.into_iter().sum()
}

async fn wait_for_partner(partner: &mut Partner) {
    let poll = async || (partner.get("/wallets").await.status == 200).then_some(());
    eventually("the other node to know the partner", WAIT_TIMEOUT, poll).await;
}

/// Waits until the other node has loaded the limits of [`add_partner`], which it may do after the partner.
async fn wait_for_limits(partner: &mut Partner) {
    let policy = format!(r#""general";q={GENERAL_QUOTA};w={WINDOW_S}"#);
    let poll = async || {
        let response = partner.get("/wallets").await;
        (response.header("ratelimit-policy") == Some(policy.as_str())).then_some(())
    };
    eventually("the other node to know the limits", WAIT_TIMEOUT, poll).await;
}

/// Use of the class by each credential, as the operator sees it.
async fn uses(operator: &mut Operator, partner: &Partner, class: &str) -> Vec<u64> {
    let path = format!("/admin/v1/partners/{}/limits", partner.partner_id);
    let listed = operator.get(&path).await;
    let entries = listed["data"].as_array().unwrap().iter();
    let of_class = entries.filter(|entry| entry["class"] == class);
    of_class.map(|entry| entry["used"].as_u64().unwrap()).collect()
}

async fn request_rotation(partner: &mut Partner) -> ApiResponse {
    partner
        .send_signed(Method::POST, "/credentials/rotate", r#"{"overlap_seconds":3600}"#)
        .await
}

#[tokio::test]
async fn rotated_credential_continues_the_window_of_its_predecessor() {
    let mut operator = Operator::of(shared());
    let mut first = add_partner(&mut operator, "vouchers", 6).await;
    assert_eq!(count_within_limit(std::slice::from_mut(&mut first), 3).await, 3);
    let (mut second, _) = rotate(&mut first, "{}").await;
    assert!(is_within_limit(&mut second).await);
    let (mut third, _) = rotate(&mut second, "{}").await;
    assert!(is_within_limit(&mut third).await);
    // The first credential is live until the overlap ends, and counts with them.
    assert!(is_within_limit(&mut first).await);
    for credential in [&mut first, &mut second, &mut third] {
        assert!(!is_within_limit(credential).await);
    }
    assert_eq!(uses(&mut operator, &first, "vouchers").await, [6, 6, 6]);
    // A credential that the operator issues is no successor.
    let path = format!("/admin/v1/partners/{}/credentials", first.partner_id);
    let issued = operator.send_json(Method::POST, &path, &json!({})).await;
    assert!(is_within_limit(&mut first.with_credential(&issued)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn rotations_of_a_family_are_capped_per_day_on_all_nodes_and_after_a_restart() {
    let [first, mut second] = start_two_nodes_with(&[("VOUCHSAFE_ROTATIONS_PER_DAY", "3")]);
    let mut operator = Operator::of(&first);
    let partner = operator.add_partner("0").await;
    let rotation = |issued: &Value| {
        let id = issued["credential_id"].as_str().unwrap();
        format!("/admin/v1/credentials/{id}/rotate")
    };
    let mut at_second = partner.connect_to(&second.base_url());
    wait_for_partner(&mut at_second).await;
    // By the partner on one node, by its successor, and by the operator on the other, without the maximum.
    let issued = expect_success(&request_rotation(&mut at_second).await, 201);
    let mut successor = at_second.with_credential(&issued);
    wait_for_partner(&mut successor).await;
    expect_success(&request_rotation(&mut successor).await, 201);
    let response = operator.call_json(Method::POST, &rotation(&issued), "").await;
    let newest = expect_success(&response, 201);
    second.kill();
    second.restart();
    let mut at_first = partner.connect_to(&first.base_url());
    let mut restarted = partner.connect_to(&second.base_url());
    for refused in [
        request_rotation(&mut at_first).await,
        request_rotation(&mut restarted).await,
    ] {
        let error = expect_error(&refused, 429, "RATE_LIMIT_EXCEEDED");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("at most 3 rotations"), "{message}");
        assert!(message.contains("ask the operator"), "{message}");
        let wait_s: u32 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=WINDOW_S).contains(&wait_s), "{wait_s}");
    }
    // A refused rotation revokes nothing.
    let mut newest_client = partner.with_credential(&newest);
    expect_success(&newest_client.get("/wallets").await, 200);
    // The partner, or a thief of its secret, cannot use up the rotations of the operator.
    let mut last = newest;
    for service in [&first, &second] {
        let mut operator = Operator::of(service);
        let path = rotation(&last);
        let response = operator.call_json(Method::POST, &path, r#"{"overlap_seconds":0}"#);
        last = expect_success(&response.await, 201);
    }
    // Another family has its own.
    let path = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let issued = operator.send_json(Method::POST, &path, &json!({})).await;
    let mut other = partner.with_credential(&issued);
    expect_success(&request_rotation(&mut other).await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_together_admit_the_quota_of_a_credential() {
    const QUOTA: u32 = 100;
    let [first, mut second] = start_two_nodes_with(&[]);
    let mut operator = Operator::of(&first);
    let within_ten_percent = 90..=110;

    // Concurrent requests at both nodes.
    let partner = add_partner(&mut operator, "vouchers", QUOTA).await;
    let mut at_second = partner.connect_to(&second.base_url());
    wait_for_limits(&mut at_second).await;
    let mut clients: Vec<Partner> = (0..4)
        .flat_map(|_| [partner.reconnect(), partner.connect_to(&second.base_url())])
        .collect();
    let admitted = count_within_limit(&mut clients, 40).await;
    assert!(within_ten_percent.contains(&admitted), "{admitted} at both nodes");
    let used = usize::try_from(uses(&mut operator, &partner, "vouchers").await[0]).unwrap();
    assert!(used <= QUOTA as usize, "{used}");
    let shown = uses(&mut Operator::of(&second), &partner, "vouchers").await[0];
    assert!(shown >= 90, "the other node shows {shown}");

    // All at one of them.
    let lone = add_partner(&mut operator, "vouchers", QUOTA).await;
    let mut lone = lone.connect_to(&second.base_url());
    wait_for_limits(&mut lone).await;
    let admitted = count_within_limit(std::slice::from_mut(&mut lone), 150).await;
    assert!(within_ten_percent.contains(&admitted), "{admitted} at one node");

    // No node starts afresh: neither the one that saw no request, nor the one that is left alone, nor one
    // that restarts.
    assert!(!is_within_limit(&mut lone.connect_to(&first.base_url())).await);
    assert_eq!(second.stop(), Some(0));
    assert!(!is_within_limit(&mut lone.connect_to(&first.base_url())).await);
    second.restart();
    for partner in [&partner, &lone] {
        assert!(!is_within_limit(&mut partner.connect_to(&second.base_url())).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_cannot_share_admit_their_part_and_share_it_later() {
    let [first, second] = start_two_nodes_with(&[]);
    let mut operator = Operator::of(&first);
    let mut at_first = add_partner(&mut operator, "vouchers", 10).await;
    let mut at_second = at_first.connect_to(&second.base_url());
    wait_for_limits(&mut at_second).await;
    let mut locking = ServiceDatabase::of(&first).await;
    let lock = "BEGIN; LOCK TABLE rate_limit_usage IN ACCESS EXCLUSIVE MODE";
    locking.run(lock.to_owned()).await;
    for client in [&mut at_first, &mut at_second] {
        let admitted = count_within_limit(std::slice::from_mut(client), 8).await;
        assert_eq!(admitted, 5, "half of the quota");
    }
    locking.run("COMMIT".to_owned()).await;
    for service in [&first, &second] {
        let mut operator = Operator::of(service);
        let all_shared = async || (uses(&mut operator, &at_first, "vouchers").await == [10]).then_some(());
        eventually(
            "the requests at both nodes to be shared",
            WAIT_TIMEOUT,
            all_shared,
        )
        .await;
    }
    for client in [&mut at_first, &mut at_second] {
        assert!(!is_within_limit(client).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn restarted_node_continues_its_windows() {
    let mut service = Instance::start_with(&[MASTER_KEY]);
    let mut operator = Operator::of(&service);
    let mut partner = add_partner(&mut operator, "vouchers", 5).await;
    assert_eq!(count_within_limit(std::slice::from_mut(&mut partner), 5).await, 5);
    assert_eq!(service.stop(), Some(0));
    service.restart();
    let mut partner = partner.connect_to(&service.base_url());
    assert!(!is_within_limit(&mut partner).await);
    let mut operator = Operator::of(&service);
    assert_eq!(uses(&mut operator, &partner, "vouchers").await, [5]);
}

#[tokio::test]
async fn ceiling_covers_all_credentials_and_is_never_below_their_quotas() {
    let mut operator = Operator::of(shared());
    let mut first = add_partner(&mut operator, "vouchers", 4).await;
    let credentials = format!("/admin/v1/partners/{}/credentials", first.partner_id);
    let path = format!("/admin/v1/partners/{}", first.partner_id);
    let ceiling =
        |quota: u32| json!({ "ceilings": { "vouchers": { "quota": quota, "window_s": WINDOW_S } } });

    let refused = operator
        .call_json(Method::PATCH, &path, ceiling(3).to_string())
        .await;
    let error = expect_error(&refused, 422, "VALIDATION_FAILED");
    assert_eq!(error["details"][0]["field"], "ceilings.vouchers");
    assert!(
        error["details"][0]["message"]
            .as_str()
            .unwrap()
            .contains("at least 4")
    );
    operator.patch_partner(&first, &ceiling(6)).await;

    assert_eq!(count_within_limit(std::slice::from_mut(&mut first), 6).await, 4);
    // A second credential raises the ceiling from 6 to 8.
    let issued = operator.send_json(Method::POST, &credentials, &json!({})).await;
    let mut second = first.with_credential(&issued);
    assert_eq!(count_within_limit(std::slice::from_mut(&mut second), 6).await, 4);
    // A credential in its place has a quota of its own, and nothing is left of the ceiling.
    operator
        .call(
            Method::DELETE,
            &format!(
                "/admin/v1/credentials/{}",
                issued["credential_id"].as_str().unwrap()
            ),
            "text/plain",
            "",
        )
        .await;
    let issued = operator.send_json(Method::POST, &credentials, &json!({})).await;
    let mut third = first.with_credential(&issued);
    let refused = third.get_codes("ord_0").await;
    let error = expect_error(&refused, 429, "RATE_LIMIT_EXCEEDED");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("at most 8 requests of class vouchers"),
        "{error}"
    );
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("all keys of the partner"),
        "{error}"
    );
    operator
        .patch_partner(&first, &json!({ "ceilings": { "vouchers": null } }))
        .await;
    assert_eq!(count_within_limit(std::slice::from_mut(&mut third), 6).await, 4);
    assert_eq!(operator.get(&path).await["ceilings"], json!({}));
}
