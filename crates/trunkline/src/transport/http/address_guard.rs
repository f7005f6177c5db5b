//! Decides which URLs and addresses may be reached when a server names them: an HTTPS URL with a
//! public address. A server could otherwise have this process read a cloud's metadata service, or
//! services of the local network (server-side request forgery).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::url::origin;
use crate::error::{Error, ErrorKind};

/// Hint for an address that no setting admits.
const OPERATOR_HINT: &str = "do not log in; tell the operator of the server";

/// Hint for an address that the user may admit.
const PRIVATE_HOSTS_HINT: &str =
    "if it is right, list its host in `oauth.privateHosts` of the server";

/// Which hosts may have addresses that are not public.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressGuard {
    private_hosts: Vec<Box<str>>,
}

impl AddressGuard {
    /// A guard that admits private and loopback addresses for the hosts that the user has configured.
    pub(crate) fn new(private_hosts: impl IntoIterator<Item = Box<str>>) -> Self {
        let lower = |host: Box<str>| host.trim_matches(['[', ']']).to_ascii_lowercase().into();
        Self { private_hosts: private_hosts.into_iter().map(lower).collect() }
    }

    /// Checks a URL before anything is sent: its scheme, its user information, and its host as far as
    /// it can be judged without a lookup.
    pub(crate) fn check(&self, url: &Url) -> Result<(), Error> {
        let host = match url.host() {
            Some(host) if url.username().is_empty() && url.password().is_none() => host,
            _ => return Err(refused(url, "is not a plain web address")),
        };
        let is_local = match host {
            Host::Domain(name) => is_local_name(name),
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        match url.scheme() {
            "https" => {}
            "http" if is_local && self.is_configured(url) => {}
            "http" if is_local => {
                let error = refused(url, "is not encrypted (`https`)");
                return Err(error.with_hint(PRIVATE_HOSTS_HINT));
            }
            "http" => return Err(refused(url, "is not encrypted (`https`)")),
            _ => return Err(refused(url, "is not a web address")),
        }
        let address = match host {
            Host::Domain(_) if is_local && !self.is_configured(url) => Ipv4Addr::LOCALHOST.into(),
            Host::Domain(_) => return Ok(()),
            Host::Ipv4(address) => address.into(),
            Host::Ipv6(address) => address.into(),
        };
        match self.admits(url.host_str().unwrap_or_default(), address) {
            true => Ok(()),
            false if is_link_local(unmapped(address)) => {
                Err(refused(url, "is a link-local address, as metadata services have it"))
            }
            false => Err(refused(url, "is an address of this machine or of a private network")
                .with_hint(PRIVATE_HOSTS_HINT)),
        }
    }

    /// Whether an address may be used for a host.
    pub(crate) fn admits(&self, host: &str, address: IpAddr) -> bool {
        let address = unmapped(address);
        is_public(address) || (self.has(host) && !is_link_local(address))
    }

    fn is_configured(&self, url: &Url) -> bool {
        self.has(url.host_str().unwrap_or_default())
    }

    fn has(&self, host: &str) -> bool {
        let host = host.trim_matches(['[', ']']);
        self.private_hosts.iter().any(|it| it.eq_ignore_ascii_case(host))
    }
}

fn refused(url: &Url, why: &str) -> Error {
    // Not all of it: the server chooses the text.
    let shown = match url.has_host() {
        true => origin(url),
        false => format!("{}:…", url.scheme()),
    };
    Error::new(ErrorKind::ProtocolViolation, format!("{shown} is not reached: it {why}"))
        .with_hint(OPERATOR_HINT)
}

/// The error for a host whose address is refused.
pub(in crate::transport) fn private_address(url: &Url) -> Error {
    let message = format!(
        "the host of {} has an address of this machine or of a private network",
        origin(url)
    );
    Error::new(ErrorKind::ProtocolViolation, message).with_hint(PRIVATE_HOSTS_HINT)
}

fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

/// An IPv4 address that is written as an IPv6 address.
fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => embedded(address).map_or(address.into(), IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// The IPv4 address inside of a mapped, NAT64 or 6to4 address.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

/// Whether an address is link-local: that of metadata services, which no configuration admits.
fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        // The second is the metadata service of AWS.
        IpAddr::V6(address) => {
            address.is_unicast_link_local()
                || address == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)
        }
    }
}

/// Whether an address is reachable from everywhere: in none of the special-purpose ranges of RFC 6890
/// and its successors.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation();
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // Global unicast is 2000::/3; Teredo and documentation are inside of it.
    let [first, second, ..] = address.segments();
    let is_special = first == 0x2001 && (second == 0 || second == 0xdb8) || first == 0x3fff;
    first & 0xe000 == 0x2000 && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, private: &[&str]) -> Result<(), String> {
        let guard = AddressGuard::new(private.iter().map(|host| (*host).into()));
        guard.check(&Url::parse(url).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn public_https_urls_are_admitted() {
        for url in ["https://login.example/x?y", "https://8.8.8.8/", "https://[2606:4700::1]/"] {
            assert_eq!(check(url, &[]), Ok(()), "{url}");
        }
    }

    #[test]
    fn urls_of_other_schemes_and_private_literals_are_refused() {
        for url in [
            "http://login.example/",
            "file:///etc/passwd",
            "ftp://login.example/",
            "javascript:alert(1)",
            "https://user:password@login.example/",
            "https://169.254.169.254/latest/meta-data/",
            "http://169.254.169.254/latest/meta-data/",
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://10.0.0.1/",
            "https://192.168.1.1/",
            "https://100.64.0.1/",
            "https://0.0.0.0/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[64:ff9b::a00:1]/",
            "https://[2002:a00:1::]/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://localhost/",
            "https://localhost./",
            "https://a.localhost/",
        ] {
            assert!(check(url, &[]).is_err(), "{url}");
        }
    }

    #[test]
    fn configured_hosts_may_be_private_and_never_link_local() {
        let hosts = ["localhost", "127.0.0.1", "10.1.2.3", "::1", "169.254.169.254"];
        for url in [
            "http://localhost:8080/x",
            "http://127.0.0.1/",
            "https://10.1.2.3/",
            "https://[::1]/",
            "http://[::1]:1/",
        ] {
            assert_eq!(check(url, &hosts), Ok(()), "{url}");
        }
        for url in ["https://169.254.169.254/", "http://10.1.2.3/", "https://10.1.2.4/"] {
            assert!(check(url, &hosts).is_err(), "{url}");
        }
    }

    #[test]
    fn resolved_addresses_are_checked_too() {
        let guard = AddressGuard::new(["corp.example".into()]);
        let private = "10.0.0.1".parse().unwrap();
        assert!(guard.admits("CORP.example", private));
        assert!(!guard.admits("evil.example", private));
        assert!(guard.admits("evil.example", "1.1.1.1".parse().unwrap()));
        for metadata in ["169.254.169.254", "fe80::1", "fd00:ec2::254", "::ffff:169.254.169.254"] {
            assert!(!guard.admits("corp.example", metadata.parse().unwrap()), "{metadata}");
        }
    }
}
