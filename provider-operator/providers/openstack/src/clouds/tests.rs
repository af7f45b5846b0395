use secrecy::ExposeSecret;
use serde_json::json;

use super::*;

fn read(yaml: &str) -> Result<Cloud, CloudsError> {
    cloud(yaml.as_bytes(), "openstack", Beside::default())
}

/// A file whose only cloud has these fields, and these of `auth`.
fn with(fields: Value, auth: Value) -> String {
    let mut entry = json!({ "auth": { "auth_url": "https://keystone.example:5000" } });
    let (Value::Object(fields), Value::Object(auth)) = (fields, auth) else {
        panic!("both are maps");
    };
    entry["auth"].as_object_mut().unwrap().extend(auth);
    entry.as_object_mut().unwrap().extend(fields);
    // JSON is YAML.
    json!({ "clouds": { "openstack": entry } }).to_string()
}

fn by_password() -> Value {
    json!({ "username": "u", "password": "p4ss", "user_domain_name": "Default", "project_name": "demo", "project_domain_id": "default" })
}

fn sent(yaml: &str) -> Value {
    read(yaml).unwrap().auth.body()["auth"].clone()
}

#[test]
fn every_way_to_log_in_becomes_what_keystone_expects() {
    let user = json!({ "name": "u", "domain": { "name": "Default" }, "password": "p4ss" });
    let project = json!({ "project": { "name": "demo", "domain": { "id": "default" } } });
    let password = json!({ "identity": { "methods": ["password"], "password": { "user": user } }, "scope": project });
    for kind in [
        json!({}),
        json!({ "auth_type": "password" }),
        json!({ "auth_type": "v3password" }),
    ] {
        assert_eq!(sent(&with(kind, by_password())), password);
    }
    let by_ids = json!({ "user_id": "1", "password": "p4ss", "project_id": "2" });
    let expected = json!({
        "identity": { "methods": ["password"], "password": { "user": { "id": "1", "password": "p4ss" } } },
        "scope": { "project": { "id": "2" } },
    });
    assert_eq!(sent(&with(json!({}), by_ids)), expected);
    let by_id = json!({ "application_credential_id": "7", "application_credential_secret": "s" });
    let expected = json!({
        "identity": { "methods": ["application_credential"], "application_credential": { "id": "7", "secret": "s" } },
    });
    assert_eq!(sent(&with(json!({}), by_id)), expected);
    let by_name = json!({
        "application_credential_name": "n", "application_credential_secret": "s", "username": "u", "user_domain_id": "d",
    });
    let credential = json!({ "name": "n", "user": { "name": "u", "domain": { "id": "d" } }, "secret": "s" });
    let expected = json!({
        "identity": { "methods": ["application_credential"], "application_credential": credential },
    });
    assert_eq!(
        sent(&with(json!({ "auth_type": "v3applicationcredential" }), by_name)),
        expected
    );
    let expected =
        json!({ "identity": { "methods": ["token"], "token": { "id": "t" } }, "scope": { "system": { "all": true } } });
    assert_eq!(
        sent(&with(json!({}), json!({ "token": "t", "system_scope": "all" }))),
        expected
    );
    let of_one_domain = json!({ "username": "u", "password": "p4ss", "tenant_name": "demo", "domain_name": "d" });
    let expected = json!({
        "identity": { "methods": ["password"], "password": { "user": { "name": "u", "domain": { "name": "d" }, "password": "p4ss" } } },
        "scope": { "project": { "name": "demo", "domain": { "name": "d" } } },
    });
    assert_eq!(sent(&with(json!({}), of_one_domain)), expected);
}

#[test]
fn keystone_is_found_with_and_without_its_version() {
    for (written, meant) in [
        ("https://keystone.example:5000", "https://keystone.example:5000/v3"),
        ("https://keystone.example:5000/", "https://keystone.example:5000/v3"),
        ("https://keystone.example:5000/v3", "https://keystone.example:5000/v3"),
        (
            "https://keystone.example/identity/v3/",
            "https://keystone.example/identity/v3",
        ),
        (
            "http://keystone.example/identity",
            "http://keystone.example/identity/v3",
        ),
    ] {
        let mut auth = by_password();
        auth["auth_url"] = written.into();
        assert_eq!(read(&with(json!({}), auth)).unwrap().auth_url.as_str(), meant);
    }
}

