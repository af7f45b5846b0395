use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use k8s_openapi::ByteString;
use rcgen::{CertificateParams, KeyPair};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use super::*;

#[path = "../../../../fuzz/src/brief.rs"]
mod brief;
#[path = "../../../../fuzz/src/kubeconfig.rs"]
mod target;

/// What stands where nobody may read it.
const CANARY: &str = "c4n4ry-0f-the-harb0ur";

/// An authority, and a client's certificate with its key.
struct Pair {
    certificate: String,
    key: String,
}

fn pair() -> Pair {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["admin".to_owned()]).unwrap();
    Pair {
        certificate: STANDARD.encode(certificate.self_signed(&key).unwrap().pem()),
        key: STANDARD.encode(key.serialize_pem()),
    }
}

/// As Cluster API writes it.
fn kubeconfig(pair: &Pair) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "one", "cluster": {
            "server": "https://10.1.2.3:6443", "certificate-authority-data": pair.certificate,
        } }],
        "users": [{ "name": "one-admin", "user": {
            "client-certificate-data": pair.certificate, "client-key-data": pair.key,
        } }],
        "contexts": [{ "name": "one-admin@one", "context": { "cluster": "one", "user": "one-admin" } }],
        "current-context": "one-admin@one",
        "preferences": {},
    })
}

fn parse(kubeconfig: &Value) -> Result<Access, KubeconfigError> {
    Access::parse(kubeconfig.to_string().as_bytes(), Addresses::default())
}

/// With this at that place.
fn with(pair: &Pair, pointer: &str, value: Value) -> Value {
    let mut changed = kubeconfig(pair);
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    match changed.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[field.parse::<usize>().unwrap()] = value,
        object => object[field] = value,
    }
    changed
}

const CLUSTER: &str = "/clusters/0/cluster";
const USER: &str = "/users/0/user";

#[test]
fn what_cluster_api_writes_is_a_server_an_authority_and_a_certificate() {
    let pair = pair();
    let access = parse(&kubeconfig(&pair)).unwrap();
    assert_eq!(access.server().to_string(), "https://10.1.2.3:6443/");
    let config = access.config();
    assert_eq!(config.root_cert.as_ref().map(Vec::len), Some(1));
    assert_eq!(config.auth_info.client_certificate_data, Some(pair.certificate));
    let key = config.auth_info.client_key_data.unwrap();
    assert_eq!(key.expose_secret(), pair.key);
    assert_eq!(config.tls_server_name, None);
}

#[test]
fn what_is_in_base64_may_have_several_lines() {
    let pair = pair();
    for end in ["\n", "\r\n"] {
        let mut text = kubeconfig(&pair);
        for (place, field, data) in [
            (CLUSTER, "certificate-authority-data", &pair.certificate),
            (USER, "client-certificate-data", &pair.certificate),
            (USER, "client-key-data", &pair.key),
        ] {
            let (first, rest) = data.split_at(64);
            text.pointer_mut(place).unwrap()[field] = json!(format!("{first}{end}{rest}{end}"));
        }
        let config = parse(&text).unwrap().config();
        assert_eq!(config.root_cert.as_ref().map(Vec::len), Some(1));
        assert_eq!(
            config.auth_info.client_certificate_data.as_ref(),
            Some(&pair.certificate)
        );
        assert_eq!(config.auth_info.client_key_data.unwrap().expose_secret(), pair.key);
    }
}

#[test]
fn a_token_does_for_a_certificate() {
    let text = with(&pair(), USER, json!({ "token": "a.b-c" }));
    let config = parse(&text).unwrap().config();
    assert_eq!(config.auth_info.token.unwrap().expose_secret(), "a.b-c");
    assert!(config.auth_info.client_key_data.is_none());
}

#[test]
fn yaml_is_read_like_json_and_the_name_of_the_server_is_kept() {
    let mut text = with(&pair(), &format!("{CLUSTER}/tls-server-name"), json!("kubernetes"));
    text["clusters"][0]["cluster"]["server"] = json!("https://api.example.org/k8s/clusters/one/");
    let yaml = serde_yaml::to_string(&text).unwrap();
    let access = Access::parse(yaml.as_bytes(), Addresses::default()).unwrap();
    assert_eq!(access.server().to_string(), "https://api.example.org/k8s/clusters/one");
    assert_eq!(access.config().tls_server_name.as_deref(), Some("kubernetes"));
    assert!(!access.is_same(&parse(&text).unwrap()), "other bytes");
    assert!(access.is_same(&Access::parse(yaml.as_bytes(), Addresses::default()).unwrap()));
}

