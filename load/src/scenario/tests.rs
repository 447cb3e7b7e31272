//! Are the files of `scenarios/` scenarios, and are others refused?

use super::*;

const SMALL: &str = r#"{
    "name": "small", "question": "?", "partners": 2,
    "skus": { "count": 4, "vouchers": 10, "popularity": { "zipf": 1.1 }, "scarce": { "every": 2, "vouchers": 1 } },
    "orders": [{ "weight": 1, "skus": 2, "quantity": 3 }],
    "requests": [{ "kind": "order", "weight": 9 }, { "kind": "duplicate", "weight": 1 }],
    "pace": { "open": { "connections": 8, "per_second": 100, "spacing": "poisson" } },
    "warm_up_s": 0, "seconds": 1
}"#;

fn with(from: &str, to: &str) -> Result<Scenario, ScenarioError> {
    assert!(SMALL.contains(from), "{from} is not in the scenario");
    Scenario::parse(SMALL.replace(from, to).as_bytes())
}

#[test]
fn every_file_is_a_scenario_of_its_name() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut seen = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let scenario = Scenario::read(&path).unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        assert_eq!(path.file_stem().unwrap().to_str(), Some(scenario.name.as_str()));
        seen += 1;
    }
    assert!(seen >= 9, "only {seen} scenarios");
}

#[test]
fn a_scenario_says_what_is_for_sale() {
    let furnishing = Scenario::parse(SMALL.as_bytes()).unwrap().seed_data();
    let vouchers: Vec<_> = furnishing.skus.iter().map(|sku| sku.vouchers).collect();
    assert_eq!(vouchers, [10, 1, 10, 1]);
    assert_eq!(furnishing.skus[3].product_id, product_id(3));
    assert_eq!(furnishing.partners, 2);
}

#[test]
fn there_is_enough_of_each_sku_by_its_popularity() {
    let small = with(
        r#""vouchers": 10, "popularity": { "zipf": 1.1 }"#,
        r#""vouchers": { "enough_for": 2000 }, "popularity": { "zipf": 1.0 }"#,
    );
    let furnishing = small.unwrap().seed_data();
    // 1, 1/2, 1/3, 1/4 of 25/12: 960, 480, 320 and 240 of two thousand; every second has one, as before.
    let vouchers: Vec<_> = furnishing.skus.iter().map(|sku| sku.vouchers).collect();
    assert_eq!(vouchers, [960 + 186 + 10, 1, 320 + 108 + 10, 1]);
}

#[test]
fn what_cannot_be_played_is_refused() {
    for (from, to, why) in [
        (r#""partners": 2"#, r#""partners": 0"#, "no partner"),
        (r#""skus": 2"#, r#""skus": 5"#, "more items"),
        (r#""quantity": 3"#, r#""quantity": 501"#, "too many vouchers"),
        (r#""quantity": 3"#, r#""quantity": 0"#, "or none"),
        (r#""seconds": 1"#, r#""seconds": 0"#, "nothing is measured"),
        (r#""connections": 8"#, r#""connections": 0"#, "no connection"),
        (r#""every": 2"#, r#""every": 0"#, "0th"),
        (
            r#""seconds": 1"#,
            r#""seconds": 1, "pauses": { "every_ms": 5, "for_ms": 0 }"#,
            "no length",
        ),
        (
            r#""seconds": 1"#,
            r#""seconds": 1, "replays": { "orders": 5, "seconds": 0 }"#,
            "nothing is replayed",
        ),
    ] {
        let refused = with(from, to).unwrap_err().to_string();
        assert!(refused.contains(why), "{to}: {refused}");
    }
    for (from, to) in [
        (r#""seconds": 1"#, r#""seconds": 1, "second": 1"#),
        (r#""vouchers": 10"#, r#""vouchers": { "enough": 10 }"#),
        ("duplicate", "duplicates"),
        ("poisson", "bursts"),
    ] {
        assert!(matches!(with(from, to), Err(ScenarioError::Parse(_))), "{to}");
    }
}
