//! A receiver of webhooks: a real listener that answers as it is told and remembers what it heard.

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

use super::patience::{SOON, until};

/// How often one that holds its answer looks whether it was told.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// How it answers.
#[derive(Debug, Clone)]
pub(crate) enum Mood {
    Says(u16),
    /// With this status and these header lines.
    Adds(u16, String),
    /// With 200, after so long.
    After(Duration),
    /// As it is told, and not before.
    Holds,
    Hangs,
    /// By closing the connection.
    Resets,
    /// With something that is no HTTP.
    Mumbles,
    /// With 200 and ten megabytes.
    Floods,
    /// With 200, and then a byte of its body each 200 ms.
    Drips,
    /// With 204; with these statuses where the signature is not of this secret, and where it has taken the event before.
    Verifies { secret: String, wrong: u16, known: u16 },
}

impl Mood {
    /// How it answers this one. Those that it heard before are copied for who asks for them alone: they are many.
    fn towards(self, heard: &Heard, before: impl FnOnce() -> Vec<Heard>) -> Self {
        let Self::Verifies { secret, wrong, known } = self else {
            return self;
        };
        let genuine = |one: &Heard| one.signatures() == one.signed_with(&[&secret]);
        let same = |one: &&Heard| one.event_id() == heard.event_id();
        Self::Says(match genuine(heard) {
            false => wrong,
            true if before().iter().filter(same).any(genuine) => known,
            true => 204,
        })
    }
}

/// One request, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
    pub(crate) at: Instant,
}

impl Heard {
    pub(crate) fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    pub(crate) fn event(&self) -> String {
        self.body()["event"].as_str().unwrap().to_owned()
    }

    pub(crate) fn event_id(&self) -> String {
        self.body()["event_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn order_id(&self) -> String {
        self.body()["data"]["order_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.body()["data"]["sequence"].as_u64().unwrap()
    }

    /// Both signatures, of each of these secrets in turn, and of no other.
    pub(crate) fn assert_signed(&self, secrets: &[&str]) {
        assert_eq!(self.headers["webhook-id"], self.event_id());
        assert_eq!(self.signatures(), self.signed_with(secrets));
    }

    /// `webhook-signature` and `X-Signature`, as they came.
    pub(crate) fn signatures(&self) -> [String; 2] {
        ["webhook-signature", "x-signature"].map(|name| self.headers[name].clone())
    }

    /// The same, as they are when each of these secrets signs in turn.
    pub(crate) fn signed_with(&self, secrets: &[&str]) -> [String; 2] {
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
                let mac = mac(secret, format!("{id}.{timestamp}.{}", self.text));
                format!("v1,{}", STANDARD.encode(mac))
            })
            .collect();
        let ours: String = secrets
            .iter()
            .map(|secret| {
                let mac = mac(secret, format!("{timestamp}.{}", self.text));
                format!(",v1={}", hex::encode(mac))
            })
            .collect();
        [standard.join(" "), format!("t={timestamp}{ours}")]
    }
}

/// A listener on this machine.
#[derive(Clone)]
pub(crate) struct Receiver {
    address: SocketAddr,
    mood: Arc<Mutex<Mood>>,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            mood: Arc::new(Mutex::new(Mood::Says(204))),
            heard: Arc::default(),
        };
        let ours = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let ours = ours.clone();
                std::thread::spawn(move || drop(ours.serve(stream)));
            }
        });
        receiver
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    pub(crate) fn is(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits until it has heard so many.
    pub(crate) fn hears(&self, count: usize) -> Vec<Heard> {
        let what = format!("{count} deliveries are heard at {}", self.address);
        until(&what, SOON, || {
            let heard = self.heard();
            (heard.len() >= count).then_some(heard)
        })
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut writer = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        while let Some(heard) = read(&mut reader)? {
            let before = {
                let mut all = self.heard.lock().unwrap();
                all.push(heard.clone());
                all.len() - 1
            };
            let mood = self
                .decides()
                .towards(&heard, || self.heard().drain(..before).collect());
            if !answer(&mut writer, &mood)? {
                break;
            }
        }
        Ok(())
    }

    /// What it answers now, once it has been told.
    fn decides(&self) -> Mood {
        loop {
            match self.mood.lock().unwrap().clone() {
                Mood::Holds => {}
                mood => return mood,
            }
            std::thread::sleep(LOOK_AGAIN_AFTER);
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Heard>> {
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
    Ok(Some(Heard {
        path,
        headers,
        text: String::from_utf8(body).unwrap(),
        at: Instant::now(),
    }))
}

/// Says whether the connection goes on.
fn answer(writer: &mut TcpStream, mood: &Mood) -> std::io::Result<bool> {
    match mood {
        Mood::Says(204) => writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?,
        Mood::Says(status) => say(writer, *status, "")?,
        Mood::Adds(status, lines) => say(writer, *status, lines)?,
        Mood::After(time) => {
            std::thread::sleep(*time);
            say(writer, 200, "")?;
        }
        Mood::Holds | Mood::Hangs => std::thread::sleep(Duration::from_secs(20)),
        Mood::Resets => return Ok(false),
        Mood::Mumbles => {
            writer.write_all(b"good day to you\r\n\r\n")?;
            return Ok(false);
        }
        Mood::Floods => {
            let size = 10 * 1_024 * 1_024;
            write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n")?;
            writer.write_all(&vec![b'x'; size])?;
        }
        Mood::Verifies { .. } => unreachable!("it has made up its mind"),
        Mood::Drips => {
            write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")?;
            for _ in 0..100 {
                writer.write_all(b"x")?;
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }
    Ok(true)
}

fn say(writer: &mut TcpStream, status: u16, lines: &str) -> std::io::Result<()> {
    write!(
        writer,
        "HTTP/1.1 {status} X\r\nContent-Length: 5\r\n{lines}\r\nheard"
    )
}
