//! What images of Glance's mean.

use jiff::Timestamp;
use provider_openstack::{
    options::Options,
    record::{foreign, owned, record},
};
use provider_plugin::{OwnerId, Record, RecordState};
use serde_json::{Value, json};

use crate::fixture::image;

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn found(fields: Value) -> Value {
    let mut found = json!({
        "id": "1", "name": "ubuntu", "status": "queued", "owner": "p", "visibility": "shared", "os_hidden": true,
        "tags": ["stackwright"], "disk_format": "qcow2", "size": null, "checksum": null, "os_hash_algo": null,
        "os_hash_value": null, "created_at": "2026-03-01T11:00:00Z", "updated_at": "2026-03-01T11:59:00Z",
        "cs_owner": "mine", "cs_object": "fleet/ubuntu", "cs_key": "a".repeat(64), "cs_attempt": "2",
    });
    let Value::Object(fields) = fields else {
        panic!("fields are a map");
    };
    found.as_object_mut().unwrap().extend(fields);
    found
}

fn read(fields: Value) -> Option<Record> {
    let image = image("ubuntu");
    let options = Options::read(&image).unwrap();
    record(&found(fields), &image.subject, "p", Some(&options), None, now())
}

fn state(fields: Value) -> RecordState {
    read(fields).unwrap().state
}

#[test]
fn every_state_of_glance_is_one_of_ours() {
    let spoilt = |state: &RecordState| matches!(state, RecordState::Spoilt { .. });
    let importing = |state: &RecordState| matches!(state, RecordState::Importing { .. });
    assert_eq!(state(json!({})), RecordState::Empty);
    assert_eq!(state(json!({ "os_glance_failed_import": "" })), RecordState::Empty);
    assert!(importing(&state(json!({ "os_glance_import_task": "t" }))));
    assert!(importing(&state(
        json!({ "os_glance_import_task": "t", "os_glance_failed_import": "" })
    )));
    assert!(spoilt(&state(json!({ "os_glance_failed_import": "store-a" }))));
    assert!(spoilt(&state(json!({ "checksum": "abc" }))));
    assert!(spoilt(&state(json!({ "os_hash_value": "abc" }))));
    assert_eq!(state(json!({ "status": "saving" })), RecordState::Receiving);
    assert_eq!(state(json!({ "status": "uploading" })), RecordState::Receiving);
    assert!(importing(&state(json!({ "status": "importing" }))));
    assert_eq!(state(json!({ "status": "active" })), RecordState::Whole);
    assert_eq!(state(json!({ "status": "deactivated" })), RecordState::Withdrawn);
    assert_eq!(state(json!({ "status": "killed" })), RecordState::Dead);
    assert_eq!(state(json!({ "status": "no such word" })), RecordState::Dead);
    assert_eq!(state(json!({ "status": "pending_delete" })), RecordState::Going);
    assert_eq!(state(json!({ "status": "deleted" })), RecordState::Going);
}

#[test]
fn an_import_has_begun_when_its_task_is_there() {
    for status in ["queued", "uploading", "importing"] {
        let begun = json!({ "status": status, "os_glance_import_task": "7" });
        assert!(matches!(state(begun), RecordState::Importing { .. }), "{status}");
    }
    let staged = json!({ "status": "uploading", "os_glance_import_task": null });
    assert_eq!(state(staged), RecordState::Receiving);
}

#[test]
fn an_import_of_which_nothing_is_shown_is_given_two_minutes() {
    let begun = |updated: &str| state(json!({ "cs_import": "begun", "updated_at": updated }));
    assert!(matches!(begun("2026-03-01T11:58:30Z"), RecordState::Importing { .. }));
    assert!(matches!(begun("2026-03-01T11:57:00Z"), RecordState::Spoilt { .. }));
    let marked =
        json!({ "cs_import": "begun", "updated_at": "2026-03-01T11:00:00Z", "os_glance_failed_import": "store-a" });
    assert!(matches!(state(marked), RecordState::Spoilt { .. }));
}

#[test]
fn an_import_that_a_cloud_knows_nothing_of_was_not_begun() {
    let (subject, options) = (image("ubuntu").subject, Options::read(&image("ubuntu")).unwrap());
    let marked = found(json!({ "cs_import": "begun", "updated_at": "2026-03-01T11:58:30Z" }));
    let state = |tasks: Option<&[Value]>| {
        record(&marked, &subject, "p", Some(&options), tasks, now())
            .unwrap()
            .state
    };
    assert_eq!(state(Some(&[])), RecordState::Empty);
    let task = json!({ "status": "pending", "message": "" });
    assert!(matches!(state(Some(&[task])), RecordState::Importing { .. }));
    assert!(
        matches!(state(None), RecordState::Importing { .. }),
        "an old cloud says nothing of imports"
    );
}

