//! Commands of the documentation pages: run as written, and their output matches the pages.

use std::collections::BTreeSet;

use serde_json::Value;

use super::programs::{DOCS, DocsWorkspace};
use vouchsafe_test_harness::{Instance, WAIT_TIMEOUT, free_address, shared, wait_until};

/// Trailing blocks of the quick start to skip: its appendix starts a service, and the test already has one.
const APPENDIX: usize = 2;

/// Returns the code blocks of a page in one language.
fn code_blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("{DOCS}/{page}")).unwrap();
    let fence = format!("```{language}\n");
    let after = text.split(fence.as_str()).skip(1);
    after
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

/// Collects the paths of all fields, except below `metadata`.
fn collect_fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    for entry in value.as_array().into_iter().flatten() {
        collect_fields(entry, &format!("{path}[]"), found);
    }
    for (name, child) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        if name != "metadata" {
            collect_fields(child, &path, found);
        }
        found.insert(path);
    }
}

fn assert_same_fields(page: &str, documented: &str, real: &str) {
    let [documented, real] = [documented, real].map(|text| {
        let mut found = BTreeSet::new();
        collect_fields(&serde_json::from_str(text).unwrap(), "", &mut found);
        found
    });
    assert!(real.len() > 5, "{real:?}");
    assert_eq!(
        documented, real,
        "the fields shown in {page} differ from the response"
    );
}

fn run(workspace: &DocsWorkspace, commands: &str) -> String {
    run_at(shared(), workspace, commands)
}

fn run_at(service: &Instance, workspace: &DocsWorkspace, commands: &str) -> String {
    let base_url = service.base_url();
    let commands = commands.replace("https://sandbox.example.com/api/v1", &base_url);
    let variables = [("VOUCHSAFE_BASE_URL", base_url.as_str())];
    workspace.run_with("bash", &["-euo", "pipefail", "-c", &commands], &variables, "")
}

#[test]
fn quick_start_commands_end_with_code() {
    let workspace = DocsWorkspace::with_service(shared());
    std::fs::remove_file(workspace.path().join("partner.headers")).unwrap();
    let documented = code_blocks("quick-start.md", "sh");
    let (tour, appendix) = documented.split_at(documented.len() - APPENDIX);
    assert!(appendix[0].contains("./dev run"), "{appendix:?}");
    let printed = run(&workspace, &tour.concat());
    for expected in [
        r#""currency":"USD""#,
        "HTTP/1.1 201 Created",
        r#""status":"DELIVERED""#,
        "idempotent-replayed: true",
        "SANDBOX-SBX-INSTANT-2500-",
        r#""delivered":2,"pending":1,"failed":0"#,
        r#""delivered":2,"pending":0,"failed":1"#,
    ] {
        assert!(
            printed.contains(expected),
            "{expected}\n\nis missing in\n\n{printed}"
        );
    }
    let first = printed.find("HTTP/1.1 201 Created").unwrap();
    let replayed = printed.find("idempotent-replayed").unwrap();
    assert!(first < replayed, "{printed}");
    let within_codes = printed.rfind(r#""credentials""#).unwrap();
    let start = printed[..within_codes].rfind(r#"{"order_id""#).unwrap();
    let mut from_codes = serde_json::Deserializer::from_str(&printed[start..]).into_iter::<Value>();
    assert_same_fields(
        "quick-start.md",
        &code_blocks("quick-start.md", "json")[0],
        &from_codes.next().unwrap().unwrap().to_string(),
    );
}

/// Checks passed by the recipes; those for partial codes and limits would take minutes.
const EXPECTED_PASSED: [bool; 6] = [true, true, false, false, true, true];

#[test]
fn certification_recipes_pass_their_checks() {
    // A separate service: other tests also send endpoint tests as the sandbox partner.
    let service = Instance::start();
    let workspace = DocsWorkspace::with_service(&service);
    let run = |commands: &str| run_at(&service, &workspace, commands);
    let documented = code_blocks("certification.md", "sh");
    let checklist = |printed: &str| {
        let line = printed.lines().last().unwrap();
        let list: Value = serde_json::from_str(&line[line.rfind(r#"{"partner_id""#).unwrap()..]).unwrap();
        let points = list["checks"].as_array().unwrap().clone();
        points
            .into_iter()
            .map(|point| point["state"].clone())
            .collect::<Vec<_>>()
    };
    let [read_checklist, setup, lost_response, wrong_signature] =
        [&documented[0], &documented[1], &documented[2], &documented[3]];
    let port = free_address().port().to_string();
    let receiver = documented[6].replace("9999", &port);
    let printed = run(&[setup.as_str(), lost_response, wrong_signature, &receiver].concat());
    assert!(printed.contains("no response: repeating"), "{printed}");
    assert!(printed.contains("new: order.delivered evt_"), "{printed}");
    let poll = || {
        let states = checklist(&run(read_checklist));
        let passed = states.iter().map(|state| state == "PASSED");
        passed.eq(EXPECTED_PASSED).then_some(())
    };
    wait_until("the checks to pass", WAIT_TIMEOUT, poll);
    let documented = code_blocks("certification.md", "json");
    assert_same_fields("certification.md", &documented[0], &run(read_checklist));
    let response = printed
        .lines()
        .find(|line| line.contains("wrong_signature"))
        .unwrap();
    let response = &response[response.find(r#"{"event_id""#).unwrap()..];
    assert_same_fields("certification.md", &documented[1], response);
}

#[test]
fn documented_curl_signer_places_order() {
    let workspace = DocsWorkspace::with_service(shared());
    let documented = code_blocks("signing.md", "sh");
    let command = documented.iter().find(|block| block.contains("sign.py")).unwrap();
    let printed = run(&workspace, command);
    assert!(printed.contains(r#""status":"DELIVERED""#), "{printed}");
    let order = code_blocks("orders.md", "json")
        .into_iter()
        .find(|block| block.contains("order_id"));
    assert_same_fields("orders.md", &order.unwrap(), &printed);
}
