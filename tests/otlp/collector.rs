//! Minimal OTLP/HTTP collector on loopback that records every request.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span as SentSpan;
use prost::Message as _;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Behavior {
    Accept,
    /// Responds 503.
    Reject,
    /// Reads the request and never responds.
    Hang,
}

/// Runs until the process exits.
pub(crate) struct Collector {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// A span with hexadecimal ids.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) attributes: BTreeMap<String, String>,
}

impl Collector {
    pub(crate) fn start(behavior: Behavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&bodies);
        std::thread::spawn(move || {
            let mut held_streams = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let body = read_body(&stream);
                recorded.lock().unwrap().push(body);
                match behavior {
                    Behavior::Accept => respond(&mut stream, "200 OK"),
                    Behavior::Reject => respond(&mut stream, "503 Service Unavailable"),
                    Behavior::Hang => held_streams.push(stream),
                }
            }
        });
        Self { address, bodies }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn has_requests(&self) -> bool {
        !self.bodies.lock().unwrap().is_empty()
    }

    /// Returns all received bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bodies.lock().unwrap().concat()
    }

    /// Returns the resource attributes of the exporting service.
    pub(crate) fn resource(&self) -> BTreeMap<String, String> {
        let requests = self.requests();
        let resource = requests[0].resource_spans[0].resource.clone();
        attributes_by_key(resource.unwrap().attributes)
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let resources = self
            .requests()
            .into_iter()
            .flat_map(|request| request.resource_spans);
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).map(Span::of).collect()
    }

    fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        let bodies = self.bodies.lock().unwrap();
        let decode = |body: &Vec<u8>| ExportTraceServiceRequest::decode(&body[..]).unwrap();
        bodies.iter().map(decode).collect()
    }
}

impl Span {
    fn of(sent: SentSpan) -> Self {
        assert!(sent.events.is_empty(), "log lines must not be exported: {sent:?}");
        assert!(sent.start_time_unix_nano <= sent.end_time_unix_nano, "{sent:?}");
        Self {
            trace: hex::encode(sent.trace_id),
            id: hex::encode(sent.span_id),
            parent: hex::encode(sent.parent_span_id),
            name: sent.name,
            attributes: attributes_by_key(sent.attributes),
        }
    }
}

fn attributes_by_key(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("unsupported attribute value: {other:?}"),
    };
    attributes
        .into_iter()
        .map(|attribute| (attribute.key, text(attribute.value)))
        .collect()
}

/// Reads a trace export request and returns its body.
fn read_body(stream: &TcpStream) -> Vec<u8> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(
        head.contains("\r\ncontent-type: application/x-protobuf\r\n"),
        "{head}"
    );
    assert!(head.contains("\r\nauthorization: basic ytpi\r\n"), "{head}");
    let (_, length) = head.split_once("content-length: ").unwrap();
    let length = length.split("\r\n").next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    body
}

fn respond(stream: &mut TcpStream, status: &str) {
    let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    // The exporter may have disconnected.
    drop(stream.write_all(response.as_bytes()));
}
