//! Charts that charts of a stack need, fetched from registries: a real one that the real Helm fills, and one that does what none should.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use release::{
    Digest, Release,
    http::{Network, NetworkOptions, SecretString},
    pack::{self, ChartRegistries, Origin, PackError, Preparation, Prepared, Supply, Versioning},
    source::oci::Logins,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{process::Command, task, time};

use crate::{
    fixture::{Archive, admitted, chain, tag},
    lab::helm,
    oci_stub::MANIFEST,
    packing_dependencies::{CSCTL, archive, newest, write},
    registry::{self, PASSWORD, Registry, SOON, USER},
    stub::{self, Asked, NAMES, Reply, Stub, authority},
};

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// A stack of one add-on chart with these dependencies.
fn stack(folder: &Path, dependencies: &str) -> PathBuf {
    let stack = folder.join("stack");
    write(&stack, "csctl.yaml", CSCTL);
    write(
        &stack,
        "cluster-class/Chart.yaml",
        "apiVersion: v2\nname: openstack-scs2-1-34-cluster-class\nversion: v1\n",
    );
    let stages = "addonStages: {AfterControlPlaneInitialized: [{name: cni, action: apply}]}\n";
    write(&stack, "clusteraddon.yaml", stages);
    let chart = format!("apiVersion: v2\nname: cni\nversion: v1\ndependencies:\n{dependencies}");
    write(&stack, "cluster-addon/cni/Chart.yaml", &chart);
    stack
}

/// Charts as a registry has them.
#[derive(Clone, Default)]
struct Shop {
    /// By chart and tag.
    manifests: BTreeMap<(String, String), String>,
    /// By digest.
    blobs: BTreeMap<String, Vec<u8>>,
}

impl Shop {
    fn of(versions: &[&str]) -> Self {
        let mut shop = Self::default();
        for version in versions {
            shop.push("cilium", version, &archive("cilium", version));
        }
        shop.push("cilium", "latest", &archive("cilium", "9.9.9"));
        shop
    }

    fn push(&mut self, chart: &str, version: &str, archive: &[u8]) {
        let digest = Digest::of(archive).to_string();
        self.put(chart, version, CONFIG, &digest, archive.len());
        self.blobs.insert(digest, archive.to_vec());
    }

    fn put(&mut self, chart: &str, version: &str, config: &str, digest: &str, size: usize) {
        let manifest = json!({
            "schemaVersion": 2,
            "config": {"mediaType": config, "digest": Digest::of(b"{}").to_string(), "size": 2},
            "layers": [
                {"mediaType": CONTENT, "digest": digest, "size": size},
                {"mediaType": "application/vnd.cncf.helm.chart.provenance.v1.prov", "digest": Digest::of(b"").to_string(), "size": 0}
            ]
        });
        let place = (chart.to_owned(), version.replace('+', "_"));
        self.manifests.insert(place, manifest.to_string());
    }

    fn digest(&self, version: &str) -> Digest {
        let place = ("cilium".to_owned(), version.replace('+', "_"));
        Digest::of(self.manifests[&place].as_bytes())
    }

