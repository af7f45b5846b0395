//! Journeys before the API server in memory: an operator works while something happens to its objects, and what there is in the end is compared with what there
//! is when no call fails.

#![expect(
    clippy::missing_panics_doc,
    reason = "a journey that cannot be gone, or ends otherwise than it must, ends the test"
)]

use std::fmt::Debug;

use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use super::{Fault, Key, Server};

/// The fields that tell how an object came to be: identities, versions, writers and times.
const HISTORY: [&str; 8] = [
    "uid",
    "resourceVersion",
    "generation",
    "observedGeneration",
    "managedFields",
    "lastTransitionTime",
    "since",
    "deadline",
];

/// What there is after a part of a journey.
pub type End = Vec<(Key, Value)>;

/// A journey that was gone with a fault, or without one.
#[derive(Clone, Debug)]
pub struct Played<P> {
    /// What came of its parts.
    pub parts: Vec<P>,
    /// The call that failed; `None` when there were fewer calls.
    pub struck: Option<String>,
    /// How many calls there were.
    pub calls: usize,
}

/// A runtime whose clock stands still while something is done, and leaps when nothing is.
pub fn paused() -> Runtime {
    let mut runtime = Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().expect("a runtime")
}

/// What comes of a journey while an operator works, which is asked to stop by its token then.
pub async fn beside<T, E: Debug>(
    operating: impl Future<Output = Result<(), E>>,
    stop: &CancellationToken,
    journey: impl Future<Output = T>,
) -> T {
    let journey = async {
        let came = journey.await;
        stop.cancel();
        came
    };
    let (operated, came) = tokio::join!(operating, journey);
    operated.expect("the operator works");
    came
}

/// All objects but events, which tell of the way, without the fields that tell of it too; nor these.
pub fn end(server: &Server, besides: &[&str]) -> End {
    let objects = server.objects().into_iter().filter(|(key, _)| key.0 != "Event");
    objects
        .map(|(key, mut object)| {
            strip(&mut object, besides);
            (key, object)
        })
        .collect()
}

fn strip(value: &mut Value, besides: &[&str]) {
    match value {
        Value::Object(map) => {
            map.retain(|name, _| !HISTORY.contains(&name.as_str()) && !besides.contains(&name.as_str()));
            map.values_mut().for_each(|value| strip(value, besides));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| strip(value, besides)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Two ends are the same. Says only what differs.
#[track_caller]
pub fn assert_same(end: &End, expected: &End, when: &str) {
    let missing: Vec<_> = expected.iter().filter(|object| !end.contains(object)).collect();
    let besides: Vec<_> = end.iter().filter(|object| !expected.contains(object)).collect();
    assert!(
        missing.is_empty() && besides.is_empty(),
        "{when}: {besides:#?} instead of {missing:#?}"
    );
}

/// Goes a journey with its n-th call failing, for every n until there are no more calls, and has each part compared with what it is without a fault; the words
/// say when. A journey of not more than `fewest` calls is not the one that was meant.
pub fn with_every_call_failing<P>(
    fault: Fault,
    fewest: usize,
    play: impl Fn(Option<(usize, Fault)>) -> Played<P>,
    assert_same: impl Fn(&P, &P, &str),
) {
    let expected = play(None);
    assert!(expected.calls > fewest, "the journey has only {} calls", expected.calls);
    let mut at = 0;
    loop {
        at += 1;
        let played = play(Some((at, fault)));
        assert_eq!(played.parts.len(), expected.parts.len());
        let struck = played.struck.as_deref().unwrap_or("none");
        for (number, (part, expected)) in played.parts.iter().zip(&expected.parts).enumerate() {
            let when = format!("after part {number}, with call {at} {fault:?}: {struck}");
            assert_same(part, expected, &when);
        }
        if played.struck.is_none() {
            break;
        }
    }
    assert!(at > fewest, "{at} calls were tried");
}
