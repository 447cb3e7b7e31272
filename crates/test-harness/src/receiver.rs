//! Webhook receiver: a real listener with configurable behavior that records every event.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use crate::wait::{WAIT_TIMEOUT, wait_until};

const POLL_INTERVAL: Duration = Duration::from_millis(5);

#[derive(Debug, Clone)]
pub enum Behavior {
    Status(u16),
    /// This status for the first event, 204 for all others.
    StatusOnce(u16),
    StatusWithHeaders(u16, String),
    DelayedOk(Duration),
    /// Responds after the behavior changes, according to the new one.
    HoldUntilChanged,
    NoResponse,
    Disconnect,
    InvalidHttp,
    /// 200 with ten megabytes.
    LargeBody,
    /// 200, then one byte of the body every 200 ms.
    SlowBody,
    /// 204; other statuses for a wrong signature and for a duplicate event.
    VerifySignature {
        secret: String,
        wrong_status: u16,
        duplicate_status: u16,
    },
}

impl Behavior {
    /// Returns the behavior for this event. `before` copies the earlier events, which are many, only if they
    /// are needed.
    fn resolve_for(self, event: &ReceivedEvent, before: impl Fn() -> Vec<ReceivedEvent>) -> Self {
        let (secret, wrong_status, duplicate_status) = match self {
            Self::StatusOnce(status) if before().is_empty() => return Self::Status(status),
            Self::StatusOnce(_) => return Self::Status(204),
            Self::VerifySignature {
                secret,
                wrong_status,
                duplicate_status,
            } => (secret, wrong_status, duplicate_status),
            behavior => return behavior,
        };
        let is_genuine = |one: &ReceivedEvent| one.signatures() == one.expected_signatures(&[&secret]);
        let is_same = |one: &&ReceivedEvent| one.event_id() == event.event_id();
        Self::Status(match is_genuine(event) {
            false => wrong_status,
            true if before().iter().filter(is_same).any(is_genuine) => duplicate_status,
            true => 204,
        })
    }
}

#[derive(Debug, Clone)]
pub struct ReceivedEvent {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body_text: String,
    pub received_at: Instant,
    /// The status of the response, once a behavior has decided it.
    pub response_status: Option<u16>,
}

impl ReceivedEvent {
    pub fn body(&self) -> Value {
        serde_json::from_str(&self.body_text).unwrap()
    }

    pub fn event(&self) -> String {
        self.body()["event"].as_str().unwrap().to_owned()
    }

    pub fn event_id(&self) -> String {
        self.body()["event_id"].as_str().unwrap().to_owned()
    }

    pub fn order_id(&self) -> String {
        self.body()["data"]["order_id"].as_str().unwrap().to_owned()
    }

    pub fn sequence(&self) -> u64 {
        self.body()["data"]["sequence"].as_u64().unwrap()
    }

    /// Asserts that both signature headers contain exactly the signatures of these secrets, in order.
    pub fn assert_signed(&self, secrets: &[&str]) {
        assert_eq!(self.headers["webhook-id"], self.event_id());
        assert_eq!(self.signatures(), self.expected_signatures(secrets));
    }

    /// Returns `webhook-signature` and `X-Signature` as received.
    pub fn signatures(&self) -> [String; 2] {
        ["webhook-signature", "x-signature"].map(|name| self.headers[name].clone())
    }

    /// Returns both headers as signed with these secrets, in order.
    pub fn expected_signatures(&self, secrets: &[&str]) -> [String; 2] {
        let header = |name: &str| self.headers[name].as_str();
        let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
        let mac = |secret: &str, text: String| {
            let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
            let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
            mac.update(text.as_bytes());
            mac.finalize().into_bytes()
        };
        let standard: Vec<_> = secrets
            .iter()
            .map(|secret| {
                let mac = mac(secret, format!("{id}.{timestamp}.{}", self.body_text));
                format!("v1,{}", STANDARD.encode(mac))
            })
            .collect();
        let x_signature: String = secrets
            .iter()
            .map(|secret| {
                let mac = mac(secret, format!("{timestamp}.{}", self.body_text));
                format!(",v1={}", hex::encode(mac))
            })
            .collect();
        [standard.join(" "), format!("t={timestamp}{x_signature}")]
    }
}

