//! Why an order took its time.

use std::time::Duration;

use uuid::Uuid;

/// The trace of the request that placed an order, and the durations of the steps before its commit, in
/// microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderTrace {
    pub trace_id: Uuid,
    /// From the head of the request to its first decision: authentication, body, idempotency key.
    pub admission_us: i32,
    /// The decisions: price, holds of money and vouchers, and commits that refused an earlier decision.
    pub holds_us: i32,
    /// The wait of the record for the commit that wrote it. Zero until then.
    pub queue_us: i32,
}

impl OrderTrace {
    /// As the database has it: one value, because each parameter of a commit costs instructions. The trace
    /// ID, then the durations in the order of the fields, big-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 28] {
        let mut bytes = [0; 28];
        let durations = [self.admission_us, self.holds_us, self.queue_us];
        let durations = durations.into_iter().flat_map(i32::to_be_bytes);
        let values = self.trace_id.into_bytes().into_iter().chain(durations);
        for (byte, value) in bytes.iter_mut().zip(values) {
            *byte = value;
        }
        bytes
    }

    /// `None` if the bytes are not those of a trace.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (trace_id, durations) = bytes.split_first_chunk::<16>()?;
        let (durations, []) = durations.as_chunks::<4>() else {
            return None;
        };
        let [admission_us, holds_us, queue_us] = durations else {
            return None;
        };
        Some(Self {
            trace_id: Uuid::from_bytes(*trace_id),
            admission_us: i32::from_be_bytes(*admission_us),
            holds_us: i32::from_be_bytes(*holds_us),
            queue_us: i32::from_be_bytes(*queue_us),
        })
    }

    /// From the head of the request until the commit began.
    #[must_use]
    pub const fn total_us(self) -> i32 {
        self.admission_us
            .saturating_add(self.holds_us)
            .saturating_add(self.queue_us)
    }
}

/// Parses a trace ID: 32 hexadecimal digits, alone or in a W3C `traceparent`.
#[must_use]
pub fn parse_trace_id(text: &str) -> Option<Uuid> {
    let parts: Vec<&str> = text.split('-').collect();
    let (trace_id, others) = match *parts {
        [trace_id] => (trace_id, None),
        [version, trace_id, span_id, flags] => (trace_id, Some([(version, 2), (span_id, 16), (flags, 2)])),
        _ => return None,
    };
    let is_hex =
        |(part, digits): (&str, usize)| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
    let is_trace = is_hex((trace_id, 32)) && others.is_none_or(|others| others.into_iter().all(is_hex));
    is_trace.then(|| Uuid::try_parse(trace_id).ok()).flatten()
}

/// Microseconds; at most 35 minutes.
#[must_use]
pub fn to_micros(duration: Duration) -> i32 {
    i32::try_from(duration.as_micros()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_is_read_as_it_was_written() {
        let trace = OrderTrace {
            trace_id: Uuid::from_u128(0x0198_c1f2_a3b4_7c5d_8e9f_0a1b_2c3d_4e60),
            admission_us: 412,
            holds_us: 0,
            queue_us: i32::MAX,
        };
        let bytes = trace.to_bytes();
        assert_eq!(OrderTrace::from_bytes(&bytes), Some(trace));
        for wrong in [&[][..], &bytes[..27], &[bytes.as_slice(), &[0]].concat()] {
            assert_eq!(OrderTrace::from_bytes(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn trace_id_is_parsed_alone_and_in_a_traceparent() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        let expected = Uuid::try_parse(id).ok();
        for text in [id, &id.to_uppercase(), &format!("00-{id}-00f067aa0ba902b7-01")] {
            assert_eq!(parse_trace_id(text), expected, "{text}");
        }
        for text in [
            "",
            &id[1..],
            &format!("00-{id}"),
            &format!("00-{id}-00f067aa0ba902b7-0g"),
            &format!("00-{id}-00f067aa0ba902b7-01-"),
            "4bf92f35-77b3-4da6-a3ce-929d0e0e4736",
        ] {
            assert_eq!(parse_trace_id(text), None, "{text}");
        }
    }
}
