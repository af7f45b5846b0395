//! The lab itself: control planes are real, apart from each other, and gone when they have to be; what stands around
//! them tells the truth.

use std::{
    fs,
    future::ready,
    path::{Path, PathBuf},
    pin::pin,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use e2e::{
    ControlPlane, Ended, FaultProxy, Identity, Lab, Options, Point, Process, Weather, audit::ObjectReference,
    eventually,
};
use futures::{StreamExt, TryStreamExt};
use http::StatusCode;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::json;

const SOON: Duration = Duration::from_secs(30);

async fn control_plane() -> Result<ControlPlane> {
    ControlPlane::start(Options::default()).await
}

fn config_maps(client: Client) -> Api<ConfigMap> {
    Api::namespaced(client, "default")
}

fn config_map(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object
}

/// The command lines of the processes whose working folder is this one: what a control plane consists of.
fn processes_in(folder: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let ours = processes.filter(|process| {
        // A folder that is gone has a remark behind its path.
        fs::read_link(process.join("cwd"))
            .is_ok_and(|cwd| cwd.to_string_lossy().starts_with(&*folder.to_string_lossy()))
    });
    ours.map(|process| {
        fs::read_to_string(process.join("cmdline"))
            .unwrap_or_default()
            .replace('\0', " ")
    })
    .collect()
}

async fn nothing_left_in(folder: &Path) -> Result<()> {
    eventually(SOON, "every process of the control plane to be gone", async || {
        let left = processes_in(folder);
        if left.is_empty() {
            Ok(())
        } else {
            Err(anyhow!("{left:?}"))
        }
    })
    .await
}

#[tokio::test]
async fn two_control_planes_started_at_once_share_nothing() -> Result<()> {
    let (one, other) = tokio::try_join!(control_plane(), control_plane())?;
    assert_ne!(one.access().server(), other.access().server());
    config_maps(one.client())
        .create(&PostParams::default(), &config_map("only-here"))
        .await?;
    assert!(config_maps(one.client()).get_opt("only-here").await?.is_some());
    assert!(config_maps(other.client()).get_opt("only-here").await?.is_none());

    let folders = [one.folder().to_owned(), other.folder().to_owned()];
    assert_eq!(processes_in(&folders[0]).len(), 3, "etcd, API server, controllers");
    drop(one);
    assert_eq!(processes_in(&folders[0]), Vec::<String>::new());
    assert!(!folders[0].exists());
    // The other does not even notice.
    assert_eq!(processes_in(&folders[1]).len(), 3);
    config_maps(other.client())
        .create(&PostParams::default(), &config_map("still-alive"))
        .await?;
    other.stop().await?;
    assert_eq!(processes_in(&folders[1]), Vec::<String>::new());
    assert!(!folders[1].exists());
    Ok(())
}

#[tokio::test]
async fn a_panic_leaves_no_process_but_a_dump() -> Result<()> {
    let (folders, folder) = std::sync::mpsc::channel();
    let failing = std::thread::Builder::new()
        .name("a_test_that_fails".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let control_plane = control_plane().await.expect("a control plane");
                let object = config_map("seen-in-the-dump");
                config_maps(control_plane.client())
                    .create(&PostParams::default(), &object)
                    .await
                    .expect("an object");
                let _dump = control_plane.failure_dump();
                folders.send(control_plane.folder().to_owned()).expect("a listener");
                panic!("on purpose");
            });
        })?;
    assert!(failing.join().is_err());
    let folder = folder.recv()?;
    nothing_left_in(&folder).await?;
    assert!(!folder.exists());

    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .context("a target folder")?;
    let dump = target.join("e2e-failures/a_test_that_fails");
    let objects = fs::read_to_string(dump.join("configmaps.yaml"))?;
    assert!(objects.contains("name: seen-in-the-dump"), "{objects}");
    assert!(dump.join("kube-apiserver.log").is_file());
    Ok(())
}

