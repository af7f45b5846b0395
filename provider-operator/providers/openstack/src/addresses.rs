//! Which addresses a cloud may have: where clouds live, and not where the machine talks to itself. Decides, and connects to nothing.

use std::net::IpAddr;

use ipnet::IpNet;
use provider_plugin::Addresses;

/// The flag of the operator that allows networks.
const FLAG: &str = "--allow-cloud-network";

/// Public and private addresses, and the networks that an operator names. This machine, its network segment (where clouds give out the
/// credentials of machines), no particular address and many at once are refused.
#[derive(Clone, Debug, Default)]
pub struct CloudAddresses {
    /// Networks that may be reached, whatever they are.
    pub networks: Vec<IpNet>,
}

impl Addresses for CloudAddresses {
    fn allows(&self, host: &str, address: IpAddr) -> Result<(), String> {
        let address = address.to_canonical();
        if self.networks.iter().any(|network| network.contains(&address)) {
            return Ok(());
        }
        let kind = match address {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clouds_live_in_public_and_private_networks_and_nowhere_else() {
        let allows = |address: &str, networks: &[&str]| {
            let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
            CloudAddresses { networks }.allows("cloud.example", address.parse().unwrap())
        };
        for good in ["192.0.2.1", "10.0.0.1", "172.16.1.1", "2001:db8::1", "fd00::1"] {
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
        ] {
            let refused = allows(bad, &["192.0.2.0/24"]).unwrap_err();
            assert!(refused.contains(FLAG) && refused.contains("cloud.example"), "{refused}");
        }
        assert_eq!(allows("127.0.0.1", &["127.0.0.0/8"]), Ok(()));
        assert_eq!(allows("::ffff:127.0.0.1", &["127.0.0.0/8"]), Ok(()));
    }
}