/// Every field that we do not obey, where it stands, and what it says.
fn forbidden() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        (CLUSTER, "certificate-authority", json!(format!("/tmp/{CANARY}"))),
        (CLUSTER, "insecure-skip-tls-verify", json!(true)),
        (CLUSTER, "proxy-url", json!(format!("socks5://{CANARY}:1080"))),
        (
            USER,
            "exec",
            json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": CANARY }),
        ),
        (USER, "auth-provider", json!({ "name": CANARY })),
        (USER, "client-certificate", json!(format!("/tmp/{CANARY}"))),
        (USER, "client-key", json!(format!("/tmp/{CANARY}"))),
        (USER, "tokenFile", json!(format!("/tmp/{CANARY}"))),
        (USER, "username", json!(CANARY)),
        (USER, "password", json!(CANARY)),
        (USER, "as", json!(CANARY)),
        (USER, "as-uid", json!(7)),
        (USER, "as-groups", json!([CANARY])),
        (USER, "as-user-extra", json!({ CANARY: ["x"] })),
    ]
}

#[test]
fn what_would_change_where_we_go_or_as_whom_is_refused_by_the_name_of_its_field() {
    let pair = pair();
    for (place, field, value) in forbidden() {
        let text = with(&pair, &format!("{place}/{field}"), value);
        let error = parse(&text).unwrap_err();
        assert!(
            matches!(error, KubeconfigError::Forbidden { field: named, .. } if named == field),
            "{field}: {error}"
        );
        assert!(!error.to_string().contains(CANARY), "{error}");
    }
}

#[test]
fn a_field_that_says_nothing_is_as_good_as_none() {
    let pair = pair();
    for (place, field, value) in forbidden() {
        let nothing = match value {
            Value::String(_) => json!(""),
            Value::Bool(_) => json!(false),
            Value::Array(_) => json!([]),
            Value::Object(_) => json!({}),
            _ => Value::Null,
        };
        assert!(
            parse(&with(&pair, &format!("{place}/{field}"), nothing)).is_ok(),
            "{field}"
        );
    }
}

#[test]
fn no_program_is_run_and_no_file_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("marker");
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [&marker], "interactiveMode": "Never",
    });
    let pair = pair();
    parse(&with(&pair, &format!("{USER}/exec"), exec)).unwrap_err();
    assert!(!marker.exists());
    // Whoever opens one of these waits for ever.
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    for (place, field, _) in forbidden() {
        parse(&with(&pair, &format!("{place}/{field}"), json!(&pipe))).unwrap_err();
    }
}

#[test]
fn only_servers_are_good_that_are_reached_by_tls_at_the_address_of_a_cluster() {
    let pair = pair();
    let server = |server: &str, loopback| {
        let text = with(&pair, &format!("{CLUSTER}/server"), json!(server)).to_string();
        Access::parse(text.as_bytes(), Addresses { loopback })
    };
    for bad in [
        "",
        "nonsense",
        "http://10.1.2.3:6443",
        "ftp://10.1.2.3",
        "unix:///run/c4n4ry-0f-the-harb0ur.sock",
        "https://me:c4n4ry-0f-the-harb0ur@10.1.2.3",
        "https://c4n4ry-0f-the-harb0ur@10.1.2.3",
        "https://10.1.2.3/?token=c4n4ry-0f-the-harb0ur",
        "https://10.1.2.3/#c4n4ry-0f-the-harb0ur",
        "https://169.254.169.254/",
        "https://0.0.0.0:6443",
        "https://[fe80::1]:6443",
        "https://[::]:6443",
        "https://[::ffff:169.254.169.254]:6443",
        "https://2852039166/",
    ] {
        let error = server(bad, true).unwrap_err();
        assert!(
            matches!(error, KubeconfigError::Field { field: "server", .. }),
            "{bad}: {error}"
        );
        assert!(!format!("{error} {error:?}").contains(CANARY), "{error}");
    }
    for own in [
        "https://127.0.0.1:6443",
        "https://[::1]:6443",
        "https://localhost:6443",
        "https://api.localhost.:6443",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f.0.0.1/",
    ] {
        assert!(server(own, false).is_err(), "{own}");
        assert!(server(own, true).is_ok(), "{own}");
    }
    for good in [
        "https://api.example.org",
        "https://[2001:db8::1]:6443/",
        "https://172.18.0.3:6443",
    ] {
        assert!(server(good, false).is_ok(), "{good}");
    }
}

