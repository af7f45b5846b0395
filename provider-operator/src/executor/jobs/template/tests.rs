//! What Jobs look like, as files for reviewers, and that nothing of a user gets where it does not belong.

use std::path::PathBuf;
use std::{env, fs};

use crds::providers::image_options::EnvironmentValue;
use k8s_openapi::api::batch::v1::Job;
use planning::image::Deed;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use provider_plugin::Compression;

use super::*;
use crate::stand_ins::{object, plan};
use crate::worker::document::Surroundings;

fn build(command: &[&str]) -> Build {
    Build {
        image: "builder.example/mkosi@sha256:00".to_owned(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        args: vec!["--bootable".to_owned()],
        env: vec![EnvironmentValue {
            name: "SIZE".to_owned(),
            value: "8Mi".to_owned(),
        }],
        artifact: "out/disk.raw".to_owned(),
        size_limit: Quantity("64Mi".to_owned()),
        deadline: "30m".to_owned(),
        resources: Some(Resources {
            requests: quantities(&[("cpu", "2")]),
            limits: quantities(&[("memory", "4Gi")]),
        }),
        node_selector: [("pool".to_owned(), "builders".to_owned())].into(),
        tolerations: vec![Toleration {
            key: Some("builders".to_owned()),
            operator: Some("Exists".to_owned()),
            ..Toleration::default()
        }],
    }
}

fn options() -> JobOptions {
    let claim = JobVolume::Claim("images".to_owned());
    JobOptions {
        image: "operator.example/provider-operator:v1".to_owned(),
        volumes: [("default".to_owned(), claim)].into(),
        network: NetworkOfDocument::default(),
    }
}

/// The Job for one object's image.
fn made(
    object: &ObjectId,
    cloud: &str,
    secret: Option<(&str, &[String])>,
    shape: &JobShape,
    build: Option<&Build>,
) -> Value {
    let (id, attempt) = ("image-2".to_owned(), 2);
    let deed = match build {
        Some(_) => Deed::Build { id, attempt },
        None => Deed::Transfer {
            id,
            attempt,
            staged: false,
        },
    };
    let mut plan = plan(object, deed);
    plan.content.compression = Compression::Auto;
    let surroundings = Surroundings {
        cloud: cloud.to_owned(),
        ..Surroundings::default()
    };
    let document = Document::of(&plan, surroundings).expect("a document");
    let asked = Asked {
        object,
        document: &document,
        secret,
        shape,
        build,
    };
    job(&asked, &options()).expect("a Job")
}

fn in_a_cloud(build: Option<&Build>) -> Value {
    let object = ObjectId {
        provider: Provider::OpenStack,
        ..object("fleet", "ubuntu")
    };
    let keys = ["clouds.yaml".to_owned(), "cacert".to_owned()];
    made(
        &object,
        "openstack",
        Some(("cloud", &keys)),
        &JobShape::default(),
        build,
    )
}

fn in_a_store(build: Option<&Build>) -> Value {
    made(&object("fleet", "ubuntu"), "default", None, &JobShape::default(), build)
}

#[test]
fn jobs_are_as_the_files_show_them() {
    let regenerate = env::var_os("STACKWRIGHT_REGENERATE").is_some_and(|value| value == "1");
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/executor/jobs/template");
    let script = build(&["/bin/sh", "-c", "make disk"]);
    for (name, job) in [
        ("send_to_a_cloud", in_a_cloud(None)),
        ("build_for_a_cloud", in_a_cloud(Some(&script))),
        ("build_for_a_store", in_a_store(Some(&script))),
    ] {
        let text = format!("{job:#}\n");
        let path = folder.join(format!("{name}.json"));
        if regenerate {
            fs::write(&path, &text).expect("a file");
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            text, expected,
            "{name} is another one; STACKWRIGHT_REGENERATE=1 writes it anew"
        );
    }
}

#[test]
fn the_api_server_knows_every_field_of_it() {
    for job in [
        in_a_cloud(None),
        in_a_cloud(Some(&build(&[]))),
        in_a_store(Some(&build(&[]))),
    ] {
        let read: Job = serde_json::from_value(job.clone()).expect("a Job");
        assert_eq!(serde_json::to_value(read).expect("JSON"), job);
    }
}

/// The containers that mount the volume of this name.
fn mounted_by(job: &Value, volume: &str) -> Vec<String> {
    let pod = &job["spec"]["template"]["spec"];
    let containers = ["initContainers", "containers"].map(|field| pod[field].as_array().cloned().unwrap_or_default());
    let mounts = |container: &&Value| {
        let mounts = container["volumeMounts"].as_array().expect("mounts");
        mounts.iter().any(|mount| mount["name"] == volume)
    };
    let containers = containers.concat();
    let found = containers.iter().filter(mounts);
    found
        .map(|container| container["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn a_build_has_neither_token_nor_secret_nor_store_nor_the_network_of_its_node() {
    for job in [in_a_cloud(Some(&build(&[]))), in_a_store(Some(&build(&[])))] {
        for volume in ["token", "identity", "store", "plan"] {
            assert!(!mounted_by(&job, volume).contains(&BUILD.to_owned()), "{volume}");
        }
        assert_eq!(mounted_by(&job, "token"), [WORKER]);
        assert_eq!(mounted_by(&job, "artifact"), [BUILD, WORKER]);
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false);
        for field in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"] {
            assert!(pod.get(field).is_none(), "{field}");
        }
        assert!(pod["initContainers"][0].get("envFrom").is_none());
    }
    let secrets = in_a_cloud(None).to_string().matches("secretName").count();
    assert_eq!(secrets, 1, "one Secret is mounted");
    assert_eq!(in_a_store(None).to_string().matches("secretName").count(), 0);
}

#[test]
fn a_cloud_that_is_called_like_a_store_is_given_none() {
    let object = ObjectId {
        provider: Provider::OpenStack,
        ..object("fleet", "ubuntu")
    };
    let job = made(&object, "default", None, &JobShape::default(), None);
    assert!(mounted_by(&job, "store").is_empty());
    assert_eq!(mounted_by(&in_a_store(None), "store"), [WORKER]);
}

#[test]
fn a_volume_is_a_claim_or_a_directory_of_the_node() {
    assert_eq!("pvc:images".parse(), Ok(JobVolume::Claim("images".to_owned())));
    assert_eq!("host:/srv".parse(), Ok(JobVolume::Host("/srv".to_owned())));
    for wrong in ["", "images", "pvc:", "host:srv", "nfs:/srv"] {
        assert_eq!(wrong.parse::<JobVolume>(), Err(()), "{wrong}");
    }
}

/// Everything where something of a user belongs, taken out.
fn without_users(mut job: Value) -> Value {
    job["spec"]["activeDeadlineSeconds"].take();
    job["spec"]["template"]["metadata"]["annotations"][labels::PLAN].take();
    let pod = &mut job["spec"]["template"]["spec"];
    for field in ["nodeSelector", "tolerations"] {
        pod.as_object_mut().map(|pod| pod.remove(field));
    }
    for field in ["image", "command", "args", "env", "resources"] {
        let build = pod["initContainers"][0].as_object_mut();
        build.map(|build| build.remove(field));
    }
    pod["containers"][0]["resources"].take();
    for arg in pod["containers"][0]["args"].as_array_mut().into_iter().flatten() {
        if arg.as_str().is_some_and(|arg| arg.starts_with("--artifact=/artifact/")) {
            arg.take();
        }
    }
    for volume in pod["volumes"].as_array_mut().into_iter().flatten() {
        if let Some(limit) = volume.pointer_mut("/emptyDir/sizeLimit") {
            limit.take();
        }
    }
    job
}

fn texts(most: usize) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(any::<String>(), 0..most)
}