#[tokio::test]
async fn kill_9_of_the_process_that_holds_it_ends_a_control_plane() -> Result<()> {
    let place = tempfile::tempdir()?;
    let folder = place.path().join("control-plane");
    let mut holder = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["control-plane", "serve", "--dir"])
        .arg(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    eventually(SOON * 2, "the control plane to be ready", || {
        ready(match holder.try_wait() {
            Ok(None) if folder.join("ready").exists() => Ok(Ok(())),
            Ok(None) => Err("it is starting"),
            ended => Ok(Err(anyhow!("it ended: {ended:?}"))),
        })
    })
    .await??;
    assert_eq!(processes_in(&folder).len(), 3);
    holder.kill()?;
    holder.wait()?;
    nothing_left_in(&folder).await?;

    // Nobody was there to remove the files; the next one does not mind.
    assert!(folder.join("ready").exists());
    let options = Options {
        folder: Some(folder.clone()),
        ..Options::default()
    };
    let next = ControlPlane::start(options.clone()).await?;
    assert!(!folder.join("ready").exists());
    let third = ControlPlane::start(options).await.err().context("two in one folder")?;
    assert!(format!("{third:#}").contains("a control plane runs in"), "{third:#}");
    next.stop().await
}

#[tokio::test]
async fn people_start_find_and_stop_a_control_plane_in_the_background() -> Result<()> {
    let place = tempfile::tempdir()?;
    let folder = place.path().join("control-plane");
    let lab = |verb: &str, more: &[&str]| -> Result<(Option<i32>, String, String)> {
        let output = Command::new(env!("CARGO_BIN_EXE_lab"))
            .args(["control-plane", verb, "--dir"])
            .arg(&folder)
            .args(more)
            // What a person may have set, and must not see here.
            .env("RUST_BACKTRACE", "1")
            .output()?;
        let text = |bytes| String::from_utf8(bytes);
        Ok((output.status.code(), text(output.stdout)?, text(output.stderr)?))
    };
    let (code, said, complaint) = lab("kubeconfig", &[])?;
    assert_eq!((code, said.as_str()), (Some(1), ""));
    assert!(complaint.starts_with("error: no control plane runs in "), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    let (code, said, complaint) = lab("up", &[])?;
    ensure!(code == Some(0), "{complaint}");
    assert!(said.contains("export KUBECONFIG="), "{said}");
    assert!(said.contains("with --crds"), "{said}");
    let (_, kubeconfig, _) = lab("kubeconfig", &[])?;
    let kubeconfig = kubeconfig.strip_suffix('\n').context("a line")?;
    assert!(fs::read_to_string(kubeconfig)?.contains("server: https://127.0.0.1:"));
    let before = processes_in(&folder);
    let (code, said, complaint) = lab("up", &["--crds"])?;
    ensure!(code == Some(0), "{complaint}");
    assert!(!said.contains("--crds"), "they are there now: {said}");
    assert_eq!(processes_in(&folder), before, "the second `up` starts nothing");
    let (code, _, complaint) = lab("down", &[])?;
    assert_eq!(code, Some(0), "{complaint}");
    nothing_left_in(&folder).await?;
    assert!(!folder.exists());
    Ok(())
}

#[tokio::test]
async fn a_folder_with_somebody_elses_files_is_refused_and_left_alone() -> Result<()> {
    let place = tempfile::tempdir()?;
    fs::write(place.path().join("thesis.txt"), "chapter one")?;
    let options = Options {
        folder: Some(place.path().to_owned()),
        ..Options::default()
    };
    let error = ControlPlane::start(options).await.err().context("it started")?;
    assert!(format!("{error:#}").contains("not a control plane's"), "{error:#}");
    assert_eq!(fs::read_dir(place.path())?.count(), 1);
    Ok(())
}

#[tokio::test]
async fn the_audit_log_knows_every_request_that_was_answered() -> Result<()> {
    let control_plane = control_plane().await?;
    let log = control_plane.audit_log();
    let namespaces: Api<Namespace> = Api::all(control_plane.client());
    let space = Namespace {
        metadata: config_map("team-a").metadata,
        ..Namespace::default()
    };
    namespaces.create(&PostParams::default(), &space).await?;
    let identity = Identity::service_account("team-a", "robot");
    let robot = control_plane.client_for(&identity).await?;

    let mark = log.mark().await?;
    let refused = Api::<ConfigMap>::namespaced(robot, "team-a")
        .create(&PostParams::default(), &config_map("no"))
        .await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    config_maps(control_plane.client())
        .create(&dry, &config_map("dry"))
        .await?;
    config_maps(control_plane.client())
        .create(&PostParams::default(), &config_map("wet"))
        .await?;
    config_maps(control_plane.client()).list(&ListParams::default()).await?;
    let events = log.since(mark).await?.of_agent("e2e");

    let writes = events.clone().writes();
    let [refused, wet] = &*writes else {
        return Err(anyhow!("{writes:#?}"));
    };
    assert_eq!(
        (refused.user.as_str(), refused.code),
        ("system:serviceaccount:team-a:robot", 403)
    );
    assert_eq!(
        (wet.user.as_str(), wet.code, wet.verb.as_str()),
        ("admin", 201, "create")
    );
    let about = ObjectReference {
        resource: "configmaps".into(),
        namespace: "default".into(),
        ..Default::default()
    };
    assert_eq!(
        wet.object.clone().map(|object| ObjectReference {
            name: String::new(),
            ..object
        }),
        Some(about)
    );
    let reads = events.reads_other_than_watch();
    let verbs: Vec<_> = reads.iter().map(|event| (event.verb.as_str(), event.dry_run)).collect();
    assert_eq!(verbs, [("create", true), ("list", false)]);

    assert!(
        log.since(log.mark().await?).await?.of_agent("e2e").is_empty(),
        "nothing happened since"
    );
    assert!(
        control_plane
            .metrics()
            .await?
            .sum("apiserver_request_total", &[("resource", "configmaps")])
            >= Some(3.0)
    );
    Ok(())
}

#[tokio::test]
async fn the_garbage_collector_and_the_namespace_controller_work() -> Result<()> {
    let control_plane = control_plane().await?;
    let api = config_maps(control_plane.client());
    let owner = api.create(&PostParams::default(), &config_map("owner")).await?;
    let mut dependent = config_map("dependent");
    dependent.metadata.owner_references = Some(vec![kube::Resource::owner_ref(&owner, &()).context("an owner")?]);
    api.create(&PostParams::default(), &dependent).await?;
    api.delete("owner", &DeleteParams::background()).await?;
    eventually(SOON, "the dependent object to be collected", async || {
        match api.get_opt("dependent").await {
            Ok(None) => Ok(()),
            other => Err(anyhow!("{other:?}")),
        }
    })
    .await?;

    let namespaces: Api<Namespace> = Api::all(control_plane.client());
    let space = Namespace {
        metadata: config_map("short-lived").metadata,
        ..Namespace::default()
    };
    namespaces.create(&PostParams::default(), &space).await?;
    namespaces.delete("short-lived", &DeleteParams::default()).await?;
    eventually(SOON, "the namespace to be gone", async || {
        match namespaces.get_opt("short-lived").await {
            Ok(None) => Ok(()),
            other => Err(anyhow!("{other:?}")),
        }
    })
    .await
}

#[tokio::test]
async fn objects_of_every_installed_kind_can_be_listed_at_once() -> Result<()> {
    let control_plane = control_plane().await?;
    control_plane.install_crds().await?;
    let dump = control_plane.folder().join("dump");
    let guard = control_plane.failure_dump();
    guard.write(&dump).await?;
    guard.call_off();
    let image = json!({
        "apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Image", "metadata": { "name": "node" },
        "spec": { "a-field-of-next-year": { "kept": true } },
    });
    let kind = kube::core::ApiResource {
        group: "openstack.k-orc.cloud".into(),
        version: "v1alpha1".into(),
        api_version: "openstack.k-orc.cloud/v1alpha1".into(),
        kind: "Image".into(),
        plural: "images".into(),
    };
    let images = Api::<kube::core::DynamicObject>::namespaced_with(control_plane.client(), "default", &kind);
    let stored = images
        .patch("node", &PatchParams::apply("lab"), &Patch::Apply(image))
        .await?;
    assert_eq!(stored.data["spec"]["a-field-of-next-year"]["kept"], true);
    Ok(())
}

#[tokio::test]
async fn crds_that_a_control_plane_begins_with_are_those_that_are_installed_later() -> Result<()> {
    let later = control_plane().await?;
    later.install_crds().await?;
    let options = Options {
        crds: true,
        ..Options::default()
    };
    let at_once = ControlPlane::start(options).await?;
    let definitions = async |control_plane: &ControlPlane| {
        let definitions = Api::<CustomResourceDefinition>::all(control_plane.client());
        let list = definitions.list(&ListParams::default()).await?;
        let comparable = |definition: CustomResourceDefinition| {
            let labels = definition.labels().clone();
            (definition.name_any(), labels, definition.spec)
        };
        Ok::<Vec<_>, anyhow::Error>(list.items.into_iter().map(comparable).collect())
    };
    assert_eq!(definitions(&at_once).await?, definitions(&later).await?);
    let stacks = Api::<crds::ClusterStack>::namespaced(at_once.client(), "default");
    assert_eq!(stacks.list(&ListParams::default()).await?.items.len(), 0);
    Ok(())
}

fn sleeping(seconds: &str) -> Command {
    let mut command = Command::new("sleep");
    command.arg(seconds);
    command
}

#[tokio::test]
async fn a_guarded_program_ends_by_itself_by_sigterm_or_by_kill() -> Result<()> {
    let lab = Lab::load()?;
    let place = tempfile::tempdir()?;
    let log = place.path().join("program.log");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "echo $GREETING; exit 7"])
        .env("GREETING", "hello from below");
    let mut program = Process::start(&lab, "shell", &shell, &log)?;
    assert_eq!(program.wait(SOON).await?, Ended::Status(7));
    assert!(program.tail().ends_with("hello from below"), "{}", program.tail());

    let mut program = Process::start(&lab, "sleep", &sleeping("1000"), &log)?;
    let id = command_id(&program).await?;
    assert_eq!(program.terminate(SOON).await?, Ended::Signal(15));
    assert!(!process(id).exists());

    let mut program = Process::start(&lab, "sleep", &sleeping("1000"), &log)?;
    let id = command_id(&program).await?;
    assert_eq!(program.kill9().await?, Ended::Signal(9));
    assert!(!process(id).exists());

    let program = Process::start(&lab, "sleep", &sleeping("1000"), &log)?;
    let id = command_id(&program).await?;
    drop(program);
    eventually(SOON, "the command to follow its guard", async || {
        if process(id).exists() { Err("it lives") } else { Ok(()) }
    })
    .await
}

