//! Stock imports: CSV and NDJSON, duplicates, invalid lines, interrupted bodies, memory use.

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use vouchsafe_api_client::ApiResponse;

use vouchsafe_test_harness::raw_http::{exchange, request_head};
use vouchsafe_test_harness::{
    Instance, Operator, Sale, ServiceDatabase, WAIT_TIMEOUT, eventually, expect_error, expect_success,
    json_of, shared, text_of, unique,
};

pub(crate) async fn import(
    operator: &mut Operator,
    sale: &Sale,
    content_type: &str,
    body: impl Into<bytes::Bytes>,
) -> ApiResponse {
    let path = format!(
        "/admin/v1/stock?product_id={}&denomination={}",
        sale.product_id, sale.denomination
    );
    operator.call(Method::POST, &path, content_type, body).await
}

pub(crate) async fn stock_level(operator: &mut Operator, sale: &Sale) -> Value {
    operator
        .get(&format!("/admin/v1/stock?product_id={}", sale.product_id))
        .await["data"][0]
        .clone()
}

fn lines(prefix: &str, count: usize) -> String {
    (0..count).map(|n| format!("{prefix}-{n},{n:04}\n")).collect()
}

pub(crate) fn import_counts(response: &ApiResponse) -> (u64, u64, u64) {
    let report = expect_success(response, 200);
    let count = |name: &str| report[name].as_u64().unwrap();
    (count("imported"), count("duplicates"), count("rejected_count"))
}

#[tokio::test]
async fn large_import_in_several_commits_is_imported_once() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let file = format!("code,pin\n{}", lines(&unique("C"), 25_000));
    assert_eq!(
        import_counts(&import(&mut operator, &sale, "text/csv", file.clone()).await),
        (25_000, 0, 0)
    );
    assert_eq!(
        import_counts(&import(&mut operator, &sale, "text/csv", file).await),
        (0, 25_000, 0)
    );
    let level = stock_level(&mut operator, &sale).await;
    assert_eq!(
        (&level["loaded"], &level["free"], &level["sold"]),
        (&json!(25_000), &json!(25_000), &json!(0))
    );
    assert_eq!(
        (&level["denomination"], &level["currency"]),
        (&json!(25.0), &json!("USD"))
    );
    let mut database = ServiceDatabase::of(shared()).await;
    let chunks = "SELECT count(*) FROM chunks WHERE product_id = $1";
    assert_eq!(
        database.count(chunks, &sale.product_id).await,
        3 * 20,
        "20 chunks per commit of at most 10,000 vouchers"
    );
    let trail = operator
        .get(&format!(
            "/admin/v1/audit?action=stock.import&subject={}/2500",
            sale.product_id
        ))
        .await;
    let imported: Vec<_> = trail["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["after"]["imported"].clone())
        .collect();
    assert_eq!(
        imported,
        [json!(5_001), json!(10_000), json!(9_999)],
        "one audit entry per commit, newest first"
    );
}

#[tokio::test]
async fn concurrent_imports_of_same_file_import_each_code_once() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let prefix = unique("C");
    let (ascending, mut descending): (String, Vec<String>) = (
        lines(&prefix, 12_000),
        lines(&prefix, 12_000).lines().map(str::to_owned).collect(),
    );
    descending.reverse();
    let files = [
        format!("code,pin\n{ascending}"),
        format!("code,pin\n{}", descending.join("\n")),
    ];
    let imports = files.map(|file| {
        let (mut operator, sale) = (Operator::of(shared()), sale.clone());
        async move { import_counts(&import(&mut operator, &sale, "text/csv", file).await) }
    });
    let [first, second] = <[_; 2]>::try_from(futures_util::future::join_all(imports).await).unwrap();
    assert_eq!(
        (first.0 + second.0, first.1 + second.1),
        (12_000, 12_000),
        "{first:?} {second:?}"
    );
    assert_eq!(stock_level(&mut operator, &sale).await["free"], json!(12_000));
}

