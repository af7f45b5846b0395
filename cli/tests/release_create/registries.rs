//! Charts that an add-on needs and that are in a registry: fetched where it is named, with the logins of those who call.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    process::Command,
    thread,
};

use release::Digest;
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{create, path, stack_with, text};

/// A registry without TLS and with a password, which has the chart quay in these versions; gives its host.
fn registry(charts: &[(&'static str, Vec<u8>)]) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let charts: Vec<_> = charts
        .iter()
        .map(|(version, archive)| (*version, manifest(archive), archive.clone()))
        .collect();
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), &charts);
        }
    });
    host
}

fn manifest(archive: &[u8]) -> String {
    let layer = json!({
        "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
        "digest": Digest::of(archive).to_string(),
        "size": archive.len()
    });
    let config = json!({
        "mediaType": "application/vnd.cncf.helm.config.v1+json",
        "digest": Digest::of(b"{}").to_string(),
        "size": 2
    });
    json!({ "schemaVersion": 2, "config": config, "layers": [layer] }).to_string()
}

fn answer(mut stream: TcpStream, charts: &[(&str, String, Vec<u8>)]) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).unwrap() == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let head = text(&head);
    let path = head.split(' ').nth(1).unwrap().trim_start_matches("/v2/charts/quay/");
    let is_known = head
        .to_lowercase()
        .contains("authorization: basic agfyym9yonnly3jlda==");
    let (status, content) = if !is_known {
        ("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"stub\"", Vec::new())
    } else if path.starts_with("tags/list") {
        let tags: Vec<_> = charts.iter().map(|(version, ..)| *version).collect();
        ("200 OK", json!({ "tags": tags }).to_string().into_bytes())
    } else {
        let found = charts.iter().find_map(|(version, manifest, archive)| {
            let is_blob = path == format!("blobs/{}", Digest::of(archive));
            let is_manifest = path == format!("manifests/{version}");
            is_blob
                .then(|| archive.clone())
                .or_else(|| is_manifest.then(|| manifest.clone().into_bytes()))
        });
        found.map_or(("404 Not Found", Vec::new()), |content| ("200 OK", content))
    };
    let length = content.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(&[head.as_bytes(), &content].concat()).unwrap();
}

/// The archive of the chart quay in this version.
fn quay(version: &str) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("quay")).unwrap();
    let chart = format!("apiVersion: v2\nname: quay\nversion: {version}\n");
    fs::write(folder.path().join("quay/Chart.yaml"), chart).unwrap();
    let packed = Command::new("tar")
        .args(["-czf", "-", "-C", path(folder.path()), "quay"])
        .output()
        .unwrap();
    assert!(packed.status.success(), "{}", text(&packed.stderr));
    packed.stdout
}

#[test]
fn chart_that_an_addon_needs_is_fetched_from_a_registry_that_is_named_and_is_told() {
    let (stack, output, folder) = (stack_with(""), TempDir::new().unwrap(), TempDir::new().unwrap());
    let charts = ["1.2.3", "1.2.10", "1.3.0"].map(|version| (version, quay(version)));
    let host = registry(&charts);
    let place = format!("oci://{host}/charts");
    let file = stack.path().join("cluster-addon/network/Chart.yaml");
    let chart = fs::read_to_string(&file).unwrap();
    let dependency = format!("dependencies:\n- {{name: quay, version: ~1.2.0, repository: '{place}'}}\n");
    fs::write(&file, format!("{chart}\n{dependency}")).unwrap();
    let logins = folder.path().join("logins.json");
    // harbor and secret
    let login = json!({ "auths": { host.clone(): { "auth": "aGFyYm9yOnNlY3JldA==" } } });
    fs::write(&logins, login.to_string()).unwrap();

    let arguments = [path(stack.path()), "--output", path(output.path()), "--version", "v1"];
    let run = |more: &[&str]| create(&[&arguments[..], more].concat());
    let refusal = |more: &[&str]| {
        let refused = run(more);
        assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stdout));
        text(&refused.stderr).to_owned()
    };
    let named = ["--chart-registry", &place, "--plain-http"];
    let reached = [&named[..], &["--allow-source-network", "127.0.0.0/8"]].concat();
    let nobody = [&reached[..], &["--registry-config", "/dev/null"]].concat();
    let nowhere = [&reached[..], &["--registry-config", "/nowhere/logins.json"]].concat();
    for (more, words) in [
        (&[][..], format!("or have it fetched with --chart-registry {place}")),
        (
            &named[..],
            "name its network with the flag --allow-source-network".to_owned(),
        ),
        (&nobody[..], "/dev/null: is no file with logins".to_owned()),
        (&nowhere[..], "/nowhere/logins.json: unable to read it".to_owned()),
    ] {
        let message = refusal(more);
        assert!(message.contains(&words), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert_eq!(fs::read_dir(output.path()).unwrap().count(), 0);

    let made = run(&[&reached[..], &["--registry-config", path(&logins)]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let digest = Digest::of(manifest(&charts[1].1).as_bytes());
    let into = stack.path().join("cluster-addon/network");
    assert_eq!(
        text(&made.stderr),
        format!(
            "note: {}: takes quay 1.2.10 from {place}/quay:1.2.10@{digest}\n",
            into.display()
        )
    );
    assert!(output.path().join("docker-harbor-1-34-v1").is_dir());
}

#[test]
fn logins_of_helm_and_docker_are_used_where_no_file_is_named() {
    let (stack, folder) = (stack_with(""), TempDir::new().unwrap());
    let host = registry(&[("1.2.3", quay("1.2.3"))]);
    let place = format!("oci://{host}/charts");
    let file = stack.path().join("cluster-addon/network/Chart.yaml");
    let chart = fs::read_to_string(&file).unwrap();
    let dependency = format!("dependencies:\n- {{name: quay, version: 1.2.3, repository: '{place}'}}\n");
    fs::write(&file, format!("{chart}\n{dependency}")).unwrap();
    for (home, written) in [
        ("nobody", None),
        ("docker", Some(".docker/config.json")),
        ("helm", Some(".config/helm/registry/config.json")),
    ] {
        let home = folder.path().join(home);
        if let Some(written) = written {
            let file = home.join(written);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let login = json!({ "auths": { host.clone(): { "auth": "aGFyYm9yOnNlY3JldA==" } } });
            fs::write(file, login.to_string()).unwrap();
        }
        let output = home.join("releases");
        let made = Command::new(env!("CARGO_BIN_EXE_kubectl-stacks"))
            .args(["release", "create", path(stack.path()), "--output", path(&output)])
            .args(["--chart-registry", &place, "--plain-http"])
            .args(["--allow-source-network", "127.0.0.0/8"])
            .env("HOME", &home)
            .env_remove("DOCKER_CONFIG")
            .env_remove("HELM_REGISTRY_CONFIG")
            .env_remove("HELM_CONFIG_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .output()
            .unwrap();
        let expected = i32::from(written.is_none());
        assert_eq!(made.status.code(), Some(expected), "{home:?}: {}", text(&made.stderr));
        assert_eq!(output.join("docker-harbor-1-34-v1").is_dir(), written.is_some());
    }
}
