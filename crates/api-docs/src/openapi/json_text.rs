//! JSON text of documents and examples, with amounts as responses print them: `25.00` instead of `25.0`.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use super::wire_order::WireOrder;

/// Decimals of most currencies. The numbers with a fraction in our examples are amounts.
const DECIMALS: usize = 2;

/// Writes fractions with at least [`DECIMALS`]; everything else is up to the other formatter.
struct AmountFormatter<F>(F);

macro_rules! delegate {
    ($($method:ident($($argument:ident: $kind:ty),*);)*) => {$(
        fn $method<W: io::Write + ?Sized>(&mut self, writer: &mut W $(, $argument: $kind)*) -> io::Result<()> {
            self.0.$method(writer $(, $argument)*)
        }
    )*};
}

impl<F: Formatter> Formatter for AmountFormatter<F> {
    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let shortest = value.to_string();
        let decimals = shortest.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let decimals = decimals.max(DECIMALS);
        write!(writer, "{value:.decimals$}")
    }

    delegate! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }
}

/// Prints a document in one line.
pub fn compact(document: &Value) -> String {
    print(&WireOrder::of_document(document), CompactFormatter)
}

/// Prints a value in lines.
pub fn pretty(value: &impl Serialize) -> String {
    print(value, PrettyFormatter::new())
}

fn print(value: &impl Serialize, formatter: impl Formatter) -> String {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, AmountFormatter(formatter));
    // Writing to memory does not fail, and the keys of a JSON value are text.
    let written = value.serialize(&mut serializer);
    debug_assert!(written.is_ok(), "{written:?}");
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_have_two_decimals() {
        let value = json!({ "a": 25.0, "b": [0.125, 7], "c": {}, "d": -1.5 });
        assert_eq!(compact(&value), r#"{"a":25.00,"b":[0.125,7],"c":{},"d":-1.50}"#);
        assert_eq!(
            pretty(&value),
            "{\n  \"a\": 25.00,\n  \"b\": [\n    0.125,\n    7\n  ],\n  \"c\": {},\n  \"d\": -1.50\n}"
        );
    }
}