#[derive(Clone)]
pub struct Receiver {
    address: SocketAddr,
    behavior: Arc<Mutex<Behavior>>,
    received: Arc<Mutex<Vec<ReceivedEvent>>>,
}

impl Receiver {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            behavior: Arc::new(Mutex::new(Behavior::Status(204))),
            received: Arc::default(),
        };
        let x_signature = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let x_signature = x_signature.clone();
                std::thread::spawn(move || drop(x_signature.serve(stream)));
            }
        });
        receiver
    }

    pub fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    pub fn set_behavior(&self, behavior: Behavior) {
        *self.behavior.lock().unwrap() = behavior;
    }

    pub fn received(&self) -> Vec<ReceivedEvent> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until this many events have arrived.
    pub fn wait_for_events(&self, count: usize) -> Vec<ReceivedEvent> {
        let description = format!("{count} deliveries at {}", self.address);
        wait_until(&description, WAIT_TIMEOUT, || {
            let event = self.received();
            (event.len() >= count).then_some(event)
        })
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut writer = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        while let Some(event) = read_request(&mut reader)? {
            let before = {
                let mut all = self.received.lock().unwrap();
                all.push(event.clone());
                all.len() - 1
            };
            let behavior = self
                .current_behavior()
                .resolve_for(&event, || self.received().drain(..before).collect());
            if let Behavior::Status(status) = behavior {
                self.received.lock().unwrap()[before].response_status = Some(status);
            }
            if !respond(&mut writer, &behavior)? {
                break;
            }
        }
        Ok(())
    }

    fn current_behavior(&self) -> Behavior {
        loop {
            match self.behavior.lock().unwrap().clone() {
                Behavior::HoldUntilChanged => {}
                behavior => return behavior,
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<ReceivedEvent>> {
    let mut headers = BTreeMap::new();
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers["content-length"].parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(ReceivedEvent {
        path,
        headers,
        body_text: String::from_utf8(body).unwrap(),
        received_at: Instant::now(),
        response_status: None,
    }))
}

/// Returns whether the connection stays open.
fn respond(writer: &mut TcpStream, behavior: &Behavior) -> std::io::Result<bool> {
    match behavior {
        Behavior::Status(204) => writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?,
        Behavior::Status(status) => write_response(writer, *status, "")?,
        Behavior::StatusWithHeaders(status, lines) => write_response(writer, *status, lines)?,
        Behavior::DelayedOk(time) => {
            std::thread::sleep(*time);
            write_response(writer, 200, "")?;
        }
        // The connection stays open until the sender closes it.
        Behavior::NoResponse => {}
        Behavior::Disconnect => return Ok(false),
        Behavior::InvalidHttp => {
            writer.write_all(b"not an HTTP response\r\n\r\n")?;
            return Ok(false);
        }
        Behavior::LargeBody => {
            let size = 10 * 1_024 * 1_024;
            write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n")?;
            writer.write_all(&vec![b'x'; size])?;
        }
        Behavior::HoldUntilChanged | Behavior::StatusOnce(_) | Behavior::VerifySignature { .. } => {
            unreachable!("resolved to another behavior")
        }
        Behavior::SlowBody => {
            write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")?;
            for _ in 0..100 {
                writer.write_all(b"x")?;
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }
    Ok(true)
}

fn write_response(writer: &mut TcpStream, status: u16, lines: &str) -> std::io::Result<()> {
    write!(
        writer,
        "HTTP/1.1 {status} X\r\nContent-Length: 5\r\n{lines}\r\nheard"
    )
}