    fn answer(&self, asked: &Asked) -> Reply {
        let nothing = || Reply::of(404, &[], r#"{"errors":[{"code":"NAME_UNKNOWN"}]}"#);
        let path = asked.target.strip_prefix("/v2/charts/").unwrap_or_default();
        let Some((chart, path)) = path.split_once('/') else {
            return nothing();
        };
        if path.starts_with("tags/list") {
            let places = self.manifests.keys().filter(|(name, _)| name == chart);
            let tags: Vec<_> = places.map(|(_, tag)| tag).collect();
            return if tags.is_empty() {
                nothing()
            } else {
                Reply::of(200, &[], json!({ "tags": tags }).to_string())
            };
        }
        let manifest = path.strip_prefix("manifests/");
        if let Some(manifest) = manifest.and_then(|tag| self.manifests.get(&(chart.to_owned(), tag.to_owned()))) {
            return Reply::of(200, &[("Content-Type", MANIFEST)], manifest);
        }
        match path.strip_prefix("blobs/").and_then(|digest| self.blobs.get(digest)) {
            Some(blob) => Reply::of(200, &[], blob),
            None => nothing(),
        }
    }

    async fn serve(self) -> Stub {
        Stub::new(move |asked| self.answer(asked)).await
    }
}

/// Where the charts of a stub are.
fn address(stub: &Stub) -> String {
    format!("oci://{}:{}/charts", NAMES[0], stub.url("/").port().unwrap())
}

fn registries(network: Network, place: &str, certificates: &[u8]) -> ChartRegistries {
    ChartRegistries {
        network,
        places: vec![place.parse().unwrap()],
        logins: Logins::default(),
        certificates: Some(certificates.to_vec()),
        plain_http: false,
        token_hosts: Vec::new(),
    }
}

fn of_stub(stub: &Stub) -> ChartRegistries {
    registries(stub::network(), &address(stub), authority())
}

/// Prepared in a thread of its own, for that waits.
async fn prepared(
    stack: &Path,
    charts: Option<&Path>,
    registries: Option<&ChartRegistries>,
) -> Result<Prepared, PackError> {
    let (stack, charts, registries) = (stack.to_owned(), charts.map(Path::to_owned), registries.cloned());
    let work = move || {
        let versioning = Versioning::Given("v1".parse().unwrap());
        let supply = Supply {
            charts: charts.as_deref(),
            registries: registries.as_ref(),
            newest,
        };
        let output = stack.with_file_name("releases");
        match pack::prepare(&stack, &output, &versioning, Some(supply))? {
            Preparation::Prepared(prepared) => Ok(prepared),
            Preparation::Unchanged { since } => panic!("unchanged since {since}"),
        }
    };
    task::spawn_blocking(work).await.unwrap()
}

/// The error without the folder of the test and the port of the stub.
async fn refusal(stack: &Path, stub: &Stub, charts: Option<&Path>, registries: &ChartRegistries) -> String {
    let error = prepared(stack, charts, Some(registries)).await.unwrap_err();
    let folder = format!("{}/", stack.parent().unwrap().display());
    let port = format!(":{}/", stub.url("/").port().unwrap());
    chain(&error).replace(&folder, "").replace(&port, "/")
}

/// The dependency cilium in this range, of this stub.
fn cilium(stub: &Stub, range: &str) -> String {
    format!("- name: cilium\n  repository: {}/\n  version: {range}\n", address(stub))
}

fn supplied(made: &Prepared) -> Vec<String> {
    let supplied = made.supplied().iter();
    supplied
        .map(|supplied| format!("{} {} from {}", supplied.name, supplied.version, supplied.from))
        .collect()
}

/// Runs the real Helm in this folder, and with no configuration but that of the folder. Waits as a task does: what a registry says is read meanwhile,
/// and one that nobody hears stops.
async fn run_helm(folder: &Path, arguments: &[&str]) {
    let process = Command::new(helm())
        .args(arguments)
        .current_dir(folder)
        .env("HOME", folder)
        .env("DOCKER_CONFIG", folder)
        .env("HELM_CONFIG_HOME", folder)
        .env("HELM_CACHE_HOME", folder)
        .env("HELM_DATA_HOME", folder)
        .kill_on_drop(true)
        .output();
    let ran = time::timeout(SOON, process).await.expect("helm ends").unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "helm {arguments:?}: {said}");
}

