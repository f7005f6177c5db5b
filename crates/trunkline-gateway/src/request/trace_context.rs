//! W3C trace context: the trace and span that a request belongs to.

use std::fmt;

use ring::rand::{SecureRandom as _, SystemRandom};

/// The key in `_meta`, and the name of the HTTP header.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// A span of a trace, as `traceparent` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span.
    pub span_id: [u8; 8],
    /// Whether the caller records the trace.
    pub is_sampled: bool,
}

impl TraceContext {
    /// Reads a `traceparent`; `None` if it is invalid. Later versions may have more parts.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let [version, trace_id, span_id, flags] = [(); 4].map(|()| parts.next());
        let version = bytes::<1>(version?)?;
        let context = Self {
            trace_id: bytes(trace_id?)?,
            span_id: bytes(span_id?)?,
            is_sampled: bytes::<1>(flags?)?[0] & 1 == 1,
        };
        let has_more = parts.next().is_some();
        let is_valid = version[0] != 0xff
            && !(version[0] == 0 && has_more)
            && context.trace_id != [0; 16]
            && context.span_id != [0; 8];
        is_valid.then_some(context)
    }

    /// A new trace, which is recorded.
    pub fn root() -> Self {
        Self { trace_id: random(), span_id: random(), is_sampled: true }
    }

    /// Another span of the same trace.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { span_id: random(), ..*self }
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(f, "00-{}-{}-{flags:02x}", hex(&self.trace_id), hex(&self.span_id))
    }
}

/// Bytes as lowercase hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exactly as many bytes, in lowercase hexadecimal digits.
fn bytes<const COUNT: usize>(text: &str) -> Option<[u8; COUNT]> {
    let is_lowercase = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * COUNT || !text.bytes().all(is_lowercase) {
        return None;
    }
    let mut bytes = [0; COUNT];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn random<const COUNT: usize>() -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    SystemRandom::new().fill(&mut bytes).expect("invariant: the system has randomness");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_and_written() {
        let context = TraceContext::parse(VALID).unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), VALID);
        let child = context.child();
        assert_eq!(child.trace_id, context.trace_id);
        assert_ne!(child.span_id, context.span_id);
        assert_ne!(TraceContext::root().trace_id, TraceContext::root().trace_id);
        // A later version may have more parts.
        let later = VALID.replacen("00", "01", 1) + "-more";
        assert_eq!(TraceContext::parse(&later), Some(context));
    }

    #[test]
    fn an_invalid_context_is_none() {
        for text in [
            "",
            "00",
            &VALID.to_uppercase(),
            &format!("{VALID}-more"),
            &VALID.replacen("00", "ff", 1),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
    }
}
