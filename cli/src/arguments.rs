//! The command line, with the help that teaches it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use crds::names::StackVersion;
use release::{http::IpNet, pack::ChartRegistry};

/// Work with cluster stacks
#[derive(Debug, Parser)]
#[command(name = "kubectl-stacks", bin_name = "kubectl stacks", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Manifests(PrintManifests),
    /// Make releases of cluster stacks
    #[command(subcommand)]
    Release(ReleaseCommand),
}

/// Print what is installed into a management cluster, as YAML for kubectl apply
#[derive(Debug, Args)]
#[command(after_long_help = INSTALLATION)]
pub(crate) struct PrintManifests {
    /// What to print; otherwise crds and roles
    #[arg(value_enum, value_name = "PART")]
    pub(crate) parts: Vec<Part>,
    /// Namespace of the operator
    #[arg(long, value_name = "NAMESPACE", default_value = crds::manifests::NAMESPACE, value_parser = namespace)]
    pub(crate) namespace: String,
    /// Namespaces of the Clusters whose lifecycle hooks the operator is asked about (part hooks); those of all namespaces when none is named
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', value_parser = namespace)]
    pub(crate) cluster_namespaces: Vec<String>,
}

/// What is installed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The kinds of cluster stacks
    Crds,
    /// Roles of people and of the operator; who has them is for you to bind
    Roles,
    /// Service and configuration of the webhooks, once the operator serves them
    Webhooks,
    /// Service and ExtensionConfig of the lifecycle hooks of Cluster API, once the operator answers them
    Hooks,
    /// The certificates of webhooks and hooks, where cert-manager runs
    Certificates,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReleaseCommand {
    Create(Box<CreateRelease>),
}

/// Make a release from the directory of a stack
#[derive(Debug, Args)]
#[command(long_about = ABOUT, after_long_help = EXAMPLE)]
pub(crate) struct CreateRelease {
    /// Directory of the stack
    #[arg(value_name = "DIR")]
    pub(crate) stack: PathBuf,
    /// Directory of releases in which to write; the operator started with --release-dir R reads R/cluster-stacks
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Version of the stack, its add-ons and its node images, such as v2 or v0-sha.abc
    #[arg(long, value_name = "VERSION", conflicts_with = "next_after", value_parser = version)]
    pub(crate) version: Option<StackVersion>,
    /// Take the version after the newest release of this stack in this directory of releases, with new add-on and node image versions only
    /// where they changed. This is what happens with OUTPUT when no version is given
    #[arg(long, value_name = "DIR")]
    pub(crate) next_after: Option<PathBuf>,
    /// Directory of charts, archives or directories, from which to take what charts of the stack name as dependencies and do not have in their charts/
    #[arg(long, value_name = "DIR")]
    pub(crate) charts: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) registries: AskRegistries,
}

/// Where charts may be fetched, and how. Nothing is without the first of these.
#[derive(Debug, Args)]
#[command(next_help_heading = "Charts from registries")]
pub(crate) struct AskRegistries {
    /// Registry from which to fetch what is missing and a Chart.yaml names with `repository:` at or below this address, such as
    /// oci://registry.example.com/charts; the directory of --charts comes first. May be given several times
    #[arg(long, value_name = "OCI")]
    #[expect(
        clippy::doc_markdown,
        reason = "this is the help, which shows an address as one types it"
    )]
    pub(crate) chart_registry: Vec<ChartRegistry>,
    /// File with logins for registries; otherwise those of `helm registry login` and `docker login`
    #[arg(long, value_name = "FILE", requires = "chart_registry")]
    pub(crate) registry_config: Option<PathBuf>,
    /// Certificates of authorities to trust besides those of this machine, in PEM
    #[arg(long, value_name = "FILE", requires = "chart_registry")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Ask by HTTP without TLS
    #[arg(long, requires = "chart_registry")]
    pub(crate) plain_http: bool,
    /// Network of a registry that is not public, such as 10.0.0.0/8. May be given several times
    #[arg(long, value_name = "CIDR", requires = "chart_registry")]
    pub(crate) allow_source_network: Vec<IpNet>,
    /// Host outside of the registry's domain that gives out its tokens and may be told the login. May be given several times
    #[arg(long, value_name = "HOST", requires = "chart_registry")]
    pub(crate) token_host: Vec<String>,
}