#[tokio::test]
async fn what_the_real_helm_has_pushed_to_a_real_registry_is_in_the_release_to_the_byte() {
    let (registry, folder) = (Registry::start().await, TempDir::new().unwrap());
    let place = format!("oci://{}/charts", registry.host);
    let authority = registry.file("ca.crt").display().to_string();
    for version in ["1.16.6", "1.17.3", "1.17.4+scs.1", "1.18.0"] {
        let chart = format!("apiVersion: v2\nname: cilium\nversion: {version}\n");
        write(folder.path(), "cilium/Chart.yaml", &chart);
        run_helm(folder.path(), &["package", "cilium"]).await;
        let file = format!("cilium-{version}.tgz");
        let login = ["--ca-file", &authority, "--username", USER, "--password", PASSWORD];
        run_helm(folder.path(), &[&["push", &file, &place][..], &login].concat()).await;
    }
    let dependency = format!("- name: cilium\n  repository: {place}\n  version: ~1.17.0\n");
    let stack = stack(folder.path(), &dependency);
    let mut registries = registries(registry::network(), &place, &registry.authority());
    let login = json!({ "auths": { registry.host.clone(): { "username": USER, "password": PASSWORD } } });
    registries.logins = Logins::parse(&SecretString::from(login.to_string())).unwrap();
    let made = prepared(&stack, None, Some(&registries)).await.unwrap();
    let [taken] = made.supplied() else {
        panic!("{:?}", made.supplied());
    };
    assert_eq!(taken.version, "1.17.4+scs.1");
    let Origin::Registry {
        tag: pulled, manifest, ..
    } = &taken.from
    else {
        panic!("{:?}", taken.from);
    };
    assert_eq!(pulled, "1.17.4_scs.1");
    let link = format!("storage/docker/registry/v2/repositories/charts/cilium/_manifests/tags/{pulled}/current/link");
    assert_eq!(fs::read_to_string(registry.file(&link)).unwrap(), manifest.to_string());

    let packed = made.write().unwrap();
    let release = Release::open(&packed.directory, &tag("openstack-scs2-1-34-v1")).unwrap();
    let stages = admitted(&release).read_stage_files(|_, _| true).unwrap();
    let files: BTreeMap<_, _> = stages["cni"].iter().cloned().collect();
    assert_eq!(
        files["charts/cilium-1.17.4+scs.1.tgz"],
        fs::read(folder.path().join("cilium-1.17.4+scs.1.tgz")).unwrap()
    );
    assert!(
        !stack.join("cluster-addon/cni/charts").exists(),
        "the stack stays as it is"
    );

    registries.logins = Logins::default();
    let refused = chain(&prepared(&stack, None, Some(&registries)).await.unwrap_err());
    let login = format!("; log in with `helm registry login {}`", registry.host);
    assert!(
        refused.contains(&login) && refused.contains("is not public"),
        "{refused}"
    );
}

#[tokio::test]
async fn newest_version_in_the_range_is_fetched_and_told_with_its_digest() {
    let folder = TempDir::new().unwrap();
    let shop = Shop::of(&["1.16.6", "1.17.3", "1.17.4", "1.18.0"]);
    let digest = shop.digest("1.17.4");
    let stub = shop.serve().await;
    let stack = stack(folder.path(), &cilium(&stub, "~1.17.0"));
    let made = prepared(&stack, None, Some(&of_stub(&stub))).await.unwrap();
    let from = format!("{}/cilium:1.17.4@{digest}", address(&stub));
    assert_eq!(supplied(&made), [format!("cilium 1.17.4 from {from}")]);
    let again = prepared(&stack, None, Some(&of_stub(&stub))).await.unwrap();
    assert_eq!(again, made);
}

#[tokio::test]
async fn whole_version_and_the_one_chosen_before_are_fetched_without_a_list() {
    let folder = TempDir::new().unwrap();
    let stub = Shop::of(&["1.17.3", "1.17.4", "1.17.9+scs.2"]).serve().await;
    let versions = async |range: &str| {
        let stack = stack(folder.path(), &cilium(&stub, range));
        let made = prepared(&stack, None, Some(&of_stub(&stub))).await.unwrap();
        (made.supplied()[0].version.clone(), stub.targets().len())
    };
    assert_eq!(versions("1.17.3").await, ("1.17.3".to_owned(), 2));
    assert_eq!(versions("1.17.9+scs.2").await, ("1.17.9+scs.2".to_owned(), 2));
    let lock = |version: &str| {
        let lock = format!("dependencies:\n- {{name: cilium, version: {version}}}\n");
        write(folder.path(), "stack/cluster-addon/cni/Chart.lock", &lock);
    };
    lock("1.17.3");
    assert_eq!(versions("~1.17.0").await, ("1.17.3".to_owned(), 2));
    // One that is gone, one that does not fit any more, and one that would lead elsewhere.
    for locked in ["1.17.1", "1.16.6", "1.17/../../../blobs"] {
        lock(locked);
        assert_eq!(versions("~1.17.0").await.0, "1.17.9+scs.2", "{locked}");
    }
}

