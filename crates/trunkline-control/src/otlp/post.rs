//! Sends a document to a collector.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// How long a collector may take for each step.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The start of a response, with the status.
const MAX_HEAD: u64 = 4096;

/// The address of a collector.
#[derive(Clone)]
pub struct OtlpEndpoint {
    /// Host and port.
    authority: String,
    /// The path before that of the signal, without a slash at its end.
    path: String,
    /// Further headers, such as credentials.
    headers: Vec<(String, String)>,
}

impl fmt::Debug for OtlpEndpoint {
    /// Without headers, which may be credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

/// The address of a collector cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidEndpoint;

impl fmt::Display for InvalidEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the collector must have an address such as http://127.0.0.1:4318")
    }
}

impl std::error::Error for InvalidEndpoint {}

impl OtlpEndpoint {
    /// Reads the values of `OTEL_EXPORTER_OTLP_ENDPOINT` and `OTEL_EXPORTER_OTLP_HEADERS`.
    ///
    /// # Errors
    ///
    /// When the address is not one with `http://`.
    pub fn parse(address: &str, headers: &str) -> Result<Self, InvalidEndpoint> {
        let rest = address.trim().strip_prefix("http://").ok_or(InvalidEndpoint)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || authority.contains('@') || !is_plain(rest) {
            return Err(InvalidEndpoint);
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, it)| it.parse::<u16>().is_ok());
        let authority = if has_port { authority.to_owned() } else { format!("{authority}:4318") };
        let path = match path.trim_end_matches('/') {
            "" => String::new(),
            path => format!("/{path}"),
        };
        let pairs = headers.split(',').filter_map(|pair| pair.split_once('='));
        let is_header = |(name, value): &(&str, &str)| {
            !name.is_empty() && is_plain(name) && value.bytes().all(|it| (b' '..0x7f).contains(&it))
        };
        let headers = pairs.map(|(name, value)| (name.trim(), value.trim())).filter(is_header);
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(Self { authority, path, headers })
    }

    /// Sends a document, and waits for the response.
    pub(super) fn post(&self, path: &str, body: &str) -> io::Result<()> {
        let address = self.authority.to_socket_addrs()?.next();
        let address = address.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let mut head = format!(
            "POST {}{path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n",
            self.path,
            self.authority,
            body.len()
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
        let mut response = Vec::new();
        // A collector that closes the connection early has still responded.
        let _ = stream.take(MAX_HEAD).read_to_end(&mut response);
        let status = String::from_utf8_lossy(&response);
        match status.split(' ').nth(1).is_some_and(|status| status.starts_with('2')) {
            true => Ok(()),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_those_of_the_variables() {
        let parse = |address: &str| OtlpEndpoint::parse(address, "").map(|it| format!("{it:?}"));
        assert_eq!(parse("http://127.0.0.1:4318").unwrap(), "http://127.0.0.1:4318");
        assert_eq!(parse("http://collector/otlp/").unwrap(), "http://collector:4318/otlp");
        for wrong in ["", "https://example.com", "http://", "http://a@b", "http://a b", "4318"] {
            assert_eq!(parse(wrong), Err(InvalidEndpoint), "{wrong}");
        }
        let endpoint = OtlpEndpoint::parse("http://a", "key=value, other = x ,bad").unwrap();
        let expected = [("key", "value"), ("other", "x")];
        assert_eq!(endpoint.headers, expected.map(|(key, it)| (key.to_owned(), it.to_owned())));
        assert!(!format!("{endpoint:?}").contains("value"));
    }
}
