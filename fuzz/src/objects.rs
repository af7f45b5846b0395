//! What must hold of objects that the API server gives: our own, and those of others, of which any field may be missing or something else.

use crds::{ClusterStack, ClusterStackRelease};
use planning::admission::{ClusterChange, Verdict, addon_update, outline};
use planning::digest::{canonical, digest_of_everything};
use planning::health::health;
use planning::objects::OwnerKind;
use planning::stored_data::{losses, refusal};
use planning::topology::Topology;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_slice, from_value, to_value};

/// Our own kinds: what can be read is the same after it was written, and says what it says without a panic. Whether one could be read.
pub(crate) fn resources(input: &[u8]) -> bool {
    let stack = read::<ClusterStack>(input);
    if let Some(stack) = &stack {
        let _ = (stack.spec.stem(), stack.spec.parsed_channel(), stack.spec.policy());
        assert!(!stack.spec.poll_interval().is_zero());
    }
    let release = read::<ClusterStackRelease>(input);
    stack.is_some() || release.is_some()
}

fn read<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(input: &[u8]) -> Option<T> {
    let read: T = from_slice(input).ok()?;
    let written = to_value(&read).expect("what was read can be written");
    let again: T = from_value(written.clone()).unwrap_or_else(|error| panic!("{error} in {written}"));
    assert_eq!(again, read);
    Some(read)
}

/// Objects of others (a ClusterClass, a release object of a provider, a Cluster, a CRD), as JSON that promises nothing. Two of them, with a line of `=`
/// between, are one before and after a change. Whether there was one.
pub(crate) fn strangers(input: &[u8]) -> bool {
    let split = input.windows(3).position(|window| window == b"\n=\n");
    let (before, after) = match split {
        Some(at) => (&input[..at], &input[at + 3..]),
        None => (input, input),
    };
    let (Ok(before), Ok(after)) = (from_slice::<Value>(before), from_slice::<Value>(after)) else {
        return false;
    };
    for object in [&before, &after] {
        assert_eq!(health(object), health(&reread(object)));
        assert_eq!(
            losses(object, object).len(),
            0,
            "a CRD that stays as it is loses nothing"
        );
        if let Some(topology) = Topology::of(object, "team") {
            assert!(!topology.class.is_empty() && !topology.class_namespace.is_empty());
        }
        let nothing = ClusterChange::of("c", "team", Some(object), object);
        assert!(
            nothing.verdict(None).refusal.is_none(),
            "a write that changes nothing passes"
        );
        assert!(addon_update("a", "team", object, object).refusal.is_none());
    }
    let found = losses(&before, &after);
    let told = refusal(OwnerKind::Addon, &before, &after, None);
    assert_eq!(told.is_some(), !found.is_empty());
    let approved = digest_of_everything(&found);
    assert_eq!(refusal(OwnerKind::Addon, &before, &after, Some(&approved)), None);
    let change = ClusterChange::of("c", "team", Some(&before), &after);
    let _ = (
        change.release(),
        change.verdict(None),
        addon_update("a", "team", &before, &after),
    );
    true
}

/// The body of an `AdmissionReview`, which anybody sends who reaches the port: what is kept of it is small, and leads to the verdicts
/// of the whole. Whether it was JSON.
pub(crate) fn reviews(input: &[u8]) -> bool {
    let outlined = outline(input);
    // Who builds a tree refuses also what is stepped over: numbers that do not fit, and depth.
    if let Ok(whole) = from_slice::<Value>(input) {
        let outlined = outlined.as_ref().unwrap_or_else(|| panic!("{whole} is JSON"));
        assert_eq!(verdicts(outlined), verdicts(&whole));
    }
    let Some(outlined) = outlined else { return false };
    let text = outlined.to_string();
    assert!(text.len() <= input.len().max(4) * MOST_ESCAPED, "{text}");
    let again = outline(text.as_bytes()).unwrap_or_else(|| panic!("{text} is JSON"));
    assert_eq!(verdicts(&again), verdicts(&outlined));
    true
}

/// Bytes that one byte of a text takes at most when it is written in JSON: one that steers is written by its number.
const MOST_ESCAPED: usize = 6;

/// What the rules say of the objects of a review, as those of a Cluster and of an add-on.
fn verdicts(review: &Value) -> (ClusterChange, Verdict, Verdict) {
    let object = |name: &str| review.pointer(name).filter(|object| object.is_object());
    let (before, after) = (object("/request/oldObject"), object("/request/object"));
    let nothing = Value::Null;
    let change = ClusterChange::of("c", "team", before, after.unwrap_or(&nothing));
    let verdict = change.verdict(None);
    let of_addon = addon_update("a", "team", before.unwrap_or(&nothing), after.unwrap_or(&nothing));
    (change, verdict, of_addon)
}

/// The same value, by its canonical text.
fn reread(value: &Value) -> Value {
    let text = canonical(value);
    let again: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
    assert_eq!(canonical(&again), text);
    assert_eq!(digest_of_everything(&again), digest_of_everything(value));
    again
}
