//! Others who write what nobody but the operator should.

use crds::labels;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{LONG, begin, namespace, operated, stack, template};
use operator_kit::in_memory::{MOST, Server};

const TAG: &str = "docker-harbor-1-34-v1";

/// More than may be deleted without being asked.
const MANY: usize = 14;

fn find(server: &Server, kind: &str, namespace: &str, name: &str) -> Option<Value> {
    let mut objects = server.objects().into_iter();
    let found = objects.find(|((of, within, named), _)| *of == kind && within == namespace && named == name);
    found.map(|(_, object)| object)
}

#[test]
fn a_mark_in_another_namespace_makes_nothing_a_part_of_a_release() {
    operator_kit::client::install_crypto();
    let server = begin(None);
    let status = || find(&server, "ClusterStackRelease", "fleet", TAG).expect("the release")["status"].clone();
    let name = |number: usize| format!("copy-{number}");
    let before = operated(&server, async |_| {
        server.apply(&template("small"));
        server.apply(&stack(&["v1"]));
        server.apply(&namespace("elsewhere"));
        sleep(LONG).await;
        let before = status();
        let class = find(&server, "ClusterClass", "fleet", TAG).expect("the class");
        for number in 0..MANY {
            let copy = json!({
                "apiVersion": class["apiVersion"], "kind": class["kind"], "spec": class["spec"],
                "metadata": { "name": name(number), "namespace": "elsewhere", "labels": class["metadata"]["labels"] },
            });
            server.apply_as(labels::FIELD_MANAGER, &copy);
        }
        sleep(LONG).await;
        before
    });
    assert_eq!(before["ready"], true, "{before:#}");
    assert_eq!(status(), before);
    for number in 0..MANY {
        assert!(
            find(&server, "ClusterClass", "elsewhere", &name(number)).is_some(),
            "{number}"
        );
    }
}

#[test]
fn a_kind_is_watched_as_long_as_a_release_names_it() {
    operator_kit::client::install_crypto();
    let server = begin(None);
    let name = |kinds: &str| {
        let annotations = json!({ labels::CONTAINS_GROUP_KINDS: kinds });
        let patch = json!({ "metadata": { "annotations": annotations } });
        server.merge("ClusterStackRelease", TAG, &patch);
    };
    let is_watched = |kind| server.is_watched(kind, labels::PART_OF);
    operated(&server, async |_| {
        server.apply(&template("small"));
        server.apply(&stack(&["v1"]));
        sleep(LONG).await;
        let own =
            server.find("ClusterStackRelease", TAG)["metadata"]["annotations"][labels::CONTAINS_GROUP_KINDS].clone();
        let own = own.as_str().expect("its kinds").to_owned();
        name(&format!("{own},KubeadmConfigTemplate.bootstrap.cluster.x-k8s.io"));
        sleep(LONG).await;
        assert!(is_watched("KubeadmConfigTemplate"));
        name(&own);
        sleep(LONG).await;
        // What is followed is looked through now and then.
        sleep(2 * LONG).await;
        assert!(!is_watched("KubeadmConfigTemplate"), "nobody names it any more");
        assert!(is_watched("ClusterClass"));

        // A kind whose watch has ended is found all the same.
        name(&format!("{own},KubeadmConfigTemplate.bootstrap.cluster.x-k8s.io"));
        sleep(LONG).await;
        assert!(is_watched("KubeadmConfigTemplate"));
        server.delete("ClusterStack", "harbor");
        sleep(LONG).await;
        assert!(find(&server, "ClusterStackRelease", "fleet", TAG).is_none());
    });
    assert!(server.calls() < MOST, "the operator asks for ever");
}