#[test]
fn what_is_beside_the_way_to_log_in_is_read() {
    let fields = json!({
        "region_name": "R", "endpoint_type": "internalURL", "image_endpoint_override": "https://images.example/image/",
        "identity_api_version": 3, "verify": false, "cacert": "-----BEGIN CERTIFICATE-----",
    });
    let read = read(&with(fields, by_password())).unwrap();
    assert_eq!(read.region.as_deref(), Some("R"));
    assert_eq!(read.interface, Interface::Internal);
    assert_eq!(read.image_endpoint.unwrap().as_str(), "https://images.example/image");
    assert!(read.tls.is_blind);
    assert_eq!(read.tls.authorities.unwrap(), b"-----BEGIN CERTIFICATE-----");
    let plain = self::read(&with(json!({}), by_password())).unwrap();
    assert_eq!((plain.region, plain.interface), (None, Interface::Public));
    assert!(!plain.tls.is_blind);
}

#[test]
fn certificates_beside_the_file_take_the_place_of_paths() {
    let yaml = with(
        json!({ "cacert": "/etc/ca.pem", "cert": "/etc/c.pem", "key": "/etc/k.pem" }),
        by_password(),
    );
    let key = SecretString::from("K");
    let beside = Beside {
        cacert: Some("A"),
        cert: Some("C"),
        key: Some(&key),
    };
    let tls = cloud(yaml.as_bytes(), "openstack", beside).unwrap().tls;
    assert_eq!(tls.authorities.unwrap(), b"A");
    let (cert, key) = tls.client.unwrap();
    assert_eq!((cert.as_slice(), key.expose_secret()), (b"C".as_slice(), "K"));
}

#[test]
fn paths_to_certificates_that_lie_nowhere_beside_the_file_are_passed_over() {
    let paths = json!({ "cacert": "/etc/ca.pem", "cert": "~/c.pem", "key": "k.pem" });
    let read = read(&with(paths, by_password())).unwrap();
    assert!(read.tls.authorities.is_none() && read.tls.client.is_none() && !read.tls.is_blind);
}

#[test]
fn what_cannot_be_used_is_refused_with_what_to_do_and_without_secrets() {
    let auth = |field: &str, value: Value| {
        let mut auth = by_password();
        auth[field] = value;
        with(json!({}), auth)
    };
    let field = |field: &str, value: Value| with(json!({ field: value }), by_password());
    for (yaml, words) in [
        (field("profile", "vexxhost".into()), "write all of its fields down"),
        (field("cloud", "vexxhost".into()), "write all of its fields down"),
        (
            field("auth_type", "v3oidcpassword".into()),
            "use v3applicationcredential, password or token",
        ),
        (
            field("cert", "-----BEGIN CERTIFICATE-----".into()),
            "give both or neither",
        ),
        (field("interface", "secret".into()), "public, internal or admin"),
        (field("identity_api_version", 2.into()), "has to be 3"),
        (field("verify", "maybe".into()), "true or false"),
        (field("image_endpoint_override", "images".into()), "is no URL"),
        (auth("auth_url", "ftp://k.example".into()), "https://"),
        (
            auth("auth_url", "https://u:p4ss@k.example".into()),
            "leave the rest out",
        ),
        (auth("auth_url", "https://k.example/?p4ss".into()), "leave the rest out"),
        (auth("password", 4455.into()), "put it in quotes"),
        (auth("username", Value::Null), "username in clouds.yaml is missing"),
        (
            auth("project_name", Value::Null),
            "project_name in clouds.yaml is missing",
        ),
        (
            auth("user_domain_name", Value::Null),
            "user_domain_name in clouds.yaml is missing",
        ),
        (auth("system_scope", "p4ss".into()), "has to be all"),
        ("clouds: {other: {}}".to_owned(), "name one of those that it has: other"),
        ("clouds: {openstack: p4ss}".to_owned(), "cannot be read"),
        ("openstack: {auth: {password: p4ss}}".to_owned(), "cannot be read"),
        (
            "clouds:\n  openstack: {password: p4ss".to_owned(),
            "cannot be read at line",
        ),
        (format!("# {}", "x".repeat(300_000)), "more than"),
    ] {
        let error = read(&yaml).expect_err(&yaml).to_string();
        assert!(error.contains(words), "{words}: {error}");
        assert!(!error.contains("p4ss") && !error.contains("4455"), "{error}");
    }
}

#[test]
fn what_is_read_never_prints_its_secrets() {
    let printed = format!("{:?}", read(&with(json!({}), by_password())).unwrap());
    assert!(!printed.contains("p4ss"), "{printed}");
}