#[tokio::test]
async fn invalid_lines_are_reported_and_others_imported() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let canary = "CNRY-4711";
    let file = format!(
        "expiry,code,pin\n2099-01-31,{canary}-1,1\n2020-01-31,{canary}-2,1\nsoon,{canary}-3,1\n,{canary}-4\n\n,\"{canary}-5,1\n,,1\n,{canary}-6,\n"
    );
    let response = import(&mut operator, &sale, "text/csv; charset=utf-8", file).await;
    assert_eq!(import_counts(&response), (2, 0, 5));
    let rejected = json!([
        { "line": 3, "reason": "expired on 2020-01-31" },
        { "line": 4, "reason": "expiry is not a date as YYYY-MM-DD" },
        { "line": 5, "reason": "expected 3 fields, found 2" },
        { "line": 7, "reason": "a quote is not closed on its line" },
        { "line": 8, "reason": "the code is missing" },
    ]);
    assert_eq!(json_of(&response)["rejected"], rejected);
    assert!(!text_of(&response).contains("CNRY") && !shared().log().contains("CNRY"));
    assert_eq!(
        stock_level(&mut operator, &sale).await["next_expiry"],
        "2099-01-31"
    );
    let many = format!("code\n{}", "a,b\n".repeat(1_500));
    let response = import(&mut operator, &sale, "text/csv", many).await;
    assert_eq!(
        (
            import_counts(&response),
            json_of(&response)["rejected"].as_array().unwrap().len()
        ),
        ((0, 0, 1_500), 1_000)
    );
}

#[tokio::test]
async fn ndjson_import_is_supported() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let code = unique("C");
    let file = format!(
        "{{\"code\":\"{code}\",\"pin\":\"1\",\"url\":\"https://x.test\",\"expiry\":\"2099-01-31\"}}\n{{\"code\":\"{code}\",\"shoe\":1}}\nnonsense\n"
    );
    assert_eq!(
        import_counts(&import(&mut operator, &sale, "application/x-ndjson", file).await),
        (1, 0, 2)
    );
    let mut partner = operator.add_partner("25").await;
    let order = expect_success(&partner.order(&sale, 1).await, 201);
    let codes = expect_success(&partner.get_codes(order["order_id"].as_str().unwrap()).await, 200);
    let parts = json!([
        { "type": "code", "value": code }, { "type": "pin", "value": "1" }, { "type": "url", "value": "https://x.test/" },
    ]);
    assert_eq!(
        (&codes["data"][0]["credentials"], &codes["data"][0]["expiry"]),
        (&parts, &json!("2099-01-31"))
    );
}

#[tokio::test]
async fn invalid_import_is_rejected_entirely() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    for (content_type, body, status, code) in [
        ("text/csv", "", 422, "VALIDATION_FAILED"),
        ("text/csv", "card number\nCD-34\n", 422, "VALIDATION_FAILED"),
        ("text/csv", "code,shoe\nA,1\n", 422, "VALIDATION_FAILED"),
        ("text/csv", "pin\n1\n", 422, "VALIDATION_FAILED"),
        ("application/json", "{}", 415, "UNSUPPORTED_MEDIA_TYPE"),
    ] {
        let response = import(&mut operator, &sale, content_type, body).await;
        expect_error(&response, status, code);
    }
    let id = &sale.product_id;
    for (query, status, code) in [
        (String::new(), 422, "VALIDATION_FAILED"),
        (format!("product_id={id}"), 422, "VALIDATION_FAILED"),
        (
            format!("product_id={id}&denomination=25&shoe=1"),
            422,
            "VALIDATION_FAILED",
        ),
        (
            format!("product_id={id}&denomination=25&denomination=25"),
            422,
            "VALIDATION_FAILED",
        ),
        (
            format!("product_id={id}&denomination=25.001"),
            422,
            "VALIDATION_FAILED",
        ),
        (
            format!("product_id={id}&denomination=26"),
            422,
            "DENOMINATION_NOT_ALLOWED",
        ),
        (
            "product_id=nothing&denomination=25".to_owned(),
            404,
            "PRODUCT_NOT_FOUND",
        ),
    ] {
        let path = format!("/admin/v1/stock?{query}");
        expect_error(
            &operator.call(Method::POST, &path, "text/csv", "code\nA\n").await,
            status,
            code,
        );
    }
    assert_eq!(stock_level(&mut operator, &sale).await, Value::Null);
}

/// Returns the address and the request head of an import.
fn raw_import(sale: &Sale, framing: (&'static str, &str)) -> (std::net::SocketAddr, Vec<u8>) {
    let service = shared();
    let token = service.operator_token();
    let mut headers = HeaderMap::new();
    let mut set = |name, value: &str| {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )
    };
    set("authorization", &format!("Bearer {}", token.trim()));
    set("content-type", "text/csv");
    set(framing.0, framing.1);
    let line = format!(
        "POST /admin/v1/stock?product_id={}&denomination=25",
        sale.product_id
    );
    (
        service.admin_url().trim_start_matches("http://").parse().unwrap(),
        request_head(&line, &headers),
    )
}