#[tokio::test]
async fn a_version_that_is_not_there_is_named_with_those_that_are() {
    let folder = TempDir::new().unwrap();
    let stub = Shop::of(&["1.16.6", "1.18.0"]).serve().await;
    let begin = "stack/cluster-addon/cni/Chart.yaml:5: the dependency \"cilium\" of version";
    for range in ["~1.17.0", "1.17.4"] {
        let stack = stack(folder.path(), &cilium(&stub, range));
        assert_eq!(
            refusal(&stack, &stub, None, &of_stub(&stub)).await,
            format!(
                "{begin} {range:?} is not in charts/; oci://api.stub.test/charts/cilium has 1.18.0, 1.16.6: name a version that is there"
            )
        );
    }
    let elsewhere = cilium(&stub, "1.17.4").replace("name: cilium", "name: calico");
    let stack = stack(folder.path(), &elsewhere);
    let nowhere = refusal(&stack, &stub, None, &of_stub(&stub)).await;
    assert!(
        nowhere.ends_with("oci://api.stub.test/charts/calico has no version of it: correct the name or the repository"),
        "{nowhere}"
    );
}

#[tokio::test]
async fn nothing_is_asked_of_a_registry_that_nobody_named() {
    let folder = TempDir::new().unwrap();
    let stub = Shop::of(&["1.17.4"]).serve().await;
    let stack = stack(folder.path(), &cilium(&stub, "~1.17.0"));
    let elsewhere = registries(stub::network(), "oci://registry.example.com/charts", authority());
    let flag = "have it fetched with --chart-registry oci://api.stub.test/charts/";
    let refused = refusal(&stack, &stub, None, &elsewhere).await;
    assert!(
        refused.ends_with(&format!("it names the repository oci://api.stub.test/charts/: {flag}")),
        "{refused}"
    );
    fs::create_dir(folder.path().join("charts")).unwrap();
    let refused = refusal(&stack, &stub, Some(&folder.path().join("charts")), &elsewhere).await;
    assert!(
        refused.ends_with(&format!("charts has no version of it: put it there, or {flag}")),
        "{refused}"
    );
    write(
        &stack,
        "cluster-addon/cni/Chart.yaml",
        "name: cni\nversion: v1\ndependencies:\n- {name: cilium, repository: 'https://helm.cilium.io', version: 1.x}\n",
    );
    let refused = refusal(&stack, &stub, None, &of_stub(&stub)).await;
    assert!(
        refused.ends_with(
            "it names the repository https://helm.cilium.io: put it into a directory, and name that with --charts"
        ),
        "{refused}"
    );
    assert_eq!(stub.targets(), Vec::<String>::new());
}