/// A version, or what to write instead.
fn version(text: &str) -> Result<StackVersion, String> {
    text.parse()
        .map_err(|error| match format!("v{text}").parse::<StackVersion>() {
            Ok(version) => format!("{error}; write {version}"),
            Err(_) => format!("{error}; write v and a number, such as v2, or v0-sha.abc for a build"),
        })
}

/// A namespace as the API server takes it: a label of DNS (RFC 1123).
fn namespace(text: &str) -> Result<String, String> {
    let outer = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    let fits = bytes.iter().all(|byte| outer(*byte) || *byte == b'-');
    if fits && (1..=63).contains(&bytes.len()) && ends.into_iter().flatten().all(|byte| outer(*byte)) {
        return Ok(text.to_owned());
    }
    Err("write at most 63 lower-case letters, digits and dashes, letters or digits at both ends".to_owned())
}

const INSTALLATION: &str = "\
Example: everything for an operator in the namespace fleet-system, with a certificate by cert-manager

  $ kubectl create namespace fleet-system
  $ kubectl stacks manifests crds roles certificates --namespace fleet-system | kubectl apply --server-side -f -
  $ kubectl stacks manifests webhooks --namespace fleet-system | kubectl apply --server-side -f -

The last when the operator is ready: until then nobody could create or upgrade a Cluster of a cluster stack.";

const ABOUT: &str = "\
Make a release from the directory of a stack

Writes OUTPUT/<provider>-<name>-<major>-<minor>-<version>/ with everything that the operators read. The same stack and version always give the \
same bytes. A release that is there is never changed. The class chart is rendered first, and the charts of \
add-ons and the templates of their values are read: a stack that operators could not use becomes no release. What add-ons make of a cluster is not tried, \
because it follows from a Cluster.

The directory of a stack holds

  csctl.yaml        name, provider and Kubernetes version of the stack
  cluster-class/    Helm chart of the ClusterClass and its templates
  cluster-addon/    Helm chart of the add-ons, with cluster-addon-values.yaml beside it,
                    or one chart per directory, with their stages in clusteraddon.yaml
  node-images.yaml  optional: the images that nodes boot from

Operators download nothing for a chart: what its Chart.yaml names as dependencies has to be in its charts/. With --charts, what is missing there is \
taken from that directory: the version of Chart.lock if it has it, or the newest that fits. It goes into the release as if it were in the stack, so \
another version of it makes another release. The stack itself is not changed.

With --chart-registry oci://HOST/PATH, what is missing is fetched from there, if Chart.yaml names that registry in `repository:`. Nothing is asked of \
registries that are not named on the command line, nor of chart repositories of other kinds: `helm pull` fetches those into a directory.

In its texts, << .ClusterClassVersion >>, << .ClusterAddonVersion >> and << .NodeImageVersion >> become the versions of the release.";

const EXAMPLE: &str = "\
Example: a first release, and the next one after a change

  $ cat harbor/csctl.yaml
  apiVersion: csctl.clusterstack.x-k8s.io/v1alpha1
  config:
    kubernetesVersion: v1.34.0
    clusterStackName: harbor
    provider:
      type: docker
  $ kubectl stacks release create harbor --output releases/cluster-stacks --version v1
  $ vi harbor/cluster-class/values.yaml
  $ kubectl stacks release create harbor --output releases/cluster-stacks

Example: a stack whose cluster-addon/cni/Chart.yaml names cilium, which is not in cluster-addon/cni/charts/

  $ helm pull cilium --repo https://helm.cilium.io --version 1.17.4 --destination charts
  $ kubectl stacks release create harbor --output releases/cluster-stacks --charts charts

Example: the same where Chart.yaml has `repository: oci://registry.example.com/charts`

  $ helm registry login registry.example.com
  $ kubectl stacks release create harbor --output releases/cluster-stacks --chart-registry oci://registry.example.com/charts

Exit status:
  0  the release is there and its first line on standard output names it, or there is nothing to release:
     the line then begins with \"nothing changed since\" and the newest release
  1  no release was made; standard error says why
  2  wrong usage
  3  the release is there, or there is nothing to release, but standard output could not be written";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_in_another_spelling_is_answered_with_the_right_one() {
        assert_eq!(version("v1").unwrap().to_string(), "v1");
        assert_eq!(version("1").unwrap_err(), "invalid version string 1; write v1");
        assert_eq!(
            version("latest").unwrap_err(),
            "invalid version string latest; write v and a number, such as v2, or v0-sha.abc for a build"
        );
    }
}
