//! Tests of scenario parsing and validation, with all files of `scenarios/`.

use super::*;

const SMALL: &str = r#"{
    "name": "small", "description": "?", "partners": 2,
    "skus": { "count": 4, "vouchers": 10, "popularity": { "zipf": 1.1 }, "scarce": { "every": 2, "vouchers": 1 } },
    "orders": [{ "weight": 1, "skus": 2, "quantity": 3 }],
    "requests": [{ "kind": "order", "weight": 9 }, { "kind": "duplicate", "weight": 1 }],
    "pace": { "open": { "connections": 8, "per_second": 100, "spacing": "poisson" } },
    "warm_up_s": 0, "seconds": 1
}"#;

fn parse_with(from: &str, to: &str) -> Result<Scenario, ScenarioError> {
    assert!(SMALL.contains(from), "{from} is not in the scenario");
    Scenario::parse(SMALL.replace(from, to).as_bytes())
}

#[test]
fn every_scenario_file_is_valid_and_named_after_its_scenario() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let scenario = Scenario::read(&path).unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        assert_eq!(path.file_stem().unwrap().to_str(), Some(scenario.name.as_str()));
        count += 1;
    }
    assert!(count >= 9, "only {count} scenarios");
}

#[test]
fn scenario_determines_seed_data() {
    let seed_data = Scenario::parse(SMALL.as_bytes()).unwrap().seed_data();
    let vouchers: Vec<_> = seed_data.skus.iter().map(|sku| sku.vouchers).collect();
    assert_eq!(vouchers, [10, 1, 10, 1]);
    assert_eq!(seed_data.skus[3].product_id, product_id(3));
    assert_eq!(seed_data.partners, 2);
}

#[test]
fn hash_covers_the_load_without_its_texts_and_times() {
    let hash = |from, to| parse_with(from, to).unwrap().hash();
    let small = Scenario::parse(SMALL.as_bytes()).unwrap().hash();
    assert_eq!(small.len(), 12);
    for (from, to) in [
        (r#""description": "?""#, r#""description": "other""#),
        (r#""seconds": 1"#, r#""seconds": 2"#),
        (r#""seconds": 1"#, r#""seconds": 1, "thresholds": ["p99 <= 5"]"#),
    ] {
        assert_eq!(hash(from, to), small, "{to}");
    }
    for (from, to) in [
        (r#""per_second": 100"#, r#""per_second": 101"#),
        (r#""vouchers": 10"#, r#""vouchers": 11"#),
        (r#""seconds": 1"#, r#""seconds": 1, "webhooks": true"#),
    ] {
        assert_ne!(hash(from, to), small, "{to}");
    }
}

#[test]
fn enough_for_sizes_stock_by_popularity() {
    let small = parse_with(
        r#""vouchers": 10, "popularity": { "zipf": 1.1 }"#,
        r#""vouchers": { "enough_for": 2000 }, "popularity": { "zipf": 1.0 }"#,
    );
    let seed_data = small.unwrap().seed_data();
    // Weights 1, 1/2, 1/3, 1/4 of 25/12: means 960, 480, 320 and 240 of 2,000 orders. Every second SKU is
    // scarce with one voucher.
    let vouchers: Vec<_> = seed_data.skus.iter().map(|sku| sku.vouchers).collect();
    assert_eq!(vouchers, [960 + 186 + 10, 1, 320 + 108 + 10, 1]);
}

#[test]
fn invalid_scenario_is_rejected() {
    for (from, to, message) in [
        (r#""partners": 2"#, r#""partners": 0"#, "partners must be"),
        (r#""skus": 2"#, r#""skus": 5"#, "1 to 100 SKUs"),
        (r#""quantity": 3"#, r#""quantity": 501"#, "1 to 1,000 vouchers"),
        (r#""quantity": 3"#, r#""quantity": 0"#, "1 to 1,000 vouchers"),
        (r#""seconds": 1"#, r#""seconds": 0"#, "seconds must be"),
        (
            r#""connections": 8"#,
            r#""connections": 0"#,
            "connections must be",
        ),
        (r#""every": 2"#, r#""every": 0"#, "scarce.every"),
        (
            r#""seconds": 1"#,
            r#""seconds": 1, "pauses": { "every_ms": 5, "for_ms": 0 }"#,
            "pauses.every_ms",
        ),
        (
            r#""seconds": 1"#,
            r#""seconds": 1, "replays": { "orders": 5, "seconds": 0 }"#,
            "replays.orders",
        ),
    ] {
        let error = parse_with(from, to).unwrap_err().to_string();
        assert!(error.contains(message), "{to}: {error}");
    }
    for (from, to) in [
        (r#""seconds": 1"#, r#""seconds": 1, "second": 1"#),
        (r#""seconds": 1"#, r#""seconds": 1, "thresholds": ["p99 = 50"]"#),
        (r#""vouchers": 10"#, r#""vouchers": { "enough": 10 }"#),
        ("duplicate", "duplicates"),
        ("poisson", "bursts"),
    ] {
        assert!(
            matches!(parse_with(from, to), Err(ScenarioError::Parse(_))),
            "{to}"
        );
    }
}
