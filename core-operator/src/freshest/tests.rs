use std::cell::RefCell;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crds::policy::ReleasePolicy;
use crds::{ClusterStackRelease, ClusterStackReleaseSpec};
use kube::runtime::reflector::store;
use kube::runtime::reflector::store::Writer;

use super::*;

fn release(name: &str, uid: &str, version: u64) -> ClusterStackRelease {
    let mut release = ClusterStackRelease::new(name, ClusterStackReleaseSpec::default());
    release.meta_mut().namespace = Some("fleet".to_owned());
    release.meta_mut().uid = Some(uid.to_owned());
    release.meta_mut().resource_version = Some(version.to_string());
    release
}

/// A watch, with the store and the view that follow it.
struct Watch {
    writer: Writer<ClusterStackRelease>,
    view: Freshest<ClusterStackRelease>,
}

impl Watch {
    fn start() -> Self {
        let (reader, writer) = store();
        Self {
            writer,
            view: Freshest::new(reader),
        }
    }

    /// The names and uids of the objects that are gone with this event.
    fn tell(&mut self, event: &Event<ClusterStackRelease>) -> Vec<(String, String)> {
        self.writer.apply_watcher_event(event);
        let gone = self.view.take(event);
        let mut gone: Vec<_> = gone
            .iter()
            .map(|release| {
                (
                    release.meta().name.clone().unwrap_or_default(),
                    release.meta().uid.clone().unwrap_or_default(),
                )
            })
            .collect();
        gone.sort_unstable();
        gone
    }

    fn list(&mut self, releases: &[ClusterStackRelease]) -> Vec<(String, String)> {
        assert!(self.tell(&Event::Init).is_empty());
        for release in releases {
            assert!(self.tell(&Event::InitApply(release.clone())).is_empty());
        }
        self.tell(&Event::InitDone)
    }

    fn version_of(&self, name: &str) -> Option<String> {
        self.view.get("fleet", name)?.meta().resource_version.clone()
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, uid)| ((*name).to_owned(), (*uid).to_owned()))
        .collect()
}

#[test]
fn list_that_is_older_than_answers_before_it_counts() {
    let mut watch = Watch::start();
    watch.list(&[release("a", "1", 10), release("b", "2", 11)]);
    watch.view.note(release("a", "1", 50));
    assert_eq!(watch.version_of("a").as_deref(), Some("50"));
    // The store was restored: what was written since is not there, and versions begin again.
    assert!(watch.tell(&Event::Init).is_empty());
    for release in [release("a", "1", 20), release("b", "2", 11)] {
        assert!(watch.tell(&Event::InitApply(release)).is_empty());
    }
    watch.view.note(release("b", "2", 21));
    assert!(watch.tell(&Event::InitDone).is_empty());
    assert_eq!(watch.version_of("a").as_deref(), Some("20"));
    assert_eq!(
        watch.version_of("b").as_deref(),
        Some("21"),
        "answered while it was listed"
    );
}

#[test]
fn what_a_later_list_is_without_is_gone() {
    let mut watch = Watch::start();
    assert!(!watch.view.is_listed());
    assert_eq!(watch.list(&[release("a", "1", 10), release("b", "2", 11)]), pairs(&[]));
    assert!(watch.view.is_listed());
    watch.view.note(release("a", "1", 12));
    // Created by us; the watch was interrupted before it told.
    watch.view.note(release("c", "3", 13));
    assert_eq!(watch.list(&[release("b", "2", 11)]), pairs(&[("a", "1"), ("c", "3")]));
    assert_eq!((watch.version_of("a"), watch.version_of("c")), (None, None));
    assert_eq!(watch.view.select("fleet", |_| true).len(), 1);
    // A late answer brings nothing back, and nothing goes twice.
    watch.view.note(release("a", "1", 12));
    assert_eq!(watch.version_of("a"), None);
    assert_eq!(watch.list(&[release("b", "2", 11)]), pairs(&[]));
}

