use serde_json::json;

use super::*;
use crate::stub;

#[tokio::test]
async fn an_object_that_no_address_leads_to_does_not_exist() {
    let client = stub::client(|asked| -> (u16, serde_json::Value) { unreachable!("{asked:?}") });
    let discovery = Discovery::new(client.clone());
    for (namespace, name) in [
        ("fleet", "../../secrets/x"),
        ("fleet", "a b"),
        ("fleet", ""),
        ("..", "web"),
    ] {
        let key = ObjectKey::new("apps", "Deployment", namespace, name);
        let found = read(&client, &discovery, &CrdWatch::of_none(), &key).await;
        assert!(matches!(found, Ok(None)), "{key}: {found:?}");
    }
}

#[tokio::test]
async fn an_object_with_an_address_is_asked_for_there() {
    let client = stub::client(|asked| {
        stub::discovery(asked).unwrap_or_else(|| {
            assert_eq!(asked.path, "/apis/apps/v1/namespaces/fleet/deployments/web");
            (
                200,
                json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" } }),
            )
        })
    });
    let key = ObjectKey::new("apps", "Deployment", "fleet", "web");
    let found = read(&client, &Discovery::new(client.clone()), &CrdWatch::of_none(), &key)
        .await
        .unwrap();
    assert_eq!(found.unwrap().metadata.name.as_deref(), Some("web"));
}

#[tokio::test]
async fn an_object_is_read_in_the_version_that_it_is_to_be_compared_in() {
    let client = stub::client(|asked| {
        stub::discovery_of_two_versions(asked).unwrap_or_else(|| {
            let version = asked.path.split('/').nth(3).unwrap_or_default();
            let version = format!("example.org/{version}");
            (
                200,
                json!({ "apiVersion": version, "kind": "Lamp", "metadata": { "name": "one" } }),
            )
        })
    });
    let (discovery, crds) = (Discovery::new(client.clone()), CrdWatch::of_none());
    let key = ObjectKey::new("example.org", "Lamp", "fleet", "one");
    let version = |found: Option<DynamicObject>| found.unwrap().types.unwrap().api_version;
    let preferred = read(&client, &discovery, &crds, &key).await.unwrap();
    assert_eq!(version(preferred), "example.org/v2");
    for (wanted, found) in [("v1", "v1"), ("v2", "v2"), ("v3", "v2")] {
        let read = read_in(&client, &discovery, &crds, &key, wanted).await.unwrap();
        assert_eq!(version(read), format!("example.org/{found}"), "{wanted}");
    }
}
