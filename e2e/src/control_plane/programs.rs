//! The command lines of a control plane's programs. Each runs in the control plane's folder, so paths are names in it.

use std::{path::Path, process::Command};

use super::credentials::{
    AUDIT_POLICY, CA_CERTIFICATE, CLIENT_AUTHORITIES, KUBELET_CLIENT_CERTIFICATE, KUBELET_CLIENT_KEY,
    SERVER_CERTIFICATE, SERVER_KEY, SERVICE_ACCOUNT_KEY, SERVICE_ACCOUNT_PUBLIC_KEY, TOKENS,
};
use super::{Options, Serving};
use crate::{Lab, process::SELDOM_COLLECTED};

/// Where the API server writes one JSON object a line.
pub(super) const AUDIT_LOG: &str = "audit.jsonl";

/// The folder with what etcd holds.
pub(super) const ETCD_DATA: &str = "etcd";
/// A socket in the folder: no port to find.
const ETCD: &str = "unix://etcd.sock";

/// What any cluster does by itself and a test of API objects can see. All controllers together cost memory, and those of
/// nodes, clouds and certificates only fail here.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,serviceaccount-controller,\
                           clusterrole-aggregation-controller";
const WORKLOAD_CONTROLLERS: &str = "deployment-controller,replicaset-controller,statefulset-controller,\
                                    daemonset-controller,job-controller,cronjob-controller,endpointslice-controller,\
                                    disruption-controller,root-ca-certificate-publisher-controller,\
                                    serviceaccount-token-controller,ttl-after-finished-controller";
/// What lets Pods onto a node when it is ready, and off it when it is not.
const NODE_CONTROLLERS: &str = "node-lifecycle-controller,taint-eviction-controller,pod-garbage-collector-controller";

fn program(lab: &Lab, folder: &Path, name: &str) -> Command {
    let mut command = Command::new(&lab.controlplane);
    command.current_dir(folder).arg("--exit-with-stdin").arg(name);
    command.envs([SELDOM_COLLECTED]);
    command
}

pub(super) fn etcd(lab: &Lab, folder: &Path) -> (&'static str, Command) {
    let mut command = program(lab, folder, "etcd");
    command
        .args(["--name", "lab", "--data-dir", ETCD_DATA, "--log-level", "warn"])
        // The data does not outlive the machine's power, so nobody waits for the disk.
        .arg("--unsafe-no-fsync")
        .args(["--listen-client-urls", ETCD])
        // A single member tells its addresses and nobody asks; they only have to look like addresses.
        .args(["--advertise-client-urls", "http://127.0.0.1:2379"])
        .args(["--listen-peer-urls", "http://127.0.0.1:0"])
        .args(["--initial-advertise-peer-urls", "http://127.0.0.1:2380"])
        .args(["--initial-cluster", "lab=http://127.0.0.1:2380"]);
    ("etcd", command)
}

pub(super) fn api_server(lab: &Lab, folder: &Path, port: u16, options: &Options) -> (&'static str, Command) {
    let mut command = program(lab, folder, "kube-apiserver");
    match &options.serving {
        Some(serving) => serve_nodes(&mut command, serving),
        None => serve_on_loopback(&mut command),
    }
    if options.certificates {
        command.args(["--client-ca-file", CLIENT_AUTHORITIES]);
    }
    command
        .args(["--etcd-servers", ETCD])
        .args(["--secure-port", &port.to_string()])
        .args([
            "--tls-cert-file",
            SERVER_CERTIFICATE,
            "--tls-private-key-file",
            SERVER_KEY,
        ])
        .args(["--token-auth-file", TOKENS])
        .args(["--service-account-issuer", "https://kubernetes.default.svc"])
        .args(["--service-account-key-file", SERVICE_ACCOUNT_PUBLIC_KEY])
        .args(["--service-account-signing-key-file", SERVICE_ACCOUNT_KEY])
        // A loopback address cannot be an Endpoint: the server would complain all day. Where there is a node, nothing on it translates
        // addresses of Services.
        .args(["--allow-privileged", "--endpoint-reconciler-type", "none"])
        .args(["--audit-policy-file", AUDIT_POLICY, "--audit-log-path", AUDIT_LOG])
        // In MiB; the default of 100 is reached by one benchmark, and a rotated log would begin again under its reader.
        .args(["--audit-log-maxsize", "100000"]);
    ("kube-apiserver", command)
}

fn serve_on_loopback(command: &mut Command) {
    command
        .args(["--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1"])
        .args([
            "--service-cluster-ip-range",
            "10.96.0.0/16",
            "--authorization-mode",
            "RBAC",
        ])
        // Its taint on new Nodes is lifted by a controller that does not run here.
        .args(["--disable-admission-plugins", "TaintNodesByCondition"]);
}

fn serve_nodes(command: &mut Command, serving: &Serving) {
    let address = serving.address.to_string();
    command
        .args(["--bind-address", &address, "--advertise-address", &address])
        .args(["--service-cluster-ip-range", &serving.services])
        .args([
            "--authorization-mode",
            "Node,RBAC",
            "--enable-admission-plugins",
            "NodeRestriction",
        ])
        .args(["--kubelet-client-certificate", KUBELET_CLIENT_CERTIFICATE])
        .args(["--kubelet-client-key", KUBELET_CLIENT_KEY])
        // Nobody resolves the name of a node.
        .args(["--kubelet-preferred-address-types", "InternalIP"]);
}

pub(super) fn controllers(lab: &Lab, folder: &Path, options: &Options) -> Vec<(&'static str, Command)> {
    let workloads = options.workloads;
    let mut controllers = CONTROLLERS.to_owned();
    for (wanted, names) in [
        (workloads, WORKLOAD_CONTROLLERS),
        (options.serving.is_some(), NODE_CONTROLLERS),
    ] {
        if wanted {
            controllers = format!("{controllers},{names}");
        }
    }
    let mut manager = program(lab, folder, "kube-controller-manager");
    manager
        .args(["--controllers", &controllers])
        .args([
            "--service-account-private-key-file",
            SERVICE_ACCOUNT_KEY,
            "--root-ca-file",
            CA_CERTIFICATE,
        ])
        // The default of 20 requests a second would be what a test of garbage collection measures, and a benchmark of Deployments.
        .args(["--kube-api-qps", "1000", "--kube-api-burst", "2000"]);
    let mut started = vec![("kube-controller-manager", manager)];
    if workloads {
        started.push(("kube-scheduler", program(lab, folder, "kube-scheduler")));
    }
    for (_, command) in &mut started {
        command.args([
            "--kubeconfig",
            "kubeconfig",
            "--leader-elect=false",
            "--secure-port",
            "0",
        ]);
    }
    started
}