#[test]
fn the_context_that_is_named_is_used_and_otherwise_the_only_one() {
    let pair = pair();
    let unnamed = with(&pair, "/current-context", json!(""));
    assert!(parse(&unnamed).is_ok());
    let context = unnamed["contexts"][0].clone();
    let mut two = unnamed;
    two["contexts"] = json!([context, { "name": "other", "context": { "cluster": "x", "user": "x" } }]);
    let error = parse(&two).unwrap_err();
    assert!(matches!(error, KubeconfigError::Choose { .. }), "{error}");
    two["current-context"] = json!("one-admin@one");
    assert!(parse(&two).is_ok(), "what it does not use may be anything");
    for (name, changed) in [
        ("no such context", with(&pair, "/current-context", json!(CANARY))),
        (
            "no such cluster",
            with(&pair, "/contexts/0/context/cluster", json!(CANARY)),
        ),
        ("no such user", with(&pair, "/contexts/0/context/user", json!(CANARY))),
        ("no contexts", with(&pair, "/contexts", Value::Null)),
        ("an empty context", with(&pair, "/contexts/0/context", Value::Null)),
        ("two of one name", with(&pair, "/contexts", json!([context, context]))),
        ("no user", with(&pair, USER, Value::Null)),
    ] {
        let error = parse(&changed).unwrap_err();
        assert!(matches!(error, KubeconfigError::Choose { .. }), "{name}: {error}");
        assert!(!format!("{error} {error:?}").contains(CANARY), "{error}");
    }
}

#[test]
fn what_cannot_be_used_is_told_without_what_stands_there() {
    let (pair, other) = (pair(), pair());
    let hidden = STANDARD.encode(CANARY);
    let broken = STANDARD.encode(format!(
        "-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n"
    ));
    let at = |place: &str, field: &str, value: Value| with(&pair, &format!("{place}/{field}"), value);
    let cases = [
        (
            "certificate-authority-data",
            at(CLUSTER, "certificate-authority-data", Value::Null),
        ),
        (
            "certificate-authority-data",
            at(CLUSTER, "certificate-authority-data", json!(CANARY)),
        ),
        (
            "certificate-authority-data",
            at(CLUSTER, "certificate-authority-data", json!(hidden)),
        ),
        (
            "tls-server-name",
            at(CLUSTER, "tls-server-name", json!(format!("{CANARY} x"))),
        ),
        (
            "client-certificate-data",
            at(USER, "client-certificate-data", json!(hidden)),
        ),
        (
            "client-certificate-data",
            at(USER, "client-certificate-data", Value::Null),
        ),
        ("client-key-data", at(USER, "client-key-data", json!(CANARY))),
        ("client-key-data", at(USER, "client-key-data", json!(hidden))),
        ("client-key-data", at(USER, "client-key-data", json!(broken))),
        ("client-key-data", at(USER, "client-key-data", json!(other.key))),
        ("client-key-data", at(USER, "client-key-data", Value::Null)),
        ("token", at(USER, "token", json!(CANARY))),
        (
            "token",
            with(&pair, USER, json!({ "token": format!("{CANARY}\r\nhost: x") })),
        ),
    ];
    for (field, changed) in cases {
        let error = parse(&changed).unwrap_err();
        assert!(
            matches!(error, KubeconfigError::Field { field: named, .. } if named == field),
            "{field}: {error}"
        );
        let told = format!("{error} {error:?}");
        assert!(!told.contains(CANARY) && !told.contains(&hidden), "{told}");
        assert!(error.source().is_none());
    }
}

