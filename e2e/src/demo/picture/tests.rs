use serde_json::{Value, json};

use super::{
    super::{text::width, tree},
    *,
};

const NAMESPACE: &str = "docks";
const INTRUDER: &str = "somebody";

/// A picture, and the time that its changes come with.
struct Play {
    picture: Picture,
    now: Instant,
}

impl Play {
    fn new() -> Self {
        Self {
            picture: Picture::of(NAMESPACE, INTRUDER),
            now: Instant::now(),
        }
    }

    fn told(&mut self, what: What) -> &mut Self {
        self.picture.take(Change { at: self.now, what });
        self
    }

    fn later(&mut self, milliseconds: u64) -> &mut Self {
        self.now += Duration::from_millis(milliseconds);
        self
    }

    fn stack(&mut self, usable: &str) -> &mut Self {
        self.stack_that_says(usable, &condition("True", None))
    }

    fn stack_that_says(&mut self, usable: &str, ready: &Value) -> &mut Self {
        let stack = json!({
            "metadata": { "name": "demo" },
            "spec": { "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34" },
            "status": { "usableVersions": usable, "conditions": [ready] },
        });
        self.told(What::Stack(Box::new(serde_json::from_value(stack).expect("a stack"))))
    }

    /// A release with these objects, ready when there is nothing to complain about.
    fn release(&mut self, tag: &str, complaint: Option<&str>, objects: &[(&str, &str, &str)]) -> &mut Self {
        let resources: Vec<_> = objects
            .iter()
            .map(|(kind, name, status)| json!({ "kind": kind, "name": name, "status": status, "version": "v1" }))
            .collect();
        let release = json!({
            "metadata": { "name": tag }, "spec": {},
            "status": {
                "ready": complaint.is_none(), "kubernetesVersion": "v1.34.0", "resources": resources,
                "conditions": [condition(if complaint.is_some() { "False" } else { "True" }, complaint)],
            },
        });
        self.told(What::Release(Box::new(
            serde_json::from_value(release).expect("a release"),
        )))
    }

    /// The image of these releases, with this status.
    fn image(&mut self, owners: &[&str], status: Value) -> &mut Self {
        let image = Image {
            kind: "FileStoreNodeImageRelease",
            name: "docker-harbor-1-34-node-v1".to_owned(),
            owners: owners.iter().map(|owner| (*owner).to_owned()).collect(),
            deleting: false,
            status: serde_json::from_value(status).expect("a status"),
        };
        self.told(What::Image(Box::new(image)))
    }

    fn object(&mut self, tag: &str, kind: &str, name: &str, uid: &str, manager: &str) -> &mut Self {
        let mark = labels::part_of("ClusterStackRelease", NAMESPACE, tag);
        let metadata = json!({
            "name": name, "uid": uid, "generation": 1,
            "labels": { labels::PART_OF: mark }, "managedFields": [{ "manager": manager }],
        });
        let metadata = serde_json::from_value(metadata).expect("metadata");
        self.told(What::Object(kind.to_owned(), Box::new(metadata)))
    }

    /// A release of which everything is there.
    fn whole(&mut self, tag: &str, parts: &[(&str, &str)]) -> &mut Self {
        let names: Vec<_> = parts.iter().map(|(_, part)| format!("{tag}{part}")).collect();
        let objects = parts.iter().zip(&names);
        let rows: Vec<_> = objects
            .clone()
            .map(|((kind, _), name)| (*kind, name.as_str(), "synced"))
            .collect();
        self.release(tag, None, &rows);
        for (index, ((kind, _), name)) in objects.enumerate() {
            self.object(tag, kind, name, &format!("{tag}-{index}"), labels::FIELD_MANAGER);
        }
        self
    }

    /// Each line begins with a line feed.
    fn text(&self, columns: usize, height: usize) -> String {
        let mut text = String::new();
        for line in tree::lines(&self.picture.rows(), columns, height) {
            text.push('\n');
            text.extend(line.0.into_iter().map(|(_, piece)| piece));
        }
        text
    }

    fn state_of(&self, kind: &str) -> String {
        let rows = self.picture.rows();
        let row = rows.iter().find(|row| row.id.0 == kind).expect("a row");
        format!("{} {}", row.state, row.note).trim_end().to_owned()
    }
}

fn condition(status: &str, message: Option<&str>) -> Value {
    let mut condition = json!({ "type": "Ready", "status": status, "lastTransitionTime": "2026-11-21T00:00:00Z" });
    if let Some(message) = message {
        condition["reason"] = "IssueWithReleaseAssets".into();
        condition["severity"] = "Error".into();
        condition["message"] = message.into();
    }
    condition
}

