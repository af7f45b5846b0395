//! The command lines of a control plane's programs. Each runs in the control plane's folder, so paths are names in it.

use std::{path::Path, process::Command};

use super::credentials::{
    AUDIT_POLICY, CA_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY, SERVICE_ACCOUNT_KEY, SERVICE_ACCOUNT_PUBLIC_KEY,
    TOKENS,
};
use crate::Lab;

/// Where the API server writes one JSON object a line.
pub(super) const AUDIT_LOG: &str = "audit.jsonl";

/// A socket in the folder: no port to find.
const ETCD: &str = "unix://etcd.sock";

/// What any cluster does by itself and a test of API objects can see. All controllers together cost memory, and those of
/// nodes, clouds and certificates only fail here.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,serviceaccount-controller,\
                           clusterrole-aggregation-controller";
const WORKLOAD_CONTROLLERS: &str = "deployment-controller,replicaset-controller,statefulset-controller,\
                                    daemonset-controller,job-controller,cronjob-controller,endpointslice-controller,\
                                    disruption-controller,root-ca-certificate-publisher-controller,\
                                    serviceaccount-token-controller";

fn program(lab: &Lab, folder: &Path, name: &str) -> Command {
    let mut command = Command::new(&lab.controlplane);
    command.current_dir(folder).arg("--exit-with-stdin").arg(name);
    // Collecting garbage was a quarter of what an API server computed in a journey; memory is cheaper here than processors.
    command.env("GOGC", "300");
    command
}

pub(super) fn etcd(lab: &Lab, folder: &Path) -> (&'static str, Command) {
    let mut command = program(lab, folder, "etcd");
    command
        .args(["--name", "lab", "--data-dir", "etcd", "--log-level", "warn"])
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

pub(super) fn api_server(lab: &Lab, folder: &Path, port: u16) -> (&'static str, Command) {
    let mut command = program(lab, folder, "kube-apiserver");
    command
        .args(["--etcd-servers", ETCD])
        .args(["--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1"])
        .args(["--secure-port", &port.to_string()])
        .args([
            "--tls-cert-file",
            SERVER_CERTIFICATE,
            "--tls-private-key-file",
            SERVER_KEY,
        ])
        .args(["--token-auth-file", TOKENS, "--authorization-mode", "RBAC"])
        .args(["--service-account-issuer", "https://kubernetes.default.svc"])
        .args(["--service-account-key-file", SERVICE_ACCOUNT_PUBLIC_KEY])
        .args(["--service-account-signing-key-file", SERVICE_ACCOUNT_KEY])
        .args(["--service-cluster-ip-range", "10.96.0.0/16", "--allow-privileged"])
        // A loopback address cannot be an Endpoint: the server would complain all day.
        .args(["--endpoint-reconciler-type", "none"])
        // Its taint on new Nodes is lifted by a controller that does not run here.
        .args(["--disable-admission-plugins", "TaintNodesByCondition"])
        .args(["--audit-policy-file", AUDIT_POLICY, "--audit-log-path", AUDIT_LOG])
        // In MiB; the default of 100 is reached by one benchmark, and a rotated log would begin again under its reader.
        .args(["--audit-log-maxsize", "100000"]);
    ("kube-apiserver", command)
}

pub(super) fn controllers(lab: &Lab, folder: &Path, workloads: bool) -> Vec<(&'static str, Command)> {
    let controllers = if workloads {
        format!("{CONTROLLERS},{WORKLOAD_CONTROLLERS}")
    } else {
        CONTROLLERS.to_owned()
    };
    let mut manager = program(lab, folder, "kube-controller-manager");
    manager
        .args(["--controllers", &controllers])
        .args([
            "--service-account-private-key-file",
            SERVICE_ACCOUNT_KEY,
            "--root-ca-file",
            CA_CERTIFICATE,
        ])
        // The default of 20 requests a second would be what a test of garbage collection measures.
        .args(["--kube-api-qps", "200", "--kube-api-burst", "400"]);
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