#[tokio::test]
async fn import_body_idle_for_10_s_times_out() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let (address, mut request) = raw_import(&sale, ("content-length", "1000"));
    request.extend(b"code\nWHOLE\nHALF");
    let started = std::time::Instant::now();
    let response = exchange(address, &request).await;
    expect_error(&response, 408, "REQUEST_TIMEOUT");
    assert!(started.elapsed().as_secs() >= 9, "{:?}", started.elapsed());
    assert_eq!(
        stock_level(&mut operator, &sale).await,
        Value::Null,
        "an incomplete block must not be imported"
    );
}

#[tokio::test]
async fn interrupted_import_keeps_committed_lines_only() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let (address, mut request) = raw_import(&sale, ("content-length", "100000000"));
    let prefix = unique("C");
    let complete: String = (0..10_000).map(|n| format!("{prefix}-{n}\n")).collect();
    request.extend(format!("code\n{complete}{prefix}-HALF").into_bytes());
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(&request).await.unwrap();
    let committed = eventually("the first block to be committed", WAIT_TIMEOUT, async || {
        let level = stock_level(&mut operator, &sale).await;
        level["loaded"].as_u64()
    });
    assert_eq!(
        committed.await,
        9_999,
        "a block has the header and 9,999 vouchers"
    );
    drop(connection);
    let resumed = format!("code\n{complete}{prefix}-HALFWAY\n");
    assert_eq!(
        import_counts(&import(&mut operator, &sale, "text/csv", resumed).await),
        (2, 9_999, 0)
    );
}

#[tokio::test]
async fn compressed_import_is_rejected() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(0).await;
    let (address, mut request) = raw_import(&sale, ("content-encoding", "gzip"));
    request.truncate(request.len() - 2);
    request.extend(b"content-length: 5\r\n\r\nhello");
    expect_error(&exchange(address, &request).await, 415, "UNSUPPORTED_MEDIA_TYPE");
}

#[tokio::test]
async fn imported_stock_is_sold_immediately_earliest_expiry_first() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(1).await;
    let mut partner = operator.add_partner("1000").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    expect_error(&partner.order(&sale, 1).await, 409, "INSUFFICIENT_INVENTORY");
    operator.restock(&sale, 2, "2098-06-30").await;
    let order = expect_success(&partner.order(&sale, 1).await, 201);
    assert_eq!(order["vouchers"][0]["expiry"], "2098-06-30");
    operator.restock(&sale, 1, "2097-06-30").await;
    let order = expect_success(&partner.order(&sale, 2).await, 201);
    let expiries: Vec<_> = order["vouchers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["expiry"].clone())
        .collect();
    assert_eq!(expiries, ["2097-06-30", "2098-06-30"]);
}

/// Resident memory of the service. MiB.
async fn resident_mib(operator: &mut Operator) -> u64 {
    let response = operator.call(Method::GET, "/metrics", "text/plain", "").await;
    let line = text_of(&response)
        .lines()
        .find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    line.unwrap().parse::<u64>().unwrap() >> 20
}

#[tokio::test]
async fn large_import_uses_bounded_memory() {
    let service = Instance::start();
    let (mut operator, mut observer) = (Operator::of(&service), Operator::of(&service));
    let sale = operator.add_stocked_product(0).await;
    let file = format!("code,pin\n{}", lines(&unique("C"), 150_000));
    // Warm up first: threads, connections and allocator pages stay allocated after any import.
    let block = format!("code,pin\n{}", lines(&unique("B"), 10_000));
    import(&mut operator, &sale, "text/csv", block).await;
    let before = resident_mib(&mut observer).await;
    let mut peak = before;
    let observing = async {
        loop {
            peak = peak.max(resident_mib(&mut observer).await);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let imported = tokio::select! {
        response = import(&mut operator, &sale, "text/csv", file) => import_counts(&response),
        () = observing => unreachable!("the observer never completes"),
    };
    assert_eq!(imported, (150_000, 0, 0));
    assert!(peak - before < 64, "from {before} MiB to {peak} MiB");
}

#[tokio::test]
async fn stock_levels_show_sales_of_seven_days_and_days_left() {
    let mut operator = Operator::of(shared());
    let sale = operator.add_stocked_product(10).await;
    let mut partner = operator.add_partner("1000").await;
    let path = format!("/admin/v1/stock?product_id={}", sale.product_id);
    let mut expect = async |sold: u64, days_left: Value| {
        let level = operator.get(&path).await["data"][0].clone();
        assert_eq!(
            (&level["sold_7d"], &level["days_left"]),
            (&json!(sold), &days_left),
            "{level}"
        );
    };
    expect(0, Value::Null).await;
    expect_success(&partner.order(&sale, 4).await, 201);
    // Six are left, and four were sold on the first day.
    expect(4, json!(1.5)).await;
}
