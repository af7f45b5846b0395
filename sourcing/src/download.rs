//! What may be asked over the network, and where what it gives is kept, as flags say it. Opens nothing.

use std::path::PathBuf;

use operator_kit::flags::bytes;
use release::http::{HttpError, IpNet, Network, NetworkOptions};

/// Flags about what is downloaded.
#[derive(Clone, Debug, clap::Args)]
pub struct DownloadArgs {
    /// Where releases that were downloaded are kept; put it on a volume, and a restart downloads nothing.
    #[arg(long, default_value = "/tmp/stackwright", value_name = "DIR")]
    pub cache_dir: PathBuf,

    /// Most bytes of downloaded releases, such as 512Mi or 2Gi. What releases need stays, also above it.
    #[arg(long, default_value = "2Gi", value_parser = bytes, value_name = "BYTES")]
    pub cache_max_bytes: u64,

    /// Allow sources without TLS.
    #[arg(long)]
    pub allow_plain_http: bool,

    /// A network with sources that is not public, such as 10.0.0.0/8: private, of the cluster, loopback. May be given several times.
    #[arg(long, value_delimiter = ',', value_name = "CIDR")]
    pub allow_source_network: Vec<IpNet>,
}

impl DownloadArgs {
    /// The network as far as these flags open it. One for the process, so that all of its sources share the guards.
    pub fn network(&self) -> Result<Network, HttpError> {
        Network::new(NetworkOptions {
            plain_http: self.allow_plain_http,
            networks: self.allow_source_network.clone(),
            ..NetworkOptions::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        download: DownloadArgs,
    }

    fn args(flags: &[&str]) -> Result<DownloadArgs, String> {
        let flags = ["operator"].iter().chain(flags);
        let parsed = Command::try_parse_from(flags).map_err(|error| error.to_string());
        parsed.map(|command| command.download)
    }

    #[test]
    fn sizes_are_written_as_kubernetes_writes_them() {
        let most = |size: &str| args(&[&format!("--cache-max-bytes={size}")]).map(|args| args.cache_max_bytes);
        for (size, expected) in [
            ("0", 0),
            ("1048576", 1 << 20),
            ("3Ki", 3 << 10),
            ("512Mi", 512 << 20),
            ("2Gi", 2 << 30),
            ("1Ti", 1 << 40),
        ] {
            assert_eq!(most(size), Ok(expected), "{size}");
        }
        for size in ["", "2GB", "much", "-1", "1.5Gi", "99999999999Ti"] {
            let refused = most(size).expect_err(size);
            assert!(refused.contains("512Mi or 2Gi"), "{refused}");
        }
    }

    #[test]
    fn without_flags_nothing_is_open_that_is_not_public() {
        let args = args(&[]).unwrap();
        assert!(!args.allow_plain_http && args.allow_source_network.is_empty());
        assert_eq!(
            (args.cache_dir, args.cache_max_bytes),
            (PathBuf::from("/tmp/stackwright"), 2 << 30)
        );
    }

    #[test]
    fn networks_are_given_one_by_one_or_in_a_list() {
        let expected: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        for flags in [
            &["--allow-source-network=10.0.0.0/8,fd00::/8"][..],
            &["--allow-source-network=10.0.0.0/8", "--allow-source-network=fd00::/8"],
        ] {
            assert_eq!(args(flags).map(|args| args.allow_source_network), Ok(expected.clone()));
        }
    }
}