#[tokio::test]
async fn directory_comes_first_and_what_its_charts_need_may_come_from_the_registry() {
    let folder = TempDir::new().unwrap();
    let mut shop = Shop::of(&["1.17.4"]);
    shop.push("common", "2.1.0", &archive("common", "2.1.0"));
    let stub = shop.serve().await;
    let dependencies = format!("{}- {{name: cinder, version: 2.x}}\n", cilium(&stub, "~1.17.0"));
    let stack = stack(folder.path(), &dependencies);
    let charts = folder.path().join("charts");
    let needs = format!(
        "name: cinder\nversion: 2.3.0\ndependencies: [{{name: common, version: 2.x.x, repository: '{}'}}]\n",
        address(&stub)
    );
    write(&charts, "cinder/Chart.yaml", &needs);
    fs::write(charts.join("cilium.tgz"), archive("cilium", "1.17.1")).unwrap();
    let made = prepared(&stack, Some(&charts), Some(&of_stub(&stub))).await.unwrap();
    let taken: Vec<_> = made
        .supplied()
        .iter()
        .map(|supplied| (supplied.name.as_str(), supplied.version.as_str()))
        .collect();
    assert_eq!(taken, [("cilium", "1.17.1"), ("cinder", "2.3.0"), ("common", "2.1.0")]);
    assert_eq!(made.supplied()[2].into, stack.join("cluster-addon/cni/charts/cinder"));
    let asked = stub.targets();
    assert!(
        asked.iter().all(|target| target.starts_with("/v2/charts/common/")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_tag_that_moves_between_list_and_pull_gives_no_chart_of_another_version() {
    let folder = TempDir::new().unwrap();
    let mut shop = Shop::of(&["1.17.3"]);
    shop.push("cilium", "1.17.4", &archive("cilium", "1.17.9"));
    let digest = shop.digest("1.17.4");
    let stub = shop.serve().await;
    let stack = stack(folder.path(), &cilium(&stub, "~1.17.0"));
    assert_eq!(
        refusal(&stack, &stub, None, &of_stub(&stub)).await,
        format!(
            "oci://api.stub.test/charts/cilium:1.17.4@{digest}: has the chart cilium 1.17.9, and not the chart cilium 1.17.4; push that under \
             this tag"
        )
    );
}

#[tokio::test]
async fn bytes_that_are_not_those_of_the_manifest_are_refused() {
    let folder = TempDir::new().unwrap();
    let good = archive("cilium", "1.17.4");
    let listed = Digest::of(&good).to_string();
    let other = vec![b'x'; good.len()];
    let (shorter, longer) = (good[..good.len() - 1].to_vec(), [&good[..], b"x"].concat());
    let substituted = [
        (other.clone(), format!("but gives {} in its place", Digest::of(&other))),
        (
            shorter.clone(),
            format!("but gives {} in its place", Digest::of(&shorter)),
        ),
        (longer, format!("has more than {} bytes", good.len())),
    ];
    for (bytes, words) in substituted {
        let mut shop = Shop::of(&["1.17.4"]);
        shop.blobs.insert(listed.clone(), bytes);
        let stub = shop.serve().await;
        let stack = stack(folder.path(), &cilium(&stub, "~1.17.0"));
        let refused = refusal(&stack, &stub, None, &of_stub(&stub)).await;
        assert!(refused.contains(&words), "{refused}");
        assert!(
            refused.starts_with(
                "stack/cluster-addon/cni/Chart.yaml:5: unable to fetch the dependency \"cilium\" of version \"~1.17.0\": "
            ),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn a_chart_that_is_too_large_is_not_fetched_and_one_that_unpacks_to_too_much_not_used() {
    let folder = TempDir::new().unwrap();
    let mut shop = Shop::of(&[]);
    let size = (5 << 20) + 1;
    shop.put("cilium", "1.17.4", CONFIG, &Digest::of(b"large").to_string(), size);
    let stub = shop.serve().await;
    let stack = stack(folder.path(), &cilium(&stub, "1.17.4"));
    let refused = refusal(&stack, &stub, None, &of_stub(&stub)).await;
    assert!(
        refused.ends_with(&format!(
            "the chart 1.17.4 in api.stub.test/charts/cilium has {size} bytes, more than the 5242880 allowed; leave out what is not needed"
        )),
        "{refused}"
    );
    assert_eq!(stub.targets(), ["/v2/charts/cilium/manifests/1.17.4"]);

    let bomb = Archive::chart("cilium").file("cilium/zeros", &vec![0; 6 << 20]).bytes();
    assert!(bomb.len() < 100_000);
    let mut shop = Shop::of(&[]);
    shop.push("cilium", "1.17.4", &bomb);
    let digest = shop.digest("1.17.4");
    let stub = shop.serve().await;
    write(
        &stack,
        "cluster-addon/cni/Chart.yaml",
        &format!("name: cni\nversion: v1\ndependencies:\n{}", cilium(&stub, "1.17.4")),
    );
    let refused = refusal(&stack, &stub, None, &of_stub(&stub)).await;
    let begin = format!(
        "oci://api.stub.test/charts/cilium:1.17.4@{digest}: is not the archive of a chart: has the entry \"cilium/zeros\""
    );
    assert!(refused.starts_with(&begin), "{refused}");
}

#[tokio::test]
async fn what_lies_under_the_tag_and_is_no_chart_is_told_what_it_is() {
    let folder = TempDir::new().unwrap();
    let image = "application/vnd.oci.image.config.v1+json";
    let mut shop = Shop::of(&[]);
    shop.put("cilium", "1.17.4", image, &Digest::of(b"layer").to_string(), 5);
    let stub = shop.serve().await;
    let stack = stack(folder.path(), &cilium(&stub, "1.17.4"));
    let refused = refusal(&stack, &stub, None, &of_stub(&stub)).await;
    assert!(
        refused.ends_with(&format!(
            ": 1.17.4 in api.stub.test/charts/cilium is not a chart that can be used: its configuration is of the type {image:?}, so it is no Helm \
             chart; push charts with `helm push`"
        )),
        "{refused}"
    );
}

#[tokio::test]
async fn a_registry_that_is_gone_or_wants_a_login_is_told_with_what_to_do() {
    let folder = TempDir::new().unwrap();
    let shop = Shop::of(&["1.17.4"]);
    let stub = Stub::new(move |asked| match asked.header("authorization") {
        Some("Basic aGFyYm9yOmNhbmFyeS1wYXNzd29yZA==") => shop.answer(asked),
        _ => Reply::of(401, &[("WWW-Authenticate", "Basic realm=\"stub\"")], ""),
    })
    .await;
    let stack = stack(folder.path(), &cilium(&stub, "~1.17.0"));
    let host = format!("{}:{}", NAMES[0], stub.url("/").port().unwrap());
    let with = |password: &str| {
        let login =
            json!({ "credsStore": "desktop", "auths": { host.clone(): { "username": USER, "password": password } } });
        let logins = Logins::parse(&SecretString::from(login.to_string())).unwrap();
        ChartRegistries {
            logins,
            ..of_stub(&stub)
        }
    };
    let nobody = refusal(&stack, &stub, None, &of_stub(&stub)).await;
    let advice = format!(
        "; log in with `helm registry login {host}`, or name a file that has the login with --registry-config: "
    );
    assert!(nobody.contains(&advice) && nobody.contains("is not public"), "{nobody}");
    let wrong = refusal(&stack, &stub, None, &with("canary-mistake")).await;
    assert!(wrong.contains("refuses the credentials"), "{wrong}");
    assert!(
        wrong.contains("(what a credential helper keeps is not read)"),
        "{wrong}"
    );
    assert!(!wrong.contains("canary"), "{wrong}");
    let made = prepared(&stack, None, Some(&with(PASSWORD))).await.unwrap();
    assert_eq!(made.supplied()[0].version, "1.17.4");

    let registries = with(PASSWORD);
    let unknown = ChartRegistries {
        certificates: None,
        ..registries.clone()
    };
    let unknown = refusal(&stack, &stub, None, &unknown).await;
    assert!(unknown.contains("--ca-file"), "{unknown}");
    let unreachable = ChartRegistries {
        network: Network::new(NetworkOptions {
            networks: Vec::new(),
            ..stub::options()
        })
        .unwrap(),
        ..registries.clone()
    };
    let unreachable = refusal(&stack, &stub, None, &unreachable).await;
    assert!(unreachable.contains("--allow-source-network"), "{unreachable}");
    let place = address(&stub);
    stub.close().await;
    let gone = chain(&prepared(&stack, None, Some(&registries)).await.unwrap_err());
    assert!(
        gone.contains(&format!(
            "unable to get the tags from {}/cilium",
            place.trim_start_matches("oci://")
        )),
        "{gone}"
    );
    assert!(gone.contains("unable to connect to"), "{gone}");
}

#[tokio::test]
async fn a_chart_that_two_charts_need_is_fetched_once() {
    let folder = TempDir::new().unwrap();
    let stub = Shop::of(&["1.17.3", "1.17.4"]).serve().await;
    let stack = stack(folder.path(), &cilium(&stub, "~1.17.0"));
    let stages =
        "addonStages: {AfterControlPlaneInitialized: [{name: cni, action: apply}, {name: more, action: apply}]}\n";
    write(&stack, "clusteraddon.yaml", stages);
    let more = format!("name: more\nversion: v1\ndependencies:\n{}", cilium(&stub, "1.x"));
    write(&stack, "cluster-addon/more/Chart.yaml", &more);
    let made = prepared(&stack, None, Some(&of_stub(&stub))).await.unwrap();
    assert_eq!(made.supplied().len(), 2);
    assert_eq!(stub.targets().len(), 3, "a list, a manifest and an archive");
}