async fn command_id(program: &Process) -> Result<u32> {
    eventually(SOON, "the command to run", async || {
        program.command_id().ok_or("not yet")
    })
    .await
}

fn process(id: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{id}"))
}

#[tokio::test]
async fn the_proxy_swallows_exactly_the_chosen_answer() -> Result<()> {
    let control_plane = control_plane().await?;
    let proxy = FaultProxy::start(&control_plane).await?;
    let through = config_maps(proxy.client().await?);
    let direct = config_maps(control_plane.client());

    let strike = proxy.strike_at(2, Point::AfterCommit);
    through.create(&PostParams::default(), &config_map("first")).await?;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    through.create(&dry, &config_map("dry")).await?;
    through.get_opt("first").await?;
    let writer = through.clone();
    let second = tokio::spawn(async move { writer.create(&PostParams::default(), &config_map("second")).await });
    let struck = strike.wait(SOON).await?;
    assert_eq!(struck.write.to_string(), "POST /api/v1/namespaces/default/configmaps");
    assert!(direct.get_opt("second").await?.is_some(), "the write is committed");
    assert!(!second.is_finished(), "its answer is held");
    // While the world is stopped, nothing else gets through.
    let late = through.clone();
    let third = tokio::spawn(async move { late.create(&PostParams::default(), &config_map("third")).await });
    eventually(SOON, "the third write to be held", async || {
        if proxy.held() >= 2 { Ok(()) } else { Err(proxy.held()) }
    })
    .await?;
    drop(struck);
    assert!(
        !matches!(second.await?, Ok(_) | Err(kube::Error::Api(_))),
        "no answer of the API"
    );
    assert!(
        !matches!(third.await?, Ok(_) | Err(kube::Error::Api(_))),
        "no answer of the API"
    );
    assert!(direct.get_opt("third").await?.is_none());

    through.create(&PostParams::default(), &config_map("fourth")).await?;
    let paths: Vec<_> = proxy.writes().iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["POST /api/v1/namespaces/default/configmaps"; 3]);
    Ok(())
}

