//! Rejected lines of stock imports: one code with several PINs, URLs that are no web addresses; vendor and
//! batch of an import.

use hyper::Method;
use serde_json::json;

use crate::imports::{import, import_counts, stock_level};
use vouchsafe_test_harness::{Operator, expect_error, expect_success, json_of, shared, unique};

/// A file with repetitions of a code, and the code with other PINs.
const ONE_CODE: &str = "code,pin\nSAME,1\nSAME,1\n SAME , 1 \nSAME,2\nSAME,\n";

#[tokio::test]
async fn code_with_another_pin_is_a_rejected_line_of_the_brand() {
    let mut operator = Operator::of(shared());
    let brand = unique("brand");
    let one = operator
        .add_product_with(json!({ "brand": brand }), "25", 0)
        .await;
    let other = operator
        .add_product_with(json!({ "brand": brand.to_uppercase() }), "25", 0)
        .await;
    let other_brand = operator.add_stocked_product(0).await;
    for (sale, expected) in [(&one, (1, 2, 2)), (&other, (0, 3, 2)), (&other_brand, (1, 2, 2))] {
        let response = import(&mut operator, sale, "text/csv", ONE_CODE).await;
        assert_eq!(import_counts(&response), expected);
        let reason = "the brand has this code with another PIN, and the product's code_identity is `code`";
        let rejected = json!([{ "line": 5, "reason": reason }, { "line": 6, "reason": reason }]);
        assert_eq!(json_of(&response)["rejected"], rejected);
    }
    assert_eq!(stock_level(&mut operator, &one).await["loaded"], 1);
}

#[tokio::test]
async fn code_and_pin_identity_admits_a_code_with_several_pins() {
    let mut operator = Operator::of(shared());
    let (brand, pairs) = (unique("brand"), json!("code_and_pin"));
    let pairs = operator
        .add_product_with(json!({ "brand": brand, "code_identity": pairs }), "25", 0)
        .await;
    let codes = operator
        .add_product_with(json!({ "brand": brand }), "25", 0)
        .await;
    assert_eq!(
        import_counts(&import(&mut operator, &pairs, "text/csv", ONE_CODE).await),
        (3, 2, 0)
    );
    assert_eq!(
        import_counts(&import(&mut operator, &pairs, "text/csv", ONE_CODE).await),
        (0, 5, 0)
    );
    // The product that is imported decides.
    assert_eq!(
        import_counts(&import(&mut operator, &codes, "text/csv", "code,pin\nSAME,2\nSAME,9\n").await),
        (0, 1, 1)
    );
}

#[tokio::test]
async fn url_that_is_no_web_address_is_a_rejected_line() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let file = "code,url\nU-1,https://x.test/1\nU-2,javascript:alert(1)\nU-3,https:///x\nU-4,\n";
    let response = import(&mut operator, &sale, "text/csv", file).await;
    assert_eq!(import_counts(&response), (2, 0, 2));
    let reason = "url is not an http or https URL with a host";
    let rejected = json!([{ "line": 3, "reason": reason }, { "line": 4, "reason": reason }]);
    assert_eq!(json_of(&response)["rejected"], rejected);
}

#[tokio::test]
async fn import_names_its_vendor_and_batch() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let path = format!("/admin/v1/stock?product_id={}&denomination=25", sale.product_id);
    let named = format!("{path}&vendor=mock&batch=delivery%204711");
    let report = operator
        .call(Method::POST, &named, "text/csv", "code\nB-1\n")
        .await;
    let report = expect_success(&report, 200);
    assert_eq!(
        (&report["vendor"], &report["batch"]),
        (&json!("mock"), &json!("delivery 4711"))
    );
    let audit = format!("action=stock.import&subject={}/2500", sale.product_id);
    let entry = operator.audit_entries(&audit).await.remove(0);
    assert_eq!(entry["after"]["batch"], "delivery 4711", "{entry}");
    let report = operator
        .call(Method::POST, &path, "text/csv", "code\nB-2\n")
        .await;
    let report = expect_success(&report, 200);
    assert_eq!(report["vendor"], "by-hand", "the product's vendor");
    assert!(report["batch"].as_str().unwrap().starts_with("20"), "{report}");
    for (query, field) in [
        ("vendor=nobody", "vendor"),
        ("batch=", "batch"),
        ("batch=a%0Ab", "batch"),
        (&format!("batch={}", "x".repeat(129)), "batch"),
    ] {
        let response = operator
            .call(
                Method::POST,
                &format!("{path}&{query}"),
                "text/csv",
                "code\nB-3\n",
            )
            .await;
        let error = expect_error(&response, 422, "VALIDATION_FAILED");
        assert_eq!(error["details"][0]["field"], field, "{error}");
    }
}
