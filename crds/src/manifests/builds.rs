//! What the Pods in which images are built may connect to, for clusters whose network knows policies.

use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyPeer, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::ObjectMeta;

use crate::labels;

/// Everything, and within it the segment of the network on which clouds give out the credentials of machines.
const NETWORKS: [(&str, &str); 2] = [("0.0.0.0/0", "169.254.0.0/16"), ("::/0", "fe80::/10")];

/// Nobody connects to such a Pod, and it connects to nothing on its own segment of the network. The API server and the cloud stay open: what sends the
/// image afterwards is in the same Pod and needs both.
pub fn network_policy_of_builds() -> NetworkPolicy {
    let block = |(cidr, except): (&str, &str)| NetworkPolicyPeer {
        ip_block: Some(IPBlock {
            cidr: cidr.to_owned(),
            except: Some(vec![except.to_owned()]),
        }),
        ..NetworkPolicyPeer::default()
    };
    NetworkPolicy {
        metadata: ObjectMeta {
            name: Some("clusterstack-image-builds".to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector {
                match_expressions: Some(vec![LabelSelectorRequirement {
                    key: labels::JOB_OF.to_owned(),
                    operator: "Exists".to_owned(),
                    values: None,
                }]),
                match_labels: None,
            }),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            egress: Some(vec![NetworkPolicyEgressRule {
                to: Some(NETWORKS.map(block).into()),
                ports: None,
            }]),
            ingress: None,
        }),
    }
}