#[tokio::test]
async fn the_proxy_drops_the_chosen_write_before_the_api_server_sees_it() -> Result<()> {
    let control_plane = control_plane().await?;
    let proxy = FaultProxy::start(&control_plane).await?;
    let through = config_maps(proxy.client().await?);
    let strike = proxy.strike_at(1, Point::BeforeForwarding);
    let writer = through.clone();
    let lost = tokio::spawn(async move { writer.create(&PostParams::default(), &config_map("lost")).await });
    let mark = control_plane.audit_log().mark().await?;
    drop(strike.wait(SOON).await?);
    assert!(
        !matches!(lost.await?, Ok(_) | Err(kube::Error::Api(_))),
        "no answer of the API"
    );
    assert!(
        control_plane
            .audit_log()
            .since(mark)
            .await?
            .of_agent("e2e")
            .writes()
            .is_empty()
    );
    through.create(&PostParams::default(), &config_map("lost")).await?;
    Ok(())
}

#[tokio::test]
async fn watches_stream_through_the_proxy_until_they_are_cut() -> Result<()> {
    let control_plane = control_plane().await?;
    let proxy = FaultProxy::start(&control_plane).await?;
    let through = config_maps(proxy.client().await?);
    let direct = config_maps(control_plane.client());
    let version = direct
        .list(&ListParams::default())
        .await?
        .metadata
        .resource_version
        .unwrap_or_default();
    let mut watch = pin!(through.watch(&WatchParams::default(), &version).await?);
    for name in ["one", "two"] {
        direct.create(&PostParams::default(), &config_map(name)).await?;
        let event = tokio::time::timeout(SOON, watch.try_next()).await??;
        assert!(
            matches!(&event, Some(WatchEvent::Added(object)) if object.name_any() == name),
            "{event:?}"
        );
    }
    proxy.cut_watches();
    let end = tokio::time::timeout(SOON, watch.next()).await?;
    assert!(!matches!(end, Some(Ok(_))), "{end:?}");
    let mut again = pin!(through.watch(&WatchParams::default(), &version).await?);
    assert!(
        matches!(again.try_next().await?, Some(WatchEvent::Added(_))),
        "new watches are welcome"
    );
    Ok(())
}

#[tokio::test]
async fn bad_weather_refuses_what_it_says_and_ends() -> Result<()> {
    let control_plane = control_plane().await?;
    let proxy = FaultProxy::start(&control_plane).await?;
    let through = config_maps(proxy.client().await?);
    let refusal = |outcome: kube::Result<ConfigMap>| match outcome {
        Err(kube::Error::Api(status)) => Ok(status.code),
        other => Err(anyhow!("{other:?}")),
    };

    proxy.set_weather(Weather::RefuseWrites(StatusCode::CONFLICT));
    assert_eq!(
        refusal(through.create(&PostParams::default(), &config_map("x")).await)?,
        409
    );
    through.list(&ListParams::default()).await?;
    proxy.set_weather(Weather::RefuseAll(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(refusal(through.get("x").await)?, 503);
    proxy.set_weather(Weather::Hang);
    let held = through.clone();
    let held = tokio::spawn(async move { held.get_opt("x").await });
    eventually(SOON, "the read to be held", async || {
        if proxy.held() == 1 { Ok(()) } else { Err(proxy.held()) }
    })
    .await?;
    proxy.set_weather(Weather::Fair);
    assert!(held.await?.is_err());
    through.create(&PostParams::default(), &config_map("x")).await?;
    Ok(())
}
