//! Rotation of the master key and re-encryption of codes by commands, while two nodes sell.

use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, Executor as _};
use std::process::{Command, Output};
use vouchsafe_test_harness::{
    Database, Instance, Operator, Partner, Sale, TransitStub, WAIT_TIMEOUT, eventually, expect_success,
    id_of, program, scratch_directory, text_of,
};

use crate::metrics::scrape;
use crate::multi_node::wait_for_status;

type Settings = Vec<(String, String)>;

fn master_keys(current: &str, previous: Option<&str>) -> Settings {
    let mut settings = vec![("VOUCHSAFE_MASTER_KEY".to_owned(), current.repeat(32))];
    settings.extend(previous.map(|key| ("VOUCHSAFE_MASTER_KEY_PREVIOUS".to_owned(), key.repeat(32))));
    settings
}

struct Deployment {
    database: Database,
    directory: tempfile::TempDir,
    nodes: Vec<Instance>,
}

impl Deployment {
    async fn start(settings: &Settings) -> Self {
        let mut deployment = Self {
            database: Database::create().await,
            directory: scratch_directory(),
            nodes: Vec::new(),
        };
        for number in 0..2 {
            let node = deployment.start_node(number, settings);
            deployment.nodes.push(node);
        }
        deployment
    }

    fn start_node(&self, number: usize, settings: &Settings) -> Instance {
        let url = self.database.options().to_url_lossy().to_string();
        let mut all = vec![("DATABASE_URL", url.as_str())];
        all.extend(
            settings
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        let mut node = Instance::new(&self.directory.path().join(format!("node-{number}")), &all);
        node.restart();
        node
    }

    /// Restarts node after node; the other one sells meanwhile.
    async fn restart_with(&mut self, settings: &Settings, partner: &Partner, sale: &Sale) {
        for number in 0..2 {
            assert_eq!(self.nodes[number].stop(), Some(0));
            let mut other = partner.connect_to(&self.nodes[1 - number].base_url());
            expect_success(&other.order(sale, 1).await, 201);
            self.nodes[number] = self.start_node(number, settings);
        }
    }

    /// Waits until all nodes know the partner and the product.
    async fn wait_until_sold_by_all(&self, partner: &Partner, sale: &Sale) {
        for node in &self.nodes {
            let mut at_node = partner.connect_to(&node.base_url());
            wait_for_status(&mut at_node, 200, "/wallets").await;
            wait_for_status(&mut at_node, 200, &format!("/products/{}", sale.product_id)).await;
        }
    }

    fn keys(&self, arguments: &[&str], settings: &Settings) -> Output {
        let mut command = Command::new(program());
        command.arg("keys").args(arguments);
        command
            .arg("--data-dir")
            .arg(self.directory.path())
            .env("DATABASE_URL", self.database.options().to_url_lossy().to_string())
            .envs(settings.iter().map(|(name, value)| (name, value)));
        command.output().unwrap()
    }

    fn keys_ok(&self, arguments: &[&str], settings: &Settings) -> Value {
        let output = self.keys(&[arguments, &["--json"]].concat(), settings);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn wrapped_by(&self) -> Vec<Value> {
        let report = self.keys_ok(&["list"], &Settings::new());
        let keys = report["data_keys"].as_array().unwrap().iter();
        keys.map(|key| key["wrapped_by"].clone()).collect()
    }
}

/// Buys a voucher at each node and returns the codes as each node shows those of the other.
async fn buy_and_read(deployment: &Deployment, partner: &Partner, sale: &Sale) -> Vec<(String, String)> {
    let mut codes = Vec::new();
    for number in 0..2 {
        let mut seller = partner.connect_to(&deployment.nodes[number].base_url());
        let order_id = id_of(&expect_success(&seller.order(sale, 1).await, 201));
        let mut reader = partner.connect_to(&deployment.nodes[1 - number].base_url());
        let read = reader.get_codes(&order_id).await;
        codes.push((order_id, text_of(&read).to_owned()));
        expect_success(&read, 200);
    }
    codes
}

async fn expect_codes(deployment: &Deployment, partner: &Partner, codes: &[(String, String)]) {
    for node in &deployment.nodes {
        let mut reader = partner.connect_to(&node.base_url());
        for (order_id, expected) in codes {
            assert_eq!(text_of(&reader.get_codes(order_id).await), expected);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn master_key_is_rotated_to_another_and_to_vault_while_nodes_sell() {
    let stub = TransitStub::start();
    let old = master_keys("ab", None);
    let mut deployment = Deployment::start(&old).await;
    let mut operator = Operator::of(&deployment.nodes[0]);
    let sale = operator.add_stocked_product(20).await;
    let partner = operator.add_partner("1000").await;
    deployment.wait_until_sold_by_all(&partner, &sale).await;
    let codes = buy_and_read(&deployment, &partner, &sale).await;

    let with_vault = [stub.settings("vault-transit"), master_keys("cd", None)].concat();
    for (both, after) in [
        (master_keys("cd", Some("ab")), master_keys("cd", None)),
        (with_vault, stub.settings("vault-transit")),
    ] {
        let before = deployment.wrapped_by();
        let refused = deployment.keys(&["rotate"], &both);
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{stderr}");
        assert_eq!(stderr.matches("node-").count(), 2, "{stderr}");
        assert_eq!(deployment.wrapped_by(), before);
        deployment.restart_with(&both, &partner, &sale).await;
        deployment.keys_ok(&["rotate"], &both);
        assert!(deployment.wrapped_by().iter().all(|key| !before.contains(key)));
        expect_codes(&deployment, &partner, &codes).await;
        deployment.restart_with(&after, &partner, &sale).await;
        expect_codes(&deployment, &partner, &codes).await;
        buy_and_read(&deployment, &partner, &sale).await;
    }
    let id = format!("vault-transit:{}/transit/vouchsafe", stub.url());
    assert_eq!(deployment.wrapped_by(), [id.clone(), id]);
    let mut stopped = Instance::new(
        &deployment.directory.path().join("other"),
        &[(
            "DATABASE_URL",
            deployment.database.options().to_url_lossy().as_str(),
        )],
    );
    stopped.spawn();
    assert_eq!(stopped.wait_for_exit(), Some(1));
    let log = stopped.log();
    assert_eq!(log.matches("which is not loaded").count(), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn key_that_failed_at_the_start_is_reported_once_it_works() {
    let stub = TransitStub::start();
    stub.seal();
    let mut deployment = Deployment {
        database: Database::create().await,
        directory: scratch_directory(),
        nodes: Vec::new(),
    };
    let settings = [stub.settings("local"), master_keys("ab", None)].concat();
    deployment.nodes.push(deployment.start_node(0, &settings));
    let vault = json!(format!("vault-transit:{}/transit/vouchsafe", stub.url()));
    let reported = || {
        let report = deployment.keys_ok(&["list"], &Settings::new());
        report["nodes"][0]["wrapping_keys"].as_array().unwrap().clone()
    };
    assert_eq!(reported().len(), 1);
    assert!(!reported().contains(&vault));
    let node = &deployment.nodes[0];
    assert!(scrape(node).await.contains("vouchsafe_wrapping_keys_failing 1\n"));
    stub.unseal();
    let recovered = eventually("the key in Vault to be reported", WAIT_TIMEOUT, async || {
        reported().contains(&vault).then_some(())
    });
    recovered.await;
    assert!(scrape(node).await.contains("vouchsafe_wrapping_keys_failing 0\n"));
    assert!(node.log().contains("wrapping key works again"), "{}", node.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_encrypted_again_while_nodes_sell() {
    let settings = master_keys("ab", None);
    let deployment = Deployment::start(&settings).await;
    let mut operator = Operator::of(&deployment.nodes[0]);
    let sale = operator.add_stocked_product(30).await;
    let partner = operator.add_partner("1000").await;
    deployment.wait_until_sold_by_all(&partner, &sale).await;
    let mut codes = buy_and_read(&deployment, &partner, &sale).await;
    let refused = deployment.keys(&["create"], &master_keys("ef", None));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("VOUCHSAFE_MASTER_KEY_PREVIOUS"), "{stderr}");
    let first = deployment.keys_ok(&["create"], &settings);
    let key_id = first["key_id"].as_i64().unwrap();
    let mut connection = deployment.database.connect().await;
    // The nodes had the time to learn the key.
    let age = "UPDATE data_keys SET created_at = created_at - interval '2 minutes'";
    connection.execute(age).await.unwrap();
    let requested = deployment.keys_ok(&["reencrypt"], &settings);
    assert_eq!(requested["reencryption"]["key_id"], key_id, "{requested}");
    let codes_of = |report: &Value, is_new: bool| -> i64 {
        let keys = report["data_keys"].as_array().unwrap().iter();
        let found = keys.filter(|key| (key["key_id"] == key_id) == is_new);
        found.filter_map(|key| key["codes"].as_i64()).sum()
    };
    let reencrypted = async || {
        if codes.len() < 20 {
            codes.extend(buy_and_read(&deployment, &partner, &sale).await);
        }
        let report = deployment.keys_ok(&["list", "--codes"], &settings);
        (codes_of(&report, false) == 0).then_some(report)
    };
    let report = eventually("all codes under the new key", WAIT_TIMEOUT, reencrypted).await;
    assert!(codes_of(&report, true) >= 30, "{report}");
    expect_codes(&deployment, &partner, &codes).await;
    // Both nodes know the new key by now, or load it for the voucher.
    operator.restock(&sale, 2, "").await;
    buy_and_read(&deployment, &partner, &sale).await;

    let age = "UPDATE data_keys SET created_at = created_at - interval '366 days'";
    connection.execute(age).await.unwrap();
    let keys = deployment.wrapped_by().len();
    eventually("the next key after a year", WAIT_TIMEOUT, async || {
        (deployment.wrapped_by().len() > keys).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_sell_while_vault_is_down_and_start_once_it_is_back() {
    let stub = TransitStub::start();
    let settings = stub.settings("vault-transit");
    let mut deployment = Deployment::start(&settings).await;
    let mut operator = Operator::of(&deployment.nodes[0]);
    let sale = operator.add_stocked_product(20).await;
    let partner = operator.add_partner("1000").await;
    deployment.wait_until_sold_by_all(&partner, &sale).await;
    let mut codes = buy_and_read(&deployment, &partner, &sale).await;

    stub.seal();
    codes.extend(buy_and_read(&deployment, &partner, &sale).await);
    operator.restock(&sale, 5, "").await;
    let keys = deployment.wrapped_by();
    for action in ["rotate", "create"] {
        let refused = deployment.keys(&[action], &settings);
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("unseal it"), "{stderr}");
    }
    assert_eq!(deployment.wrapped_by(), keys);
    assert_eq!(deployment.nodes[1].stop(), Some(0));
    deployment.nodes[1].spawn();
    assert_eq!(deployment.nodes[1].wait_for_exit(), Some(1));
    assert!(deployment.nodes[1].log().contains("unseal it"));

    stub.unseal();
    deployment.nodes[1].restart();
    deployment.wait_until_sold_by_all(&partner, &sale).await;
    expect_codes(&deployment, &partner, &codes).await;
    buy_and_read(&deployment, &partner, &sale).await;
}