#[test]
fn what_is_no_kubeconfig_is_told_by_its_line_alone() {
    let cases: [&[u8]; 8] = [
        b"",
        b"c4n4ry-0f-the-harb0ur",
        b"clusters: c4n4ry-0f-the-harb0ur",
        b"users:\n- user:\n    token: [c4n4ry-0f-the-harb0ur]",
        b"users:\n- user: c4n4ry-0f-the-harb0ur",
        b"users:\n- user:\n    token: a\n    token: c4n4ry-0f-the-harb0ur",
        b"\xff\xfe\0",
        b"a: b\n---\nc4n4ry-0f-the-harb0ur: d",
    ];
    for bytes in cases {
        let error = Access::parse(bytes, Addresses::default()).unwrap_err();
        assert!(
            matches!(error, KubeconfigError::Parse { .. } | KubeconfigError::Choose { .. }),
            "{error}"
        );
        assert!(!format!("{error} {error:?}").contains(CANARY), "{error}");
    }
}

#[test]
fn nothing_that_is_large_or_says_so_takes_more_than_it_may() {
    let begun = Instant::now();
    let long = vec![b' '; KUBECONFIG_LIMIT + 1];
    assert_eq!(
        Access::parse(&long, Addresses::default()).unwrap_err(),
        KubeconfigError::Size
    );
    // Nine levels of nine, in a field that nobody reads and in one that is only looked for.
    let mut bomb = "a0: &a0 [x]\n".to_owned();
    for level in 1..9 {
        let list = vec![format!("*a{}", level - 1); 9].join(",");
        writeln!(bomb, "a{level}: &a{level} [{list}]").unwrap();
    }
    for field in ["unknown: *a8", "users: [{ user: { exec: *a8 } }]"] {
        Access::parse(format!("{bomb}{field}\n").as_bytes(), Addresses::default()).unwrap_err();
    }
    // One long text that stands everywhere.
    let text = "x".repeat(400 << 10);
    let users = vec!["{ name: *t, user: { token: *t, client-key-data: *t } }"; 10_000].join(",");
    let copied = format!("t: &t {text}\nusers: [{users}]\n");
    Access::parse(copied.as_bytes(), Addresses::default()).unwrap_err();
    let deep = "[".repeat(100_000);
    Access::parse(deep.as_bytes(), Addresses::default()).unwrap_err();
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn of_a_secret_only_its_type_and_its_value_count() {
    let text = kubeconfig(&pair()).to_string();
    let secret = |kind: &str, key: &str| Secret {
        type_: Some(kind.to_owned()),
        data: Some(BTreeMap::from([(
            key.to_owned(),
            ByteString(text.clone().into_bytes()),
        )])),
        ..Secret::default()
    };
    let read = |secret| Access::of_secret(secret, Addresses::default());
    assert!(read(secret(SECRET_TYPE, SECRET_KEY)).is_ok());
    assert_eq!(
        read(secret("Opaque", SECRET_KEY)).unwrap_err(),
        KubeconfigError::SecretType
    );
    assert_eq!(
        read(secret(SECRET_TYPE, "other")).unwrap_err(),
        KubeconfigError::SecretKey
    );
}

#[test]
fn what_is_printed_of_an_access_shows_nothing() {
    let token = with(&pair(), USER, json!({ "token": CANARY }));
    let access = parse(&token).unwrap();
    assert_eq!(format!("{access:?}"), "Access(..)");
    assert!(!format!("{:?}", access.config()).contains(CANARY));
}

/// A moment of what `cargo xtask fuzz coverage kubeconfig` does for long.
#[test]
fn whatever_the_bytes_are_a_kubeconfig_leads_nowhere_but_to_a_server() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let seeds = brief::seeds(&fuzz.join("seeds/kubeconfig"));
    for (seed, bytes) in &seeds {
        assert_eq!(target::kubeconfig(bytes), seed.starts_with("good"), "{seed}");
    }
    let found = fuzz.join("found/kubeconfig");
    if found.is_dir() {
        for (found, bytes) in brief::seeds(&found) {
            eprintln!("{found}");
            target::kubeconfig(&bytes);
        }
    }
    let mut numbers = brief::Numbers::of(1);
    for _ in 0..3000 {
        let input = brief::changed(&seeds, &mut numbers);
        let held = std::panic::catch_unwind(|| target::kubeconfig(&input)).is_ok();
        assert!(held, "{:?}", String::from_utf8_lossy(&input));
    }
}
