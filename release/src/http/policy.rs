//! Which URLs and addresses may be spoken to. Pure.
//!
//! Ranges: the special-purpose address registries of IANA for IPv4 and IPv6 (RFC 6890 and its updates).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use url::{Host, Url};

use super::{AddressKind, HttpError, Place};

/// Endings of names that public DNS does not have: the machine, the cluster, the site.
const INTERNAL_ENDINGS: &[&str] = &[
    "localhost",
    "local",
    "localdomain",
    "internal",
    "svc",
    "cluster.local",
    "home.arpa",
];

/// What the operator was told to allow.
#[derive(Clone, Debug, Default)]
pub(super) struct Policy {
    pub(super) plain_http: bool,
    pub(super) networks: Vec<IpNet>,
}

impl Policy {
    /// Whether a URL may be asked for, as far as that can be told before its name is resolved: addresses in URLs are never resolved.
    pub(super) fn check_url(&self, url: &Url) -> Result<(), HttpError> {
        let invalid = |problem| HttpError::InvalidUrl {
            place: Place::origin(url),
            problem,
        };
        match url.scheme() {
            "https" => {}
            "http" if self.plain_http => {}
            "http" => return Err(HttpError::PlainHttp { place: Place::of(url) }),
            _ => return Err(invalid("has another scheme than https")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(
                "contains credentials, which everybody can read; put them into a Secret",
            ));
        }
        // Odd spellings (0x7f.1, 2130706433, [::ffff:7f00:1]) are the same addresses by now: the parser of URLs saw to that.
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) => None,
            None => return Err(invalid("has no host")),
        };
        let refused = literal.and_then(|address| Some((address, self.refusal("", address)?)));
        refused.map_or(Ok(()), |(address, kind)| {
            Err(HttpError::RefusedAddress {
                place: Place::origin(url),
                address,
                kind,
            })
        })
    }

    /// Why this address of this name may not be connected to, if it may not. Names that say that they are inside need a network that the
    /// operator named, whatever their address: clusters can have public ones.
    pub(super) fn refusal(&self, name: &str, address: IpAddr) -> Option<AddressKind> {
        let address = meant(address);
        if self.networks.iter().any(|network| network.contains(&address)) {
            return None;
        }
        match address {
            IpAddr::V4(address) => kind_of_v4(address),
            IpAddr::V6(address) => kind_of_v6(address),
        }
        .or_else(|| is_internal(name).then_some(AddressKind::InternalName))
    }
}

/// A name that only resolves inside: without a dot it goes through the search list of the cluster.
fn is_internal(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_below = |ending: &str| {
        name.strip_suffix(ending)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    !name.is_empty() && (!name.contains('.') || INTERNAL_ENDINGS.iter().any(|ending| is_below(ending)))
}

/// The address that packets end at: IPv6 has several ways to write one of IPv4 (mapped, compatible, NAT64, 6to4).
fn meant(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let segments = v6.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => address,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            v4(high, low)
        }
        _ => address,
    }
}

/// Where Azure gives out the credentials of machines: public by its number, and only reached from the machine itself.
const AZURE: [u8; 4] = [168, 63, 129, 16];

fn kind_of_v4(address: Ipv4Addr) -> Option<AddressKind> {
    let [a, b, c, d] = address.octets();
    if [a, b, c, d] == AZURE {
        return Some(AddressKind::LinkLocal);
    }
    match (a, b, c) {
        (127, ..) => Some(AddressKind::Loopback),
        (169, 254, _) => Some(AddressKind::LinkLocal),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Some(AddressKind::Private),
        (0, ..) => Some(AddressKind::Unspecified),
        (224..=239, ..) => Some(AddressKind::Multicast),
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) | (240.., ..) => {
            Some(AddressKind::Reserved)
        }
        _ => None,
    }
}

