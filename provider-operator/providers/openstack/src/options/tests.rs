use provider_plugin::{ContentKey, Format, OwnerId, Subject};
use serde_json::json;

use super::*;

fn image(options: Value) -> ImageSpec {
    let subject = json!({
        "owner": "mine", "object": "fleet/one", "key": "a".repeat(64), "name": "ubuntu",
    });
    let subject: Subject = serde_json::from_value(subject).unwrap();
    assert_eq!(subject.key, ContentKey::parse(&"a".repeat(64)).unwrap());
    assert_eq!(subject.owner, OwnerId::parse("mine").unwrap());
    let Value::Object(options) = options else {
        panic!("options are a map");
    };
    ImageSpec {
        subject,
        options,
        format: None,
        source_digest: None,
        chosen_id: None,
        stores: Vec::new(),
    }
}

fn read(options: Value) -> Options {
    Options::read(&image(options)).unwrap()
}

fn everything() -> Value {
    json!({
        "name": "ubuntu", "id": "x", "disk_format": "qcow2", "container_format": "bare", "visibility": "private",
        "os_hidden": true, "protected": true, "min_disk": 20, "min_ram": 512, "tags": ["b", "capi"],
        "properties": { "hw_disk_bus": "scsi", "os_require_quiesce": true, "hw_cpu_cores": 2 },
    })
}

#[test]
fn what_makes_an_image_has_all_that_is_wanted_and_our_marks_but_shows_and_protects_nothing() {
    let options = everything();
    let body = read(options.clone()).body(&image(options), 3, &ImageId("id".into()), true);
    let expected = json!({
        "id": "id", "name": "ubuntu", "disk_format": "qcow2", "container_format": "bare", "visibility": "private",
        "os_hidden": true, "min_disk": 20, "min_ram": 512, "tags": ["b", "capi", "stackwright"],
        "hw_disk_bus": "scsi", "os_require_quiesce": "true", "hw_cpu_cores": "2",
        "cs_key": "a".repeat(64), "cs_owner": "mine", "cs_object": "fleet/one", "cs_attempt": "3",
    });
    assert_eq!(body, expected);
}

#[test]
fn the_format_may_be_said_once() {
    let mut spec = image(json!({}));
    spec.format = Some(Format::Raw);
    let options = Options::read(&spec).unwrap();
    assert_eq!(
        (options.disk_format.as_str(), options.container_format.as_str()),
        ("raw", "bare")
    );
}

#[test]
fn options_that_cannot_become_an_image_are_refused_with_their_field() {
    let long = "x".repeat(256);
    let many: Vec<String> = (0..128).map(|number| number.to_string()).collect();
    for (field, value, words) in [
        ("disk_format", Value::Null, "disk_format is missing"),
        ("visibility", "everybody".into(), "createOpts.visibility"),
        ("min_disk", json!(-1), "createOpts.min_disk"),
        ("min_ram", json!("512"), "createOpts.min_ram"),
        ("protected", json!("yes"), "createOpts.protected"),
        ("tags", json!("capi"), "createOpts.tags"),
        ("tags", json!(["a/b"]), "createOpts.tags"),
        ("tags", json!([""]), "createOpts.tags"),
        ("tags", json!(many), "127 tags"),
        ("properties", json!([]), "createOpts.properties"),
        (
            "properties",
            json!({ "os_glance_failed_import": "" }),
            "os_glance_failed_import",
        ),
        ("properties", json!({ "cs_owner": "me" }), "cs_owner"),
        ("properties", json!({ "owner": "me" }), "createOpts.properties.owner"),
        ("properties", json!({ "a": {} }), "createOpts.properties.a"),
        ("properties", json!({ long: "a" }), "255 characters"),
        ("hw_disk_bus", json!("scsi"), "createOpts.hw_disk_bus is not known"),
    ] {
        let mut options = everything();
        options[field] = value;
        let error = Options::read(&image(options)).expect_err(words);
        assert_eq!(error.class, ErrorClass::Invalid);
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
}

#[test]
fn differences_are_told_with_the_change_that_ends_them() {
    let options = read(everything());
    let mut found = json!({
        "name": "ubuntu", "visibility": "private", "os_hidden": true, "protected": false, "min_disk": 20, "min_ram": 512,
        "tags": ["stackwright", "capi", "b"], "hw_disk_bus": "scsi", "os_require_quiesce": "true", "hw_cpu_cores": "2",
        "more": "of somebody else",
    });
    assert_eq!(
        options.differences(&found),
        [],
        "what comes with showing it is no difference yet"
    );
    found["cs_verified"] = "sha256:…".into();
    found["hw_disk_bus"] = "virtio".into();
    found["min_ram"] = 0.into();
    found["tags"] = json!(["capi"]);
    found.as_object_mut().unwrap().remove("hw_cpu_cores");
    let differences = options.differences(&found);
    let told: Vec<String> = differences
        .iter()
        .map(|(drift, _)| format!("{}: {} -> {}", drift.field, drift.found, drift.wanted))
        .collect();
    let expected = [
        "hw_cpu_cores: nothing -> 2",
        "hw_disk_bus: virtio -> scsi",
        "min_ram: 0 -> 512",
        "protected: false -> true",
        "tags: capi -> b, capi, stackwright",
    ];
    assert_eq!(told, expected);
    assert_eq!(differences[1].1, Change::set("hw_disk_bus", "scsi"));
}