fn tag(tag: &str) -> ReleaseTag {
    tag.parse().expect("a tag")
}

const PARTS: [(&str, &str); 4] = [
    ("ClusterClass", ""),
    ("DockerClusterTemplate", "-cluster"),
    ("KubeadmConfigTemplate", "-worker"),
    ("KubeadmControlPlaneTemplate", "-control-plane"),
];

fn two_releases_and_a_broken_one() -> Play {
    let mut play = Play::new();
    play.stack("v1, v2")
        .whole("docker-harbor-1-34-v1", &PARTS)
        .whole("docker-harbor-1-34-v2", &PARTS[..3])
        .release(
            "docker-harbor-1-34-v3",
            Some("the chart ends in the middle: copy it again, or build it again"),
            &[],
        );
    play
}

#[test]
fn eighty_columns_show_names_without_what_they_share_with_their_release() {
    assert_eq!(
        two_releases_and_a_broken_one().text(80, 24),
        "
  ClusterStack demo                                 ✓ ready   usable: v1, v2
  ├─ ClusterStackRelease docker-harbor-1-34-v1      ✓ ready   Kubernetes v1.34.0
  │  ├─ ClusterClass docker-harbor-1-34-v1          ✓ synced
  │  ├─ DockerClusterTemplate …-cluster             ✓ synced
  │  ├─ KubeadmConfigTemplate …-worker              ✓ synced
  │  └─ KubeadmControlPlaneTemplate …-control-plane ✓ synced
  ├─ ClusterStackRelease docker-harbor-1-34-v2      ✓ ready   Kubernetes v1.34.0
  │  ├─ ClusterClass docker-harbor-1-34-v2          ✓ synced
  │  ├─ DockerClusterTemplate …-cluster             ✓ synced
  │  └─ KubeadmConfigTemplate …-worker              ✓ synced
  └─ ClusterStackRelease docker-harbor-1-34-v3      ✗ IssueWithReleaseAssets
        the chart ends in the middle: copy it again, or build it again"
    );
}

#[test]
fn wide_terminals_show_names_in_full() {
    assert_eq!(
        two_releases_and_a_broken_one().text(120, 24),
        "
  ClusterStack demo                                                     ✓ ready   usable: v1, v2
  ├─ ClusterStackRelease docker-harbor-1-34-v1                          ✓ ready   Kubernetes v1.34.0
  │  ├─ ClusterClass docker-harbor-1-34-v1                              ✓ synced
  │  ├─ DockerClusterTemplate docker-harbor-1-34-v1-cluster             ✓ synced
  │  ├─ KubeadmConfigTemplate docker-harbor-1-34-v1-worker              ✓ synced
  │  └─ KubeadmControlPlaneTemplate docker-harbor-1-34-v1-control-plane ✓ synced
  ├─ ClusterStackRelease docker-harbor-1-34-v2                          ✓ ready   Kubernetes v1.34.0
  │  ├─ ClusterClass docker-harbor-1-34-v2                              ✓ synced
  │  ├─ DockerClusterTemplate docker-harbor-1-34-v2-cluster             ✓ synced
  │  └─ KubeadmConfigTemplate docker-harbor-1-34-v2-worker              ✓ synced
  └─ ClusterStackRelease docker-harbor-1-34-v3                          ✗ IssueWithReleaseAssets
        the chart ends in the middle: copy it again, or build it again"
    );
}

#[test]
fn low_terminals_count_the_objects_of_healthy_releases() {
    assert_eq!(
        two_releases_and_a_broken_one().text(80, 7),
        "
  ClusterStack demo                                 ✓ ready   usable: v1, v2
  ├─ ClusterStackRelease docker-harbor-1-34-v1      ✓ ready   Kubernetes v1.34.0
  │  └─ 4 objects                                   ✓ synced
  ├─ ClusterStackRelease docker-harbor-1-34-v2      ✓ ready   Kubernetes v1.34.0
  │  └─ 3 objects                                   ✓ synced
  └─ ClusterStackRelease docker-harbor-1-34-v3      ✗ IssueWithReleaseAssets
        the chart ends in the middle: copy it again, or build it again"
    );
    assert_eq!(
        two_releases_and_a_broken_one().text(80, 3),
        "
  ClusterStack demo                                 ✓ ready   usable: v1, v2
  ├─ ClusterStackRelease docker-harbor-1-34-v1      ✓ ready   Kubernetes v1.34.0
  … and 5 lines more"
    );
}