#[test]
fn an_object_of_the_same_name_does_not_hide_that_the_former_is_gone() {
    let mut watch = Watch::start();
    watch.list(&[release("a", "1", 10)]);
    watch.view.note(release("a", "2", 14));
    assert_eq!(watch.list(&[release("a", "2", 14)]), pairs(&[("a", "1")]));
    assert_eq!(watch.version_of("a").as_deref(), Some("14"));
}

#[test]
fn an_answer_that_is_newer_than_the_list_stays() {
    let mut watch = Watch::start();
    watch.list(&[]);
    assert_eq!(watch.tell(&Event::Init), pairs(&[]));
    watch.view.note(release("a", "1", 20));
    assert_eq!(watch.tell(&Event::InitDone), pairs(&[]));
    assert_eq!(watch.version_of("a").as_deref(), Some("20"));
}

#[test]
fn what_a_write_without_effect_is_answered_counts_until_the_watch_shows_a_newer_version() {
    let mut watch = Watch::start();
    let full = |version| {
        let mut release = release("a", "1", version);
        release.spec.policy = Some(ReleasePolicy::default());
        release
    };
    let has_policy = |view: &Freshest<ClusterStackRelease>| {
        let of = |release: &ClusterStackRelease| release.spec.policy.is_some();
        let alone = view.get("fleet", "a").is_some_and(|release| of(&release));
        assert_eq!(view.select("fleet", of).len(), usize::from(alone));
        alone
    };
    // Its CRD has become newer; the watch that runs leaves out what the old one did not have.
    watch.list(&[release("a", "1", 10)]);
    watch.view.note(full(10));
    assert!(
        !has_policy(&watch.view),
        "the watch has shown the version of this answer"
    );
    watch.view.correct(full(10));
    assert!(has_policy(&watch.view));
    watch.tell(&Event::Apply(release("a", "1", 11)));
    assert!(!has_policy(&watch.view));
}

#[test]
fn a_deleted_object_stays_deleted_until_the_watch_shows_a_newer_one() {
    let mut watch = Watch::start();
    watch.list(&[release("a", "1", 10)]);
    watch.view.bury(&release("a", "1", 12));
    // What the watch has yet to tell of the past.
    watch.tell(&Event::Apply(release("a", "1", 11)));
    assert_eq!(watch.version_of("a"), None);
    assert_eq!(watch.tell(&Event::Delete(release("a", "1", 13))), pairs(&[("a", "1")]));
    watch.view.note(release("a", "1", 14));
    assert_eq!(watch.version_of("a"), None);
    // The selector of the watch matches it again.
    watch.tell(&Event::Apply(release("a", "1", 15)));
    assert_eq!(watch.version_of("a").as_deref(), Some("15"));
    watch.view.note(release("a", "1", 16));
    assert_eq!(watch.version_of("a").as_deref(), Some("16"));
}

#[test]
fn what_a_list_shows_that_began_after_its_burial_lives() {
    let mut watch = Watch::start();
    watch.list(&[release("a", "1", 10), release("b", "2", 11)]);
    assert_eq!(watch.tell(&Event::Delete(release("a", "1", 50))), pairs(&[("a", "1")]));
    // The store was restored: it has what was deleted since, and versions begin again.
    assert!(watch.tell(&Event::Init).is_empty());
    watch.view.bury(&release("b", "2", 51));
    for release in [release("a", "1", 10), release("b", "2", 11)] {
        assert!(watch.tell(&Event::InitApply(release)).is_empty());
    }
    assert!(watch.tell(&Event::InitDone).is_empty());
    assert_eq!(watch.version_of("a").as_deref(), Some("10"));
    assert_eq!(watch.version_of("b"), None, "it was buried while it was listed");
    watch.view.note(release("a", "1", 12));
    assert_eq!(watch.version_of("a").as_deref(), Some("12"));
}

/// By the first letter.
fn first_letter(release: &ClusterStackRelease) -> Vec<String> {
    let name = release.meta().name.as_deref().unwrap_or_default();
    vec![name.chars().take(1).collect()]
}

