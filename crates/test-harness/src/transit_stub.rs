//! Stub of HashiCorp Vault's transit engine: encrypts with a key of its own and checks token, path and
//! associated data.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// The policy of the token permits this key alone.
const KEY: &str = "vouchsafe";
const TOKEN: &str = "hvs.stub-token";

#[derive(Debug, Default)]
struct State {
    /// Plaintext and associated data of each ciphertext.
    ciphertexts: HashMap<String, [String; 2]>,
    is_sealed: bool,
}

/// A running stub; its threads end with the process.
pub struct TransitStub {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    directory: tempfile::TempDir,
}

impl TransitStub {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<State>>::default();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("token"), format!("{TOKEN}\n")).unwrap();
        let served = Arc::clone(&state);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                // The client may have left.
                drop(serve(&connection.unwrap(), &served));
            }
        });
        Self {
            address,
            state,
            directory,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn token_file(&self) -> PathBuf {
        self.directory.path().join("token")
    }

    /// Settings of a service that wraps with the stub's key, or has it loaded only.
    pub fn settings(&self, kms: &str) -> Vec<(String, String)> {
        [
            ("VOUCHSAFE_KMS", kms),
            ("VOUCHSAFE_VAULT_ADDR", &self.url()),
            ("VOUCHSAFE_VAULT_TOKEN_FILE", self.token_file().to_str().unwrap()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// Every request gets 503, as from a sealed Vault.
    pub fn seal(&self) {
        self.state.lock().unwrap().is_sealed = true;
    }

    /// Ends the effect of [`Self::seal`].
    pub fn unseal(&self) {
        self.state.lock().unwrap().is_sealed = false;
    }

    /// Number of values that were encrypted.
    pub fn encrypted(&self) -> usize {
        self.state.lock().unwrap().ciphertexts.len()
    }
}

fn serve(connection: &TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let is_post = line.starts_with("POST ");
    let (mut length, mut token) = (0, String::new());
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or_default(),
            "x-vault-token" => value.clone_into(&mut token),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let (status, response) = respond(&mut state.lock().unwrap(), is_post, &path, &token, &body);
    let text = response.to_string();
    write!(
        &*connection,
        "HTTP/1.1 {status} Stub\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}

fn respond(state: &mut State, is_post: bool, path: &str, token: &str, body: &Value) -> (u16, Value) {
    let refuse = |status: u16, error: &str| (status, json!({ "errors": [error] }));
    if state.is_sealed {
        return refuse(503, "Vault is sealed");
    }
    if token != TOKEN {
        return refuse(403, "permission denied");
    }
    let text = |name: &str| body[name].as_str().map(ToOwned::to_owned);
    let Some(route) = path.strip_prefix("/v1/transit/").filter(|_| is_post) else {
        return refuse(404, "no handler for route");
    };
    let Some(associated_data) = text("associated_data") else {
        return refuse(400, "no associated data");
    };
    match route.split_once('/') {
        Some((_, key)) if key != KEY => refuse(403, "1 error occurred:\n\t* permission denied\n\n"),
        Some(("encrypt", _)) => {
            let ciphertext = format!("vault:v1:{}", state.ciphertexts.len() + 1);
            let plaintext = text("plaintext").unwrap_or_default();
            state
                .ciphertexts
                .insert(ciphertext.clone(), [plaintext, associated_data]);
            (
                200,
                json!({ "request_id": "1", "data": { "ciphertext": ciphertext, "key_version": 1 } }),
            )
        }
        Some(("decrypt", _)) => {
            let found = state.ciphertexts.get(&text("ciphertext").unwrap_or_default());
            match found {
                Some([plaintext, of]) if *of == associated_data => (
                    200,
                    json!({ "request_id": "1", "data": { "plaintext": plaintext } }),
                ),
                _ => refuse(400, "cipher: message authentication failed"),
            }
        }
        _ => refuse(404, "unsupported path"),
    }
}