#[test]
fn ours_is_what_carries_all_marks_of_the_object() {
    let record = read(json!({})).unwrap();
    assert_eq!((record.id.0.as_str(), record.attempt, record.shown), ("1", 2, false));
    for other in [
        json!({ "cs_owner": "other" }),
        json!({ "cs_object": "fleet/other" }),
        json!({ "cs_attempt": "x" }),
        json!({ "cs_key": null }),
    ] {
        assert_eq!(read(other.clone()), None, "{other}");
        let subject = image("ubuntu").subject;
        let foreign = foreign(&found(other), &subject, "p").unwrap();
        assert!(foreign.is_of_our_project && !foreign.is_usable, "{foreign:?}");
    }
    assert!(read(json!({ "cs_key": "b".repeat(64) })).is_some(), "of whatever key");
}

#[test]
fn what_lies_in_another_project_is_not_ours_whatever_marks_it_has() {
    let subject = image("ubuntu").subject;
    let theirs = json!({ "owner": "q", "status": "active", "visibility": "community", "cs_verified": "sha256:1" });
    assert_eq!(read(theirs.clone()), None);
    let foreign = foreign(&found(theirs), &subject, "p").unwrap();
    assert!(foreign.is_of_community && !foreign.is_of_our_project, "{foreign:?}");
    for unsaid in [Value::Null, json!("")] {
        assert!(
            read(json!({ "owner": unsaid })).is_some(),
            "a cloud that does not say it"
        );
    }
}

#[test]
fn shown_is_what_is_verified_and_not_hidden() {
    let shown = |fields: Value| read(fields).unwrap().shown;
    assert!(!shown(json!({ "os_hidden": false })));
    assert!(!shown(json!({ "cs_verified": "sha256:1" })));
    assert!(shown(json!({ "cs_verified": "sha256:1", "os_hidden": false })));
    assert!(
        shown(json!({ "cs_verified": "sha256:1", "os_hidden": null })),
        "a cloud that hides nothing"
    );
}

#[test]
fn only_a_sha512_can_be_compared() {
    let hash = |algo: &str| {
        let fields = json!({ "status": "active", "os_hash_algo": algo, "os_hash_value": "AB" });
        read(fields).unwrap().sha512
    };
    assert_eq!(hash("sha512").as_deref(), Some("ab"));
    assert_eq!(hash("sha3_512"), None);
}

#[test]
fn the_marker_changes_when_something_moved() {
    let marker = |fields: Value| read(fields).unwrap().marker;
    assert_eq!(marker(json!({})), marker(json!({})));
    for moved in [
        json!({ "size": 1 }),
        json!({ "updated_at": "2026-03-01T11:59:01Z" }),
        json!({ "status": "saving" }),
    ] {
        assert_ne!(marker(json!({})), marker(moved.clone()), "{moved}");
    }
    let (subject, options) = (image("ubuntu").subject, Options::read(&image("ubuntu")).unwrap());
    let with = |message: &str| {
        let task = json!({ "status": "processing", "message": message });
        let found = found(json!({ "status": "importing" }));
        record(&found, &subject, "p", Some(&options), Some(&[task]), now()).unwrap()
    };
    assert_ne!(with("Copied 1 MiB").marker, with("Copied 2 MiB").marker);
    let message = "Copied 2 MiB".to_owned();
    assert_eq!(with("Copied 2 MiB").state, RecordState::Importing { message });
    assert_eq!(with("Copied 2 MiB").size, Some(2 << 20));
    assert_eq!(with("Copied all of it").size, None);
}

#[test]
fn what_an_owner_has_is_told_with_when_it_was_made() {
    let owner = image("ubuntu").subject.owner;
    let told = owned(&found(json!({ "cs_verified": "sha256:1", "size": 7 })), &owner).unwrap();
    assert_eq!(
        (told.object.as_str(), told.attempt, told.verified, told.size),
        ("fleet/ubuntu", 2, true, Some(7))
    );
    assert_eq!(told.created, "2026-03-01T11:00:00Z".parse().unwrap());
    assert_eq!(owned(&found(json!({ "cs_owner": "other" })), &owner), None);
}

#[test]
fn what_another_installation_holds_is_told_to_its_owner_and_to_that_one() {
    let subject = image("ubuntu").subject;
    let there = OwnerId::parse("there").unwrap();
    assert_eq!(read(json!({})).unwrap().holder, subject.owner);
    assert_eq!(read(json!({ "cs_holder": "there" })).unwrap().holder, there);
    let unreadable = read(json!({ "cs_holder": "no holder!" })).unwrap();
    assert_ne!(
        unreadable.holder, subject.owner,
        "it is seen, and somebody else holds it"
    );
    let held = found(json!({ "cs_holder": "there" }));
    for asking in [&subject.owner, &there] {
        let told = owned(&held, asking).unwrap();
        assert_eq!((&told.owner, &told.holder), (&subject.owner, &there));
    }
    assert_eq!(owned(&held, &OwnerId::parse("other").unwrap()), None);
}
