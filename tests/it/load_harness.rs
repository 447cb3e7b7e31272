//! Load harness against the real program: deploys, seeds, loads, audits and stops it. The harness's own tests
//! use a stub.

use vouchsafe_load::deployment::TestDeployment;
use vouchsafe_load::scenario_run::{GeneratorOptions, run_scenario};
use vouchsafe_load::traffic::scenario::Scenario;
use vouchsafe_test_harness::program;

/// Several partners and SKUs, some of which run out, orders of several items, duplicates, all kinds of reads,
/// and a Postgres that pauses now and then.
const FULL_SCENARIO: &str = r#"{
    "name": "everything", "description": "Does the harness work?", "partners": 3,
    "skus": { "count": 4, "vouchers": 300, "popularity": { "zipf": 1.0 }, "scarce": { "every": 4, "vouchers": 2 } },
    "orders": [{ "weight": 3, "skus": 1, "quantity": 1 }, { "weight": 1, "skus": 2, "quantity": 3 }],
    "requests": [
        { "kind": "order", "weight": 5 }, { "kind": "duplicate", "weight": 2 }, { "kind": "read", "weight": 2 },
        { "kind": "codes", "weight": 1 }, { "kind": "wallets", "weight": 1 }, { "kind": "feed", "weight": 1 }
    ],
    "pace": { "open": { "connections": 32, "per_second": 100, "spacing": "poisson" } },
    "warm_up_s": 0, "seconds": 1,
    "webhooks": true,
    "consoles": { "count": 2, "idle_actors": 5 },
    "pauses": { "every_ms": 200, "for_ms": 100 },
    "refusals": ["409 INSUFFICIENT_INVENTORY", "503 SERVICE_UNAVAILABLE"]
}"#;

#[test]
fn full_scenario_passes_every_audit_check_and_cleans_up() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut deployment = runtime.block_on(TestDeployment::start(program())).unwrap();
    let options = GeneratorOptions {
        seed: 1,
        threads: 2,
        samples: 20,
        has_stacks: false,
    };
    let data_dir = deployment.data_dir();
    let scenario = Scenario::parse(FULL_SCENARIO.as_bytes()).unwrap();
    let report = run_scenario(&scenario, &mut deployment, options).unwrap();
    let checks = report.audit.checks.iter();
    // A slow machine may serve consoles too few events; that they were served at all is the promise of other
    // tests.
    assert!(
        checks
            .clone()
            .all(|check| check.passed || check.name == "consoles served"),
        "{report}"
    );
    assert!(report.follow_up.consoles.is_some(), "{report}");
    let checks: Vec<_> = checks.map(|check| check.name).collect();
    let expected = [
        "unknown outcomes settled",
        "orders acknowledged",
        "vouchers unique",
        "read back",
        "replayed",
        "wallet",
        "listed",
        "expected refusals",
        "stable responses",
        "consoles served",
        "webhook events delivered",
        "stock",
        "database invariants",
    ];
    assert_eq!(checks, expected);
    let conditions = &report.conditions;
    assert!(conditions.database.as_ref().unwrap().is_durable(), "{report}");
    let program = conditions.program.as_deref().unwrap();
    assert!(
        program.starts_with("vouchsafe ") && conditions.disk_sync_ms > Some(0.0),
        "{report}"
    );
    assert!(report.scenario.as_ref().unwrap().pauses > Some(0), "{report}");
    assert_eq!(report.metrics.series.windows.len(), 1, "{report}");
    deployment.stop().unwrap();
    assert!(!data_dir.exists(), "{} was not removed", data_dir.display());
}