#[test]
fn only_what_has_a_handle_is_looked_at() {
    let (reader, writer) = store();
    let view = Freshest::by(reader, first_letter);
    let mut watch = Watch { writer, view };
    let others: Vec<_> = (0..1000)
        .map(|n| release(&format!("b{n}"), &format!("b{n}"), 1))
        .collect();
    let all: Vec<_> = others
        .into_iter()
        .chain([release("a1", "1", 10), release("a2", "2", 11)])
        .collect();
    watch.list(&all);
    watch.view.note(release("a3", "3", 12));
    let looked_at = |view: &Freshest<ClusterStackRelease>| {
        let names = RefCell::new(Vec::new());
        let note = |release: &ClusterStackRelease| {
            names.borrow_mut().extend(release.meta().name.clone());
            true
        };
        view.find("fleet", &["a".to_owned()], note);
        names.into_inner().join(" ")
    };
    assert_eq!(looked_at(&watch.view), "a1 a2 a3");
    watch.tell(&Event::Delete(release("a1", "1", 13)));
    watch.view.bury(&release("a2", "2", 11));
    assert_eq!(looked_at(&watch.view), "a3");
    // Made anew, and not in the next list.
    watch.tell(&Event::Apply(release("a1", "4", 14)));
    assert_eq!(looked_at(&watch.view), "a1 a3");
    watch.list(&[release("a3", "3", 12)]);
    assert_eq!(looked_at(&watch.view), "a3");
    assert!(watch.view.find("elsewhere", &["a".to_owned()], |_| true).is_empty());
}

#[test]
fn whoever_looks_keeps_nobody_from_noting_an_answer() {
    let (reader, _writer) = store();
    let view = Arc::new(Freshest::by(reader, first_letter));
    view.note(release("a1", "1", 10));
    let (noted, told) = mpsc::channel();
    let found = view.find_everywhere(&["a".to_owned()], |_| {
        let (noting, noted) = (Arc::clone(&view), noted.clone());
        thread::spawn(move || {
            noting.note(release("a2", "2", 11));
            noted.send(())
        });
        told.recv_timeout(Duration::from_secs(30)).is_ok()
    });
    assert_eq!(found.len(), 1, "the answer was not taken while somebody looked");
}

#[test]
fn what_has_a_handle_is_found_in_all_namespaces_and_nothing_else_is_looked_at() {
    let (reader, writer) = store();
    let view = Freshest::by(reader, first_letter);
    let mut watch = Watch { writer, view };
    let mut there = release("a2", "2", 11);
    there.meta_mut().namespace = Some("depot".to_owned());
    let others = (0..1000).map(|n| release(&format!("b{n}"), &format!("b{n}"), 1));
    let all: Vec<_> = others.chain([release("a1", "1", 10), there.clone()]).collect();
    watch.list(&all);
    let looked_at = |view: &Freshest<ClusterStackRelease>| {
        let names = RefCell::new(Vec::new());
        let note = |release: &ClusterStackRelease| {
            names.borrow_mut().extend(release.meta().name.clone());
            true
        };
        view.find_everywhere(&["a".to_owned()], note);
        names.into_inner().join(" ")
    };
    assert_eq!(looked_at(&watch.view), "a2 a1", "by namespace");
    watch.tell(&Event::Delete(there));
    assert_eq!(looked_at(&watch.view), "a1");
}

#[test]
fn a_handle_of_many_objects_is_kept_once_and_goes_with_the_last() {
    let mut index = Index::default();
    let places = ["depot", "fleet"].map(|namespace| (namespace.to_owned(), "a".to_owned()));
    for place in &places {
        for _ in 0..2 {
            index.add(place, vec!["stem a".to_owned(), format!("mark {}", place.0)]);
        }
    }
    let texts = index.by_handle.iter().map(|(handle, _)| handle.as_ptr());
    assert_eq!(texts.collect::<BTreeSet<_>>().len(), 3, "one of both and one of each");
    let found = |index: &Index, within| index.places(within, &["stem a".to_owned()]);
    assert_eq!(found(&index, Some("fleet")), BTreeSet::from([places[1].clone()]));
    index.remove(&places[1]);
    assert_eq!(found(&index, None), BTreeSet::from([places[0].clone()]));
    index.remove(&places[0]);
    assert!(index.by_handle.is_empty() && index.by_place.is_empty());
}
