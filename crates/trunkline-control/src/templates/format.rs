//! Numbers and times for readers.

/// `1234567` as `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `n thing` or `n things`.
pub(super) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number as u64))
}

/// How long something lasts, in its two largest units.
pub(super) fn span(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{minutes} min"),
        3_600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// How long a call took.
pub(super) fn latency(milliseconds: f64) -> String {
    match milliseconds {
        ms if ms < 1.0 => "<1 ms".to_owned(),
        ms if ms < 1_000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 => format!("{:.1} s", ms / 1_000.0),
        ms => format!("{:.1} min", ms / 60_000.0),
    }
}

/// Bytes in the unit that fits.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// The date and the time of an RFC 3339 timestamp, to the second.
pub(super) fn timestamp(time: &str) -> (String, String) {
    let (date, rest) = time.split_once('T').unwrap_or(("", time));
    (date.to_owned(), rest.chars().take(8).collect())
}

#[cfg(test)]
mod tests {
    use super::{count, latency, span, timestamp};

    #[test]
    fn numbers_are_grouped_and_rounded() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(span(59_999), "59 s");
        assert_eq!(span(90_061_000), "1 d 1 h");
        assert_eq!(latency(0.2), "<1 ms");
        assert_eq!(latency(1_234.0), "1.2 s");
        assert_eq!(
            timestamp("2026-11-17T18:55:30.123Z"),
            ("2026-11-17".to_owned(), "18:55:30".to_owned())
        );
    }
}
