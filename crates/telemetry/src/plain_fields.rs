//! Fields of spans and events in a text log without colours: written as `tracing_subscriber` writes them,
//! without its check of each character of a text that needs no escape.
//!
//! Each request has a span, whose fields are written when it starts, whether or not a line is logged.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing_subscriber::field::{RecordFields, VisitOutput as _};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};

/// Writes fields as `name=value`.
pub(super) struct PlainFields;

impl<'writer> FormatFields<'writer> for PlainFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut visitor = PlainVisitor {
            writer,
            is_first: true,
            result: Ok(()),
        };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct PlainVisitor<'a> {
    writer: Writer<'a>,
    is_first: bool,
    result: fmt::Result,
}

impl PlainVisitor<'_> {
    fn write_plain(&mut self, name: &str, text: &str) -> fmt::Result {
        if !self.is_first {
            self.writer.write_char(' ')?;
        }
        for part in [name, "=\"", text, "\""] {
            self.writer.write_str(part)?;
        }
        Ok(())
    }

    fn write_default(&mut self, record: impl FnOnce(&mut DefaultVisitor<'_>)) {
        let mut visitor = DefaultVisitor::new(self.writer.by_ref(), self.is_first);
        record(&mut visitor);
        self.result = self.result.and(visitor.finish());
        self.is_first = false;
    }
}

impl Visit for PlainVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        // The message has no name, and raw names are written without their prefix.
        let is_named = field.name() != "message" && !field.name().starts_with("r#");
        if is_named && value.bytes().all(is_plain) {
            let written = self.write_plain(field.name(), value);
            self.result = self.result.and(written);
            self.is_first = false;
        } else {
            self.write_default(|visitor| visitor.record_str(field, value));
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.write_default(|visitor| visitor.record_error(field, value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.write_default(|visitor| visitor.record_debug(field, value));
    }
}

/// Whether a character needs no escape between quotation marks.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use tracing::{error_span, info};
    use tracing_subscriber::fmt::format::DefaultFields;
    use tracing_subscriber::fmt::{Layer, MakeWriter};
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::{Layer as _, Registry};

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Log {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    fn lines_with<F>(fields: F) -> String
    where
        F: for<'writer> FormatFields<'writer> + Send + Sync + 'static,
    {
        let log = Log::default();
        let layer = Layer::<Registry>::new()
            .with_writer(log.clone())
            .with_ansi(false)
            .without_time()
            .fmt_fields(fields);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer.boxed()), || {
            let error = std::io::Error::other("no room");
            let span = error_span!(
                "request",
                trace.id = "4bf92f3577b34da6a3ce929d0e0e4736",
                http.route = Some("/api/v1/orders"),
                later = tracing::field::Empty,
                r#type = "word",
            );
            let _entered = span.enter();
            span.record("later", "a \"quoted\" word");
            info!(first = "é\u{1b}[31m", count = 3, is = true, "said {}", "so");
            info!(error = &error as &dyn std::error::Error, reason = %"plain", other = ?["a"], "failed");
            info!(only = "", back = "\\ and\ttab", "end");
        });
        String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn lines_are_those_of_the_library() {
        let (ours, theirs) = (lines_with(PlainFields), lines_with(DefaultFields::new()));
        assert_eq!(ours, theirs);
        assert!(
            ours.contains(r#"trace.id="4bf92f3577b34da6a3ce929d0e0e4736""#),
            "{ours}"
        );
        assert_eq!(ours.lines().count(), 3, "{ours}");
    }
}
