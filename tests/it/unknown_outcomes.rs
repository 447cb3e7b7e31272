//! Changes by operators whose commit the database does not confirm.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hyper::Method;
use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Executor as _};
use tempfile::TempDir;
use vouchsafe_test_harness::{Database, Instance, Operator, expect_error, expect_success};

/// Ends the connection during each commit with an audit entry.
const LOSE_CONNECTIONS: &str = "
    CREATE FUNCTION lose_connection() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        PERFORM pg_terminate_backend(pg_backend_pid());
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER lose_connection AFTER INSERT ON audit_log DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION lose_connection()";

#[tokio::test(flavor = "multi_thread")]
async fn operator_learns_that_an_unconfirmed_change_may_have_been_made() {
    let database = Database::create().await;
    let url = database.options().to_url_lossy().to_string();
    let service = Instance::start_with(&[("DATABASE_URL", url.as_str())]);
    let mut operator = Operator::of(&service);
    let mut connection = database.connect().await;
    let category = json!({ "name": "Cards" }).to_string();
    let put = "/admin/v1/categories/cards";
    connection.execute(LOSE_CONNECTIONS).await.unwrap();
    let response = operator.call_json(Method::PUT, put, category.clone()).await;
    let error = expect_error(&response, 500, "OUTCOME_UNKNOWN");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("GET /admin/v1/audit"), "{message}");

    // A statement that fails writes nothing.
    let refuse =
        "DROP TRIGGER lose_connection ON audit_log; ALTER TABLE categories ADD CHECK (name <> 'Cards')";
    connection.execute(refuse).await.unwrap();
    let response = operator.call_json(Method::PUT, put, category.clone()).await;
    expect_error(&response, 503, "SERVICE_UNAVAILABLE");
    connection
        .execute("ALTER TABLE categories DROP CONSTRAINT categories_name_check")
        .await
        .unwrap();
    expect_success(&operator.call_json(Method::PUT, put, category).await, 201);
    assert_eq!(operator.audit_entries("subject=cards").await.len(), 1);
    drop(service);
    database.remove().await;
}

/// The answer to COMMIT does not reach the client. A background job of the service commits on other
/// connections.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

const CONNECTION_OF_OPERATORS: &[u8] = b"vouchsafe operators";

/// A socket in front of the server's.
struct LossyProxy {
    directory: TempDir,
    /// Lose the answer to the next COMMIT for an operator.
    is_armed: Arc<AtomicBool>,
}

impl LossyProxy {
    fn open(server: &PgConnectOptions) -> Self {
        let socket = format!(".s.PGSQL.{}", server.get_port());
        let directory = TempDir::with_prefix("vs").unwrap();
        let listener = UnixListener::bind(directory.path().join(&socket)).unwrap();
        let server = server.get_socket().unwrap().join(socket);
        let is_armed = Arc::<AtomicBool>::default();
        let armed = Arc::clone(&is_armed);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&server).unwrap());
                let is_lost = Arc::<AtomicBool>::default();
                let ends = [client.try_clone().unwrap(), server.try_clone().unwrap()];
                let (armed, lost) = (Arc::clone(&armed), Arc::clone(&is_lost));
                thread::spawn(move || relay_requests(client, server, &armed, &lost));
                let [client, server] = ends;
                thread::spawn(move || relay_answers(server, client, &is_lost));
            }
        });
        Self { directory, is_armed }
    }

    fn url(&self, server: &PgConnectOptions) -> String {
        let options = server.clone().socket(self.directory.path());
        options.to_url_lossy().to_string()
    }

    fn lose_next_answer(&self) {
        self.is_armed.store(true, Ordering::SeqCst);
    }
}

fn relay_requests(
    mut client: UnixStream,
    mut server: UnixStream,
    is_armed: &AtomicBool,
    is_lost: &AtomicBool,
) {
    let mut is_of_operators = false;
    let mut buffer = vec![0; 65_536];
    while let Some(chunk) = read(&mut client, &mut buffer) {
        is_of_operators |= chunk
            .windows(CONNECTION_OF_OPERATORS.len())
            .any(|window| window == CONNECTION_OF_OPERATORS);
        if is_of_operators && chunk == COMMIT && is_armed.swap(false, Ordering::SeqCst) {
            is_lost.store(true, Ordering::SeqCst);
        }
        if server.write_all(chunk).is_err() {
            break;
        }
    }
    // The other end has closed it already.
    drop(server.shutdown(Shutdown::Both));
}

fn relay_answers(mut server: UnixStream, mut client: UnixStream, is_lost: &AtomicBool) {
    let mut buffer = vec![0; 65_536];
    while let Some(chunk) = read(&mut server, &mut buffer) {
        if is_lost.load(Ordering::SeqCst) || client.write_all(chunk).is_err() {
            break;
        }
    }
    drop(client.shutdown(Shutdown::Both));
}

fn read<'a>(stream: &mut UnixStream, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let length = stream.read(buffer).ok().filter(|length| *length > 0)?;
    Some(&buffer[..length])
}

#[tokio::test(flavor = "multi_thread")]
async fn change_whose_confirmation_is_lost_is_made_and_can_be_repeated_if_it_has_a_name() {
    let database = Database::create().await;
    let proxy = LossyProxy::open(&database.options());
    let url = proxy.url(&database.options());
    let service = Instance::start_with(&[("DATABASE_URL", url.as_str())]);
    let mut operator = Operator::of(&service);
    let partner = operator.add_partner("0").await;
    let product = json!({
        "name": "Card", "brand": "Card", "category_id": "cards", "vendor": "by-mail", "currency": "USD", "countries": ["US"],
        "denominations": ["25"], "expiry_policy": { "type": "NONE" }, "redemption": { "instructions": "", "terms": "" },
        "route": "stock",
    });
    for (path, subject, body) in [
        ("/admin/v1/categories/cards", "cards", json!({ "name": "Cards" })),
        (
            "/admin/v1/vendors/by-mail",
            "by-mail",
            json!({ "adapter": "manual" }),
        ),
        ("/admin/v1/products/card", "card", product),
    ] {
        proxy.lose_next_answer();
        let lost = operator.call_json(Method::PUT, path, body.to_string()).await;
        expect_error(&lost, 500, "OUTCOME_UNKNOWN");
        let entries = operator.audit_entries(&format!("subject={subject}")).await;
        assert_eq!(entries.len(), 1, "{path} is committed: {entries:?}");
        let repeated = operator.call_json(Method::PUT, path, body.to_string()).await;
        expect_success(&repeated, 200);
    }

    let credentials = format!("/admin/v1/partners/{}/credentials", partner.partner_id);
    let count = async |operator: &mut Operator| {
        let listed = operator.get(&credentials).await;
        listed["data"].as_array().unwrap().len()
    };
    let before = count(&mut operator).await;
    proxy.lose_next_answer();
    let lost = operator.call_json(Method::POST, &credentials, "{}").await;
    expect_error(&lost, 500, "OUTCOME_UNKNOWN");
    assert_eq!(
        count(&mut operator).await,
        before + 1,
        "a repeated request would issue another"
    );
    drop(service);
    database.remove().await;
}