fn amounts() -> impl Strategy<Value = Resources> {
    let map = || proptest::collection::btree_map(any::<String>(), any::<String>().prop_map(Quantity), 0..3);
    (map(), map()).prop_map(|(requests, limits)| Resources { requests, limits })
}

fn taints() -> impl Strategy<Value = Vec<Toleration>> {
    let text = || proptest::option::of(any::<String>());
    let taint = (text(), text(), text(), text(), any::<Option<i64>>());
    let taint = taint.prop_map(|(key, operator, value, effect, toleration_seconds)| Toleration {
        key,
        operator,
        value,
        effect,
        toleration_seconds,
    });
    proptest::collection::vec(taint, 0..3)
}

fn selectors() -> impl Strategy<Value = BTreeMap<String, String>> {
    proptest::collection::btree_map(any::<String>(), any::<String>(), 0..3)
}

fn shapes() -> impl Strategy<Value = JobShape> {
    (proptest::option::of(amounts()), selectors(), taints()).prop_map(|(resources, node_selector, tolerations)| {
        JobShape {
            resources,
            node_selector,
            tolerations,
        }
    })
}

fn builds() -> impl Strategy<Value = Build> {
    let words = (
        any::<String>(),
        texts(4),
        texts(4),
        any::<String>(),
        any::<String>(),
        any::<String>(),
    );
    let env = proptest::collection::vec((any::<String>(), any::<String>()), 0..4);
    (words, env, shapes()).prop_map(
        |((image, command, args, artifact, limit, deadline), env, shape)| Build {
            image,
            command,
            args,
            env: env
                .into_iter()
                .map(|(name, value)| EnvironmentValue { name, value })
                .collect(),
            artifact,
            size_limit: Quantity(limit),
            deadline,
            resources: shape.resources,
            node_selector: shape.node_selector,
            tolerations: shape.tolerations,
        },
    )
}

#[test]
fn no_field_of_a_user_reaches_another_place_of_the_job() {
    let object = object("fleet", "ubuntu");
    let job = |shape: &JobShape, build: &Build| made(&object, "default", None, shape, Some(build));
    let expected = without_users(job(&JobShape::default(), &build(&[])));
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    let tried = TestRunner::new_with_rng(config, seed).run(&(shapes(), builds()), |(shape, build)| {
        let found = without_users(job(&shape, &build));
        prop_assert_eq!(&found, &expected);
        Ok(())
    });
    tried.expect("for all users");
}