#[test]
fn no_line_is_wider_and_no_tree_higher_than_the_terminal() {
    let mut play = two_releases_and_a_broken_one();
    let words = "a-word-without-any-space-that-is-longer-than-most-terminals-are-wide ".repeat(4);
    play.release(
        "docker-harbor-1-34-v4",
        Some(&words),
        &[("Image", "一二三四五六七八九十一二三四五六七八九十", "synced")],
    );
    for columns in 20..140 {
        for height in [1, 2, 5, 12, 24] {
            let text = play.text(columns, height);
            assert!(text.lines().skip(1).count() <= height, "{columns} × {height}:\n{text}");
            assert!(
                text.lines().all(|line| width(line) <= columns),
                "{columns} × {height}:\n{text}"
            );
        }
    }
}

#[test]
fn damage_is_shown_until_it_is_repaired_and_then_how_long_it_lasted() {
    let v1 = "docker-harbor-1-34-v1";
    let class = ("ClusterClass".to_owned(), v1.to_owned());
    let template = ("KubeadmConfigTemplate".to_owned(), format!("{v1}-worker"));
    let mut play = Play::new();
    play.whole(v1, &PARTS);
    play.picture.expect_damage(&class);
    play.picture.expect_damage(&template);

    play.object(v1, &class.0, &class.1, &format!("{v1}-0"), INTRUDER);
    play.told(What::ObjectGone(template.0.clone(), template.1.clone()));
    assert_eq!(play.state_of("ClusterClass"), "changed by somebody");
    assert_eq!(play.state_of("KubeadmConfigTemplate"), "deleted by somebody");
    assert_eq!(play.picture.repaired_after(&class), None);

    play.later(30)
        .object(v1, &class.0, &class.1, &format!("{v1}-0"), labels::FIELD_MANAGER);
    play.later(15)
        .object(v1, &template.0, &template.1, "another", labels::FIELD_MANAGER);
    assert_eq!(play.state_of("ClusterClass"), "synced mended after 30 ms");
    assert_eq!(play.state_of("KubeadmConfigTemplate"), "synced back after 45 ms");
    assert_eq!(
        play.picture.tally(),
        Tally {
            applied: 4,
            repaired: 2,
            removed: 0
        }
    );

    play.picture.turn_the_page();
    assert_eq!(play.state_of("ClusterClass"), "synced");
}

#[test]
fn what_was_not_announced_is_no_damage() {
    let v1 = "docker-harbor-1-34-v1";
    let mut play = Play::new();
    play.whole(v1, &PARTS);
    // Cluster API's own controllers write to classes and templates.
    play.object(v1, "ClusterClass", v1, &format!("{v1}-0"), "capi-topology");
    assert_eq!(play.state_of("ClusterClass"), "synced");
    play.told(What::ObjectGone("ClusterClass".to_owned(), v1.to_owned()));
    assert_eq!(play.state_of("ClusterClass"), "waiting");
    assert_eq!(play.picture.tally().repaired, 0);
}

#[test]
fn a_release_is_gone_when_its_objects_are() {
    let v1 = "docker-harbor-1-34-v1";
    let mut play = Play::new();
    play.stack("v1").whole(v1, &PARTS[..1]);
    play.told(What::ReleaseGone(v1.to_owned()));
    assert!(!play.picture.is_gone(&tag(v1)));
    assert_eq!(
        play.text(80, 24),
        "
  ClusterStack demo                                 ✓ ready   usable: v1
  └─ ClusterClass docker-harbor-1-34-v1             • left"
    );
    play.told(What::ObjectGone("ClusterClass".to_owned(), v1.to_owned()));
    assert!(play.picture.is_gone(&tag(v1)));
    assert!(!play.picture.is_empty());
    play.told(What::StackGone);
    assert!(play.picture.is_empty());
}

#[test]
fn usable_versions_are_compared_as_a_set() {
    let (v9, v10) = (tag("docker-harbor-1-34-v9"), tag("docker-harbor-1-34-v10"));
    let mut play = Play::new();
    assert!(play.picture.usable_are(&[]));
    play.stack("v9, v10");
    assert!(play.picture.usable_are(&[&v10, &v9]));
    assert!(!play.picture.usable_are(&[&v9]));
    assert!(!play.picture.usable_are(&[]));
}

