//! Secrets of an API server that keeps them, and connections to clouds of clay.

use std::time::Duration;

use crds::providers::Provider as Name;
use kube::api::DynamicObject;
use serde_json::json;
use tokio::time;

use super::*;
use crate::kinds::Kind;
use crate::registry::{Given, Registry};
use crate::stand_ins::{Anywhere, Cluster};

const SECOND: Duration = Duration::from_secs(1);

/// This value, in base64, and bytes that are no text.
fn data(value: &str) -> serde_json::Value {
    json!({ "clouds.yaml": value, "binary": "/w==" })
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_read_once_in_a_minute_and_anew_when_it_was_refused() {
    let cluster = Cluster::new();
    let secrets = Secrets::new(cluster.client());
    cluster.put_secret("login", "1", &data("b25l"));
    let read = async || secrets.get("fleet", "login").await.unwrap().unwrap();
    assert_eq!(read().await.version, "uid-of-login/1");
    cluster.put_secret("login", "2", &data("dHdv"));
    assert_eq!(read().await.version, "uid-of-login/1");
    assert_eq!(cluster.reads(), 1);
    secrets.forget("fleet", "login");
    assert_eq!(read().await.version, "uid-of-login/2");
    cluster.put_secret("login", "3", &data("b25l"));
    time::sleep(SECOND * 61).await;
    assert_eq!(read().await.version, "uid-of-login/3");
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_not_there_is_looked_for_once_in_twenty_seconds_however_many_ask() {
    let cluster = Cluster::new();
    let secrets = Secrets::new(cluster.client());
    for _ in 0..200 {
        assert!(secrets.get("fleet", "login").await.unwrap().is_none());
    }
    assert_eq!(cluster.reads(), 1);
    cluster.put_secret("login", "1", &data("b25l"));
    assert!(secrets.get("fleet", "login").await.unwrap().is_none());
    time::sleep(SECOND * 20).await;
    assert!(secrets.get("fleet", "login").await.unwrap().is_some());
    cluster.remove_secret("login");
    time::sleep(SECOND * 61).await;
    assert!(secrets.get("fleet", "login").await.unwrap().is_none());
}

#[tokio::test]
async fn an_identity_has_what_is_text_and_shows_nothing_of_it() {
    let cluster = Cluster::new();
    cluster.put_secret("login", "1", &data("aHVudGVyMg=="));
    let seen = Secrets::new(cluster.client())
        .get("fleet", "login")
        .await
        .unwrap()
        .unwrap();
    let identity = seen.identity("demo");
    assert_eq!(
        (identity.name.as_str(), identity.version.as_str()),
        ("demo", "uid-of-login/1")
    );
    assert_eq!(identity.data.keys().collect::<Vec<_>>(), ["clouds.yaml"]);
    assert!(!format!("{seen:?} {identity:?}").contains("hunter2"));
}

#[cfg(feature = "openstack")]
#[tokio::test]
async fn a_secret_of_another_namespace_opens_nothing() {
    let cluster = Cluster::new();
    let kind = Kind::of(Name::OpenStack).unwrap();
    let identity_of = async |spec: serde_json::Value| {
        let object = DynamicObject::new("node", &kind.images()).data(json!({ "spec": spec }));
        let wish = kind.wish(&object).unwrap();
        let secrets = Secrets::new(cluster.client());
        secrets.identity_of("fleet", kind, &wish, None).await.unwrap()
    };
    let image = json!({ "url": "https://images.example/node", "createOpts": { "name": "node" } });
    let names = |reference: serde_json::Value| json!({ "identityRef": reference, "image": image });
    cluster.put_secret_in("elsewhere", "login", "1", &data("aHVudGVyMg=="));
    // Without an identity nobody can be asked, and so no cloud is.
    for reference in [
        json!({ "kind": "Secret", "name": "login" }),
        json!({ "kind": "Secret", "name": "login", "namespace": "elsewhere" }),
    ] {
        assert!(identity_of(names(reference.clone())).await.is_none(), "{reference}");
    }
    cluster.put_secret("login", "1", &data("aHVudGVyMg=="));
    let identity = identity_of(names(json!({ "kind": "Secret", "name": "login" }))).await;
    assert_eq!(identity.unwrap().version, "uid-of-login/1");
}

#[cfg(all(feature = "docker", feature = "openstack"))]
#[tokio::test]
async fn a_secret_that_is_made_for_others_opens_nothing() {
    let types = [
        ("", true, true),
        ("Opaque", true, true),
        ("kubernetes.io/dockerconfigjson", false, true),
        ("kubernetes.io/service-account-token", false, false),
        ("cluster.x-k8s.io/secret", false, false),
        ("addons.cluster.x-k8s.io/resource-set", false, false),
    ];
    let wishes = [
        (
            Name::OpenStack,
            json!({ "identityRef": { "kind": "Secret", "name": "login" } }),
        ),
        (
            Name::Docker,
            json!({ "pullSecretRef": { "name": "login", "key": "clouds.yaml" } }),
        ),
    ];
    for (type_, for_openstack, for_docker) in types {
        let cluster = Cluster::new();
        cluster.put_secret("login", "1", &data("aHVudGVyMg=="));
        cluster.type_secret("login", type_);
        let secrets = Secrets::new(cluster.client());
        for ((provider, spec), is_given) in wishes.iter().zip([for_openstack, for_docker]) {
            let kind = Kind::of(*provider).unwrap();
            let mut spec = spec.clone();
            spec["image"] =
                json!({ "reference": "node", "url": "https://images.example/node", "createOpts": { "name": "node" } });
            let object = DynamicObject::new("node", &kind.images()).data(json!({ "spec": spec }));
            let wish = kind.wish(&object).unwrap();
            match secrets.identity_of("fleet", kind, &wish, None).await {
                Ok(identity) => assert!(is_given && identity.is_some(), "{provider} {type_}"),
                Err(error) => {
                    let words = error.to_string();
                    assert!(
                        !is_given && words.contains(type_) && words.contains("fleet/login"),
                        "{provider} {words}"
                    );
                    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
                }
            }
        }
    }
}

#[cfg(feature = "filestore")]
mod connections {
    use provider_filestore::FileStores;
    use provider_plugin::ErrorClass;

    use super::*;

    fn connections(names: &[String]) -> Connections {
        let given = Given {
            filestores: FileStores::parse(["default=/images", "other=/others"]).unwrap(),
            ..Given::default()
        };
        Connections::new(Registry::of(names, given).unwrap(), Arc::new(Anywhere))
    }

    fn identity(name: &str, version: &str) -> Identity {
        Identity {
            name: name.to_owned(),
            data: std::collections::BTreeMap::new(),
            version: version.to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_shared_by_who_asks_in_the_same_name_and_by_nobody_else() {
        let connections = connections(&[]);
        let get = |name, version| connections.get(Name::FileStore, identity(name, version)).unwrap();
        let one = get("default", "uid/1");
        assert!(Arc::ptr_eq(&one, &get("default", "uid/1")));
        for (name, version) in [("default", "uid/2"), ("other", "uid/1")] {
            assert!(!Arc::ptr_eq(&one, &get(name, version)), "{name} {version}");
        }
        assert_eq!(one.cloud().to_string(), "/images");
        let (first, again) = (one.store().await.unwrap(), one.store().await.unwrap());
        assert!(Arc::ptr_eq(&first, &again), "it is connected once");
        time::sleep(SECOND * 3600).await;
        assert!(!Arc::ptr_eq(&one, &get("default", "uid/1")), "nobody asked for so long");
    }

    #[test]
    fn an_identity_that_leads_nowhere_is_told_what_there_is() {
        let none = connections(&[])
            .get(Name::FileStore, identity("none", "uid/1"))
            .unwrap_err();
        assert_eq!(none.class, ErrorClass::Invalid);
        assert!(none.message.contains("default, other"), "{none}");
        let unserved = connections(&["filestore".to_owned()]).get(Name::Docker, identity("none", "uid/1"));
        let error = unserved.unwrap_err();
        assert!(error.message.contains("--providers=docker"), "{error}");
    }
}
