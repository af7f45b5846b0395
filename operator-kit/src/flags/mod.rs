//! Flags that every operator has: how they are called, what their help says, and how their values are written. Which of them an operator takes, in which
//! order, and what their values lead to, is decided by the operator. Reads nothing by itself.

#[cfg(feature = "flags-reference")]
mod reference;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;

use crate::client::ClientOptions;
use crate::lease::{Fence, LeaseOptions};
use crate::process::candidacy;
use crate::telemetry::{LogFormat, LogLevel, LoggingError, Traces, init_logging};

#[cfg(feature = "flags-reference")]
pub use self::reference::{ReferenceError, check_reference};
pub use self::values::{Address, address, bytes, duration, label_value, namespace};

use self::values::log_level;

/// Which objects are looked after.
#[derive(Clone, Debug, clap::Args)]
pub struct ScopeArgs {
    /// Look after one namespace only; all when empty.
    #[arg(long, default_value = "", value_parser = namespace, value_name = "NAMESPACE")]
    pub namespace: String,

    /// Look only after objects whose label cluster.x-k8s.io/watch-filter has this value; all when empty.
    #[arg(long, default_value = "", value_parser = label_value, value_name = "VALUE")]
    pub watch_filter: String,
}

/// How fast the API server is asked.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct RequestArgs {
    /// Requests a second to the API server, on average; 0 means no limit of ours (the API server has its own).
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub qps: u32,

    /// Requests to the API server that may be made at once before --qps holds them back.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub burst: u32,
}

/// Which of several replicas works. The name of the Lease is empty unless the operator has a default of its own.
#[derive(Clone, Debug, clap::Args)]
pub struct LeaseArgs {
    /// Take part in leader election: of several replicas one works, the others wait.
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, default_value_t = true, default_missing_value = "true", value_name = "BOOL")]
    pub leader_elect: bool,

    /// Namespace of the Lease; that of the Pod when empty, "default" outside of a cluster.
    #[arg(long, default_value = "", env = "POD_NAMESPACE", value_parser = namespace, value_name = "NAMESPACE")]
    pub leader_elect_namespace: String,

    /// Name of the Lease.
    #[arg(long, default_value = "", value_name = "NAME")]
    pub leader_elect_name: String,

    /// How long a Lease that is not renewed keeps other replicas from working.
    #[arg(long, default_value = "15s", value_parser = duration, value_name = "DURATION")]
    pub lease_duration: Duration,
}

/// What is logged.
#[derive(Clone, Debug, clap::Args)]
pub struct LogArgs {
    /// How much is logged: error, warn, info, debug or trace, or a filter such as `info,operator_kit=debug`.
    #[arg(long, default_value = "info", value_parser = log_level, value_name = "LEVEL")]
    pub log_level: String,

    /// How log lines look.
    #[arg(long, value_enum, default_value_t = LogFormat::Json, value_name = "FORMAT")]
    pub log_format: LogFormat,
}

impl ScopeArgs {
    /// The namespace in words for a log.
    pub fn told_namespace(&self) -> &str {
        or_all(&self.namespace)
    }

    /// The value of the label in words for a log.
    pub fn told_watch_filter(&self) -> &str {
        or_all(&self.watch_filter)
    }
}

impl RequestArgs {
    /// Options of a client that asks as fast as this, and writes while the fence is open.
    pub fn options(self, kubeconfig: Option<PathBuf>, user_agent: String, fence: Fence) -> ClientOptions {
        ClientOptions {
            kubeconfig,
            context: None,
            qps: f64::from(self.qps),
            burst: self.burst,
            user_agent,
            fence,
        }
    }
}

impl LeaseArgs {
    /// What this process stands with for the Lease of this name. `members` is the annotation of those that share shards.
    pub fn candidacy(&self, name: &str, members: &'static str) -> LeaseOptions {
        candidacy(&self.leader_elect_namespace, name, self.lease_duration, members)
    }
}

impl LogArgs {
    /// Installs the process's one logger, and what sends its spans, if any.
    pub fn install(&self, traces: Option<&Traces>) -> Result<LogLevel, LoggingError> {
        init_logging(self.log_format, &self.log_level, traces)
    }
}

/// Says in the log which of the flags that were given have no effect; nothing where there are none. `predecessor` is whose flags they were.
pub fn warn_of_flags_without_effect(given: &[&str], predecessor: &str) {
    if !given.is_empty() {
        tracing::warn!(
            flags = given.join(" "),
            "flags of the {predecessor} that have no effect in this version"
        );
    }
}

fn or_all(text: &str) -> &str {
    if text.is_empty() { "all" } else { text }
}

#[cfg(test)]
mod tests {
    use clap::Args;

    use super::*;
    use crate::told::Told;

    fn parse<A: Args>(flags: &[&str]) -> A {
        let command = A::augment_args(clap::Command::new("operator"));
        let matches = command.get_matches_from(["operator"].iter().chain(flags));
        A::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn without_flags_everything_is_looked_after_as_fast_as_it_can_be_asked_for() {
        let scope: ScopeArgs = parse(&[]);
        assert_eq!((scope.told_namespace(), scope.told_watch_filter()), ("all", "all"));
        let requests: RequestArgs = parse(&[]);
        let options = requests.options(None, "agent".to_owned(), Fence::default());
        assert!(options.qps <= 0.0 && options.context.is_none());
        let log: LogArgs = parse(&[]);
        assert_eq!((log.log_level.as_str(), log.log_format), ("info", LogFormat::Json));
    }

    #[test]
    fn flags_are_told_as_they_are_meant() {
        let scope: ScopeArgs = parse(&["--namespace=fleet", "--watch-filter=blue"]);
        assert_eq!((scope.told_namespace(), scope.told_watch_filter()), ("fleet", "blue"));
        let requests: RequestArgs = parse(&["--qps=5", "--burst=7"]);
        let options = requests.options(Some("kubeconfig".into()), "agent".to_owned(), Fence::default());
        assert!(options.qps > 4.9 && options.burst == 7 && options.kubeconfig.is_some());
    }

    #[test]
    fn one_of_several_replicas_works_unless_the_flags_say_otherwise() {
        let usual: LeaseArgs = parse(&[]);
        assert!(usual.leader_elect && usual.leader_elect_name.is_empty());
        let alone: LeaseArgs = parse(&["--leader-elect=false"]);
        assert!(!alone.leader_elect);
        let fleet: LeaseArgs = parse(&[
            "--leader-elect",
            "--leader-elect-namespace=fleet",
            "--lease-duration=30s",
        ]);
        assert!(fleet.leader_elect);
        let options = fleet.candidacy("ours", "members");
        assert_eq!((options.namespace.as_str(), options.name.as_str()), ("fleet", "ours"));
        assert_eq!(options.timing.lease_duration, Duration::from_secs(30));
    }

    #[test]
    fn flags_without_effect_are_told_where_there_are_any() {
        let told = Told::begin();
        warn_of_flags_without_effect(&[], "Go operator");
        assert!(told.lines().is_empty(), "{:?}", told.lines());
        warn_of_flags_without_effect(&["--hook-port", "--hook-cert-dir"], "Go operator");
        let lines = told.lines().join("\n");
        assert!(lines.contains("WARN") && lines.contains("Go operator"), "{lines}");
        assert!(lines.contains("--hook-port --hook-cert-dir"), "{lines}");
    }
}