#[test]
fn the_tenth_version_stands_below_the_ninth() {
    let mut play = Play::new();
    play.whole("docker-harbor-1-34-v10", &[])
        .whole("docker-harbor-1-34-v9", &[]);
    let names: Vec<_> = play.picture.rows().into_iter().map(|row| row.id.1).collect();
    assert_eq!(names, ["docker-harbor-1-34-v9", "docker-harbor-1-34-v10"]);
}

#[test]
fn ready_stack_shows_what_it_says_about_a_broken_release() {
    let broken = tag("docker-harbor-1-34-v3");
    let mut play = two_releases_and_a_broken_one();
    assert!(!play.picture.is_ready_beside(&broken));
    for (reason, status, expected) in [
        ("Progressing", "True", false),
        ("BrokenRelease", "False", false),
        ("RenderFailed", "True", true),
        ("BrokenRelease", "True", true),
    ] {
        let mut ready = condition(status, Some("docker-harbor-1-34-v3 cannot be used yet"));
        ready["reason"] = reason.into();
        play.stack_that_says("v1, v2", &ready);
        assert_eq!(play.picture.is_ready_beside(&broken), expected, "{reason} {status}");
    }
    assert!(!play.picture.is_ready_beside(&tag("docker-harbor-1-34-v2")));
    let row = &play.picture.rows()[0];
    assert_eq!((row.tone, row.state.as_str()), (Tone::Good, "ready"));
    assert_eq!(
        row.note,
        "usable: v1, v2 · BrokenRelease: docker-harbor-1-34-v3 cannot be used yet"
    );
}

#[test]
fn only_an_error_is_a_complaint() {
    let mut play = two_releases_and_a_broken_one();
    assert_eq!(play.picture.complaint(&tag("docker-harbor-1-34-v1")), None);
    assert!(
        play.picture
            .complaint(&tag("docker-harbor-1-34-v3"))
            .is_some_and(|text| text.contains("in the middle"))
    );
    play.release("docker-harbor-1-34-v3", None, &[]);
    assert_eq!(play.picture.complaint(&tag("docker-harbor-1-34-v3")), None);
}

#[test]
fn an_image_on_its_way_is_a_bar_with_what_it_shows_in_words() {
    let v1 = "docker-harbor-1-34-v1";
    let mut play = Play::new();
    play.stack("").release(v1, None, &[]);
    let transfer = json!({
        "attempt": 2, "via": "Upload", "sentBytes": 50, "totalBytes": 200, "resumes": 1, "summary": "25 % of 200 B",
    });
    play.image(
        &[v1],
        json!({ "phase": "Transferring", "attempt": 2, "transfer": transfer }),
    );
    assert_eq!(play.picture.percent_sent(&tag(v1)), Some(25));
    let text = play.text(80, 20);
    let bar = "        ━━━━━━────────────────── 25 % of 200 B, resumed";
    assert!(text.lines().any(|line| line == bar), "{text}");
    assert!(
        play.text(50, 20).contains("25 % of 200 B, resumed"),
        "words before a bar"
    );

    // What an earlier attempt sent is no progress of this one.
    play.image(
        &[v1],
        json!({ "phase": "Transferring", "attempt": 3, "transfer": transfer }),
    );
    assert_eq!(play.state_of("FileStoreNodeImageRelease"), "sending");
}

#[test]
fn an_image_is_there_until_its_last_release_is_gone_and_without_one_it_is_shown_too() {
    let (v1, v2) = ("docker-harbor-1-34-v1", "docker-harbor-1-34-v2");
    let mut play = Play::new();
    play.stack("").release(v1, None, &[]).release(v2, None, &[]);
    let ready = json!({ "phase": "Ready", "ready": true, "image": { "id": "1", "sizeBytes": 50_331_648 } });
    play.image(&[v1, v2], ready.clone());
    assert_eq!(
        play.state_of("FileStoreNodeImageRelease"),
        "ready 48 MiB, verified, shared by 2 releases"
    );
    assert_eq!(
        play.text(120, 20).matches("node-v1").count(),
        2,
        "once for each release"
    );
    assert!(play.picture.has_no_image_for(&tag(v1)), "it is not only for this one");
    play.image(&[v2], ready);
    assert!(!play.picture.has_no_image_for(&tag(v2)));
    play.told(What::ReleaseGone(v1.to_owned()))
        .told(What::ReleaseGone(v2.to_owned()))
        .told(What::StackGone);
    assert_eq!(play.text(120, 20).matches("node-v1").count(), 1);
    assert!(!play.picture.is_empty());
    play.told(What::ImageGone("docker-harbor-1-34-node-v1".to_owned()));
    assert!(play.picture.is_empty());
}
