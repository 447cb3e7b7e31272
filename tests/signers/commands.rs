//! The commands of the pages, as a reader copies them, and what the pages say comes back.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::wait::{WAIT_TIMEOUT, wait_until};
use crate::programs::{DOCS, DocsWorkspace};
use crate::service::{self, Instance, free_addresses};

/// The last blocks of the quick start, its appendix, start a service of one's own: the test has one already.
const APPENDIX: usize = 2;

/// The blocks of a page in one language, in their order.
fn code_blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("{DOCS}/{page}")).unwrap();
    let fence = format!("```{language}\n");
    let after = text.split(fence.as_str()).skip(1);
    after
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

/// The paths of all fields; what is in `metadata` is the partner's own.
fn collect_fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    for entry in value.as_array().into_iter().flatten() {
        collect_fields(entry, &format!("{path}[]"), found);
    }
    for (name, inside) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        if name != "metadata" {
            collect_fields(inside, &path, found);
        }
        found.insert(path);
    }
}

fn assert_same_fields(page: &str, shown: &str, real: &str) {
    let [shown, real] = [shown, real].map(|text| {
        let mut found = BTreeSet::new();
        collect_fields(&serde_json::from_str(text).unwrap(), "", &mut found);
        found
    });
    assert!(real.len() > 5, "{real:?}");
    assert_eq!(shown, real, "what {page} shows is not what comes");
}

fn run(place: &DocsWorkspace, commands: &str) -> String {
    run_at(service::shared(), place, commands)
}

fn run_at(service: &Instance, place: &DocsWorkspace, commands: &str) -> String {
    let base_url = service.base_url();
    let commands = commands.replace("https://sandbox.example.com/api/v1", &base_url);
    let variables = [("VOUCHSAFE_BASE_URL", base_url.as_str())];
    place.run_with("bash", &["-euo", "pipefail", "-c", &commands], &variables, "")
}

#[test]
fn the_quick_start_ends_with_a_code() {
    let place = DocsWorkspace::with_service(service::shared());
    std::fs::remove_file(place.path().join("partner.headers")).unwrap();
    let shown = code_blocks("quick-start.md", "sh");
    let (tour, appendix) = shown.split_at(shown.len() - APPENDIX);
    assert!(appendix[0].contains("./dev run"), "{appendix:?}");
    let printed = run(&place, &tour.concat());
    for expected in [
        r#""currency":"USD""#,
        "HTTP/1.1 201 Created",
        r#""status":"DELIVERED""#,
        "idempotent-replayed: true",
        "SANDBOX-SBX-INSTANT-2500-",
    ] {
        assert!(printed.contains(expected), "{expected}\n\nis not in\n\n{printed}");
    }
    let first = printed.find("HTTP/1.1 201 Created").unwrap();
    let replayed = printed.find("idempotent-replayed").unwrap();
    assert!(first < replayed, "{printed}");
    let codes = printed.lines().last().unwrap();
    let start = codes.rfind(r#"{"order_id""#).unwrap();
    assert_same_fields(
        "quick-start.md",
        &code_blocks("quick-start.md", "json")[0],
        &codes[start..],
    );
}

/// What of the points is passed here: codes in parts and limits take their minutes.
const EXPECTED_PASSED: [bool; 6] = [true, true, false, false, true, true];

#[test]
fn the_recipes_of_the_certification_pass_their_points() {
    // Of its own: whoever else tests an endpoint of the sandbox's partner decides its newest trial.
    let service = Instance::start();
    let place = DocsWorkspace::with_service(&service);
    let run = |commands: &str| run_at(&service, &place, commands);
    let shown = code_blocks("certification.md", "sh");
    let checklist = |printed: &str| {
        let line = printed.lines().last().unwrap();
        let list: Value = serde_json::from_str(&line[line.rfind(r#"{"partner_id""#).unwrap()..]).unwrap();
        let points = list["points"].as_array().unwrap().clone();
        points
            .into_iter()
            .map(|point| point["state"].clone())
            .collect::<Vec<_>>()
    };
    let [ask, begin, lost, wrong] = [&shown[0], &shown[1], &shown[2], &shown[3]];
    let port = free_addresses()[0].port().to_string();
    let receiver = shown[6].replace("9999", &port);
    let printed = run(&[begin.as_str(), lost, wrong, &receiver].concat());
    assert!(printed.contains("no response: repeating"), "{printed}");
    assert!(printed.contains("new: order.delivered evt_"), "{printed}");
    let asked = || {
        let states = checklist(&run(ask));
        let passed = states.iter().map(|state| state == "PASSED");
        passed.eq(EXPECTED_PASSED).then_some(())
    };
    wait_until("the points are passed", WAIT_TIMEOUT, asked);
    let shown = code_blocks("certification.md", "json");
    assert_same_fields("certification.md", &shown[0], &run(ask));
    let answer = printed
        .lines()
        .find(|line| line.contains("wrong_signature"))
        .unwrap();
    let answer = &answer[answer.find(r#"{"event_id""#).unwrap()..];
    assert_same_fields("certification.md", &shown[1], answer);
}

#[test]
fn a_signer_works_with_curl_as_signing_shows_it() {
    let place = DocsWorkspace::with_service(service::shared());
    let shown = code_blocks("signing.md", "sh");
    let piped = shown.iter().find(|block| block.contains("sign.py")).unwrap();
    let printed = run(&place, piped);
    assert!(printed.contains(r#""status":"DELIVERED""#), "{printed}");
    let order = code_blocks("orders.md", "json")
        .into_iter()
        .find(|block| block.contains("order_id"));
    assert_same_fields("orders.md", &order.unwrap(), &printed);
}
