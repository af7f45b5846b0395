//! Which addresses a cloud may have: where clouds live, and not where the machine talks to itself. Decides, and connects to nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use provider_plugin::Addresses;

/// The flag of the operator that allows networks.
const FLAG: &str = "--allow-cloud-network";

/// Where clouds give out the credentials of machines and are not in the network segment: Alibaba's, Azure's, and by IPv6 those of AWS and Google.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Public and private addresses, and the networks that an operator names. This machine, its network segment (where clouds give out the
/// credentials of machines), no particular address and many at once are refused.
#[derive(Clone, Debug, Default)]
pub struct CloudAddresses {
    /// Networks that may be reached, whatever they are.
    pub networks: Vec<IpNet>,
}

impl Addresses for CloudAddresses {
    fn allows(&self, host: &str, address: IpAddr) -> Result<(), String> {
        let address = meant(address);
        if self.networks.iter().any(|network| network.contains(&address)) {
            return Ok(());
        }
        let kind = match address {
            _ if METADATA.contains(&address) => "a service that gives machines their credentials",
            _ if address.is_loopback() => "this machine itself",
            _ if address.is_unspecified() => "no particular machine",
            _ if address.is_multicast() => "many machines",
            IpAddr::V4(address) if address.is_link_local() || address.is_broadcast() => "in this network segment",
            IpAddr::V6(address) if address.is_unicast_link_local() => "in this network segment",
            _ => return Ok(()),
        };
        Err(format!(
            "{host} is at {address}, which is {kind}; if a cloud is there, name its network with the flag {FLAG} of the operator"
        ))
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
    fn clouds_live_in_public_and_private_networks_and_nowhere_else() {
        let allows = |address: &str, networks: &[&str]| {
            let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
            CloudAddresses { networks }.allows("cloud.example", address.parse().unwrap())
        };
        for good in [
            "192.0.2.1",
            "10.0.0.1",
            "172.16.1.1",
            "2001:db8::1",
            "fd00::1",
            "64:ff9b::c000:201",
        ] {
            assert_eq!(allows(good, &[]), Ok(()), "{good}");
        }
        for bad in [
            "127.0.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::6464:64c8",
            "64:ff9b:1::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "100.100.100.200",
            "168.63.129.16",
            "::ffff:168.63.129.16",
            "fd00:ec2::254",
            "fd20:ce::254",
        ] {
            let refused = allows(bad, &["192.0.2.0/24"]).unwrap_err();
            assert!(refused.contains(FLAG) && refused.contains("cloud.example"), "{refused}");
        }
        assert_eq!(allows("127.0.0.1", &["127.0.0.0/8"]), Ok(()));
        assert_eq!(allows("::ffff:127.0.0.1", &["127.0.0.0/8"]), Ok(()));
        assert_eq!(allows("64:ff9b::7f00:1", &["127.0.0.0/8"]), Ok(()));
        assert_eq!(allows("fd00:ec2::254", &["fd00:ec2::/32"]), Ok(()));
    }
}
