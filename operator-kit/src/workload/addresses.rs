//! Which addresses the API server of a workload cluster may have. Decides, and connects to nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where clouds give out the credentials of machines and are not in the network segment: Alibaba's, Azure's, and by IPv6 those of AWS and Google.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Public and private addresses. Refused are this machine, its network segment (where clouds give out the credentials of machines), no
/// particular address, and many at once: whoever writes a kubeconfig would send the operator there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// This machine itself may be reached, as tests have it.
    pub loopback: bool,
}

impl Addresses {
    /// What a refused address is; `None` when it may be reached.
    pub(crate) fn refusal(self, address: IpAddr) -> Option<&'static str> {
        match meant(address) {
            address if METADATA.contains(&address) => Some("a service that gives machines their credentials"),
            address if address.is_loopback() => (!self.loopback).then_some("this machine itself"),
            address if address.is_unspecified() => Some("no particular machine"),
            address if address.is_multicast() => Some("many machines"),
            IpAddr::V4(address) if address.octets()[0] == 0 => Some("no particular machine"),
            IpAddr::V4(address) if address.is_link_local() || address.is_broadcast() => Some("in this network segment"),
            IpAddr::V6(address) if address.is_unicast_link_local() => Some("in this network segment"),
            _ => None,
        }
    }
}

/// The address that packets end at: IPv6 has several ways to write one of IPv4 (mapped, compatible, NAT64 of everybody and of a site, 6to4).
fn meant(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address.to_canonical() else {
        return address.to_canonical();
    };
    let [high, low] = match v6.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return address,
        [0, 0, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => [high, low].map(u16::to_be_bytes),
        _ => return address,
    };
    Ipv4Addr::new(high[0], high[1], low[0], low[1]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_live_in_public_and_private_networks_and_nowhere_else() {
        let refusal = |address: &str, loopback| Addresses { loopback }.refusal(address.parse().unwrap());
        for good in [
            "192.0.2.1",
            "10.0.0.1",
            "172.16.1.1",
            "2001:db8::1",
            "fd00::1",
            "64:ff9b::c000:201",
        ] {
            assert_eq!(refusal(good, false), None, "{good}");
        }
        for bad in [
            "169.254.169.254",
            "0.0.0.0",
            "0.0.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "fe80::1",
            "ff02::1",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "100.100.100.200",
            "::ffff:168.63.129.16",
            "fd00:ec2::254",
            "fd20:ce::254",
        ] {
            assert!(refusal(bad, true).is_some(), "{bad}");
        }
        for own in ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"] {
            assert!(refusal(own, false).is_some(), "{own}");
            assert_eq!(refusal(own, true), None, "{own}");
        }
    }
}