fn kind_of_v6(address: Ipv6Addr) -> Option<AddressKind> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(AddressKind::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(AddressKind::Loopback),
        [0xfe80..=0xfebf, ..] => Some(AddressKind::LinkLocal),
        // Unique local, the site-local ones before them, and NAT64 of a site, which hides any address.
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] | [0x64, 0xff9b, 1, ..] => Some(AddressKind::Private),
        [0xff00..=0xffff, ..] => Some(AddressKind::Multicast),
        // Teredo and other special purposes, and two ranges for documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some(AddressKind::Reserved),
        [0x2000..=0x3fff, ..] => None,
        _ => Some(AddressKind::Reserved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(policy: &Policy, address: &str) -> Option<AddressKind> {
        policy.refusal("example.org", address.parse().unwrap())
    }

    #[test]
    fn addresses_that_are_not_public_are_refused_in_every_spelling() {
        use AddressKind::{LinkLocal, Loopback, Multicast, Private, Reserved, Unspecified};
        let policy = Policy::default();
        for (address, kind) in [
            ("127.0.0.1", Loopback),
            ("127.255.255.254", Loopback),
            ("::1", Loopback),
            ("::ffff:127.0.0.1", Loopback),
            ("::127.0.0.1", Loopback),
            ("64:ff9b::7f00:1", Loopback),
            ("2002:7f00:1::", Loopback),
            ("169.254.169.254", LinkLocal),
            ("::ffff:169.254.169.254", LinkLocal),
            ("64:ff9b::a9fe:a9fe", LinkLocal),
            ("168.63.129.16", LinkLocal),
            ("64:ff9b::a83f:8110", LinkLocal),
            ("100.100.100.200", Private),
            ("fe80::1", LinkLocal),
            ("10.0.0.1", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.1.1", Private),
            ("100.64.0.1", Private),
            ("::ffff:10.0.0.1", Private),
            ("fd00:ec2::254", Private),
            ("fec0::1", Private),
            ("64:ff9b:1::1", Private),
            ("0.0.0.0", Unspecified),
            ("0.1.2.3", Unspecified),
            ("::", Unspecified),
            ("224.0.0.1", Multicast),
            ("ff02::1", Multicast),
            ("255.255.255.255", Reserved),
            ("240.0.0.1", Reserved),
            ("192.0.2.1", Reserved),
            ("198.18.0.1", Reserved),
            ("2001:db8::1", Reserved),
            ("2001::1", Reserved),
            ("3fff::1", Reserved),
            ("4000::1", Reserved),
        ] {
            assert_eq!(refusal(&policy, address), Some(kind), "{address}");
        }
        for address in [
            "140.82.121.6",
            "172.32.0.1",
            "100.128.0.1",
            "2606:50c0:8000::153",
            "::ffff:140.82.121.6",
            "2001:4860::8888",
        ] {
            assert_eq!(refusal(&policy, address), None, "{address}");
        }
    }

    #[test]
    fn named_network_is_allowed_and_no_other() {
        let policy = Policy {
            networks: vec!["10.1.0.0/16".parse().unwrap(), "fd00::/8".parse().unwrap()],
            ..Policy::default()
        };
        for allowed in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203", "fd12::1"] {
            assert_eq!(refusal(&policy, allowed), None, "{allowed}");
        }
        for refused in ["10.2.0.1", "127.0.0.1", "169.254.169.254", "fe80::1"] {
            assert!(refusal(&policy, refused).is_some(), "{refused}");
        }
    }

    #[test]
    fn internal_name_needs_a_named_network_though_its_address_is_public() {
        let address = "140.82.121.6".parse().unwrap();
        let named = Policy {
            networks: vec!["140.82.121.0/24".parse().unwrap()],
            ..Policy::default()
        };
        for name in [
            "localhost",
            "kubernetes",
            "registry.tools.svc",
            "Registry.Tools.SVC.cluster.local.",
            "metadata.google.internal",
            "printer.local",
        ] {
            let refused = Policy::default().refusal(name, address);
            assert_eq!(refused, Some(AddressKind::InternalName), "{name}");
            assert_eq!(named.refusal(name, address), None, "{name}");
        }
        for name in ["api.github.com", "svc.example.org", "notlocal.example", "mylocal.dev"] {
            assert_eq!(Policy::default().refusal(name, address), None, "{name}");
        }
    }

    #[test]
    fn url_is_refused_by_scheme_credentials_and_address_before_anything_is_sent() {
        let check = |policy: &Policy, text: &str| {
            let checked = policy.check_url(&Url::parse(text).unwrap());
            checked.map_err(|error| error.to_string())
        };
        let plain = Policy {
            plain_http: true,
            ..Policy::default()
        };
        for (text, words) in [
            ("http://example.org/", "--allow-plain-http"),
            ("file:///etc/passwd", "another scheme"),
            ("ftp://example.org/", "another scheme"),
            ("https://me@example.org/", "put them into a Secret"),
            ("https://me:hunter2@example.org/", "put them into a Secret"),
            ("https://127.0.0.1/", "127.0.0.1, which is not public (loopback)"),
            ("https://2130706433/", "127.0.0.1"),
            ("https://0x7f.1/", "127.0.0.1"),
            ("https://0177.0.0.01/", "127.0.0.1"),
            ("https://[::ffff:169.254.169.254]/latest", "link-local"),
            ("https://[64:ff9b::10.0.0.1]/", "private"),
        ] {
            let error = check(&Policy::default(), text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
            assert!(!error.contains("hunter2") && !error.contains("me@"), "{error}");
        }
        assert_eq!(check(&Policy::default(), "https://example.org/"), Ok(()));
        assert_eq!(check(&plain, "http://example.org/"), Ok(()));
        assert!(check(&plain, "http://169.254.169.254/").is_err());
    }
}
