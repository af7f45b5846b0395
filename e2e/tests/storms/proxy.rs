//! The proxy's faults, each on a real API server: what the client sees, and what really happened.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use e2e::{
    FaultProxy, Journey, eventually,
    fault_proxy::{Fault, Interruption, InterruptionKind, MEDDLED, Verb},
    journey::{SOON, journey},
};
use futures::{Stream, TryStreamExt, try_join};
use http::{Request, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams},
};
use tokio::time::{sleep, timeout};

const KIND: &str = "configmaps";
/// Every namespace gets this one, at some time.
const OURS: &str = "metadata.name!=kube-root-ca.crt";
/// Longer than any answer of an API server takes that is in no hurry.
const LONG: Duration = Duration::from_secs(10);

/// Objects of a journey: through the proxy, and directly.
struct Scene {
    proxy: FaultProxy,
    client: Client,
    namespace: String,
    through: Api<ConfigMap>,
    direct: Api<ConfigMap>,
}

impl Scene {
    async fn of(journey: &Journey) -> Result<Self> {
        let proxy = FaultProxy::start(journey.control_plane()).await?;
        let client = proxy.client().await?;
        Ok(Self {
            through: Api::namespaced(client.clone(), &journey.namespace),
            direct: journey.api(),
            namespace: journey.namespace.clone(),
            proxy,
            client,
        })
    }

    async fn make(&self, name: &str) -> Result<ConfigMap> {
        Ok(self.direct.create(&PostParams::default(), &map(name, "first")).await?)
    }

    /// The resource version of now.
    async fn version(&self) -> Result<String> {
        let list = self.direct.list(&ListParams::default()).await?;
        list.metadata.resource_version.context("lists have versions")
    }

    async fn watch(&self, version: &str) -> Result<impl Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + use<>> {
        Ok(self
            .through
            .watch(&WatchParams::default().fields(OURS), version)
            .await?)
    }
}

fn map(name: &str, text: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.data = Some([("text".to_owned(), text.to_owned())].into());
    map
}

fn text(map: &ConfigMap) -> String {
    map.data.iter().flatten().map(|(_, text)| text.clone()).collect()
}

/// What a watch tells next, in short.
async fn told(watch: &mut (impl Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin)) -> Result<String> {
    let event = timeout(SOON, watch.try_next()).await.context("the watch is silent")?;
    Ok(match event {
        Ok(None) => "end".to_owned(),
        Ok(Some(WatchEvent::Added(object))) => format!("+{}", object.name_any()),
        Ok(Some(WatchEvent::Modified(object))) => format!("~{}", object.name_any()),
        Ok(Some(WatchEvent::Deleted(object))) => format!("-{}", object.name_any()),
        Ok(Some(WatchEvent::Bookmark(_))) => "bookmark".to_owned(),
        Ok(Some(WatchEvent::Error(status))) => format!("error {}", status.code),
        Err(_) => "broken".to_owned(),
    })
}

#[test]
fn a_write_is_done_or_not_as_the_fault_says_and_the_client_cannot_tell() -> Result<()> {
    journey(async |journey| {
        let scene = Scene::of(journey).await?;
        for (fault, done, refused) in [
            (Fault::ResetBefore, false, None),
            (Fault::ResetAfter, true, None),
            (Fault::FailAfter, true, Some(500)),
            (Fault::Refuse(StatusCode::INTERNAL_SERVER_ERROR), false, Some(500)),
        ] {
            let name = format!("{fault:?}")
                .to_lowercase()
                .replace(|letter: char| !letter.is_ascii_alphanumeric(), "");
            scene.proxy.deal(Verb::Create, KIND, fault);
            let answer = scene.through.create(&PostParams::default(), &map(&name, "")).await;
            let code = match answer {
                Err(kube::Error::Api(status)) => Some(status.code),
                Err(_) => None,
                Ok(_) => Some(200),
            };
            assert_eq!(code, refused, "{fault}");
            assert_eq!(scene.direct.get_opt(&name).await?.is_some(), done, "{fault}");
        }
        let dealt: Vec<String> = scene.proxy.blows().iter().map(ToString::to_string).collect();
        assert_eq!(dealt[0], "create configmaps #0: ResetBefore");
        assert_eq!(dealt.len(), 4, "each strikes once: {dealt:?}");
        Ok(())
    })
}

#[test]
fn the_chosen_request_meets_its_fault_whatever_it_asks_for_and_no_other_does() -> Result<()> {
    journey(async |journey| {
        let scene = Scene::of(journey).await?;
        scene.make("one").await?;
        scene.proxy.fail_at(2, Fault::Refuse(StatusCode::INTERNAL_SERVER_ERROR));
        scene.through.get("one").await?;
        let refused = scene.through.list(&ListParams::default()).await;
        ensure!(
            matches!(&refused, Err(kube::Error::Api(status)) if status.code == 500),
            "{refused:?}"
        );
        scene.through.list(&ListParams::default()).await?;
        scene.through.get("one").await?;
        let dealt: Vec<String> = scene.proxy.blows().iter().map(ToString::to_string).collect();
        assert_eq!(dealt, ["list configmaps #0: Refuse(500)"]);
        Ok(())
    })
}

#[test]
fn a_late_answer_tells_of_what_has_been_done_long_before() -> Result<()> {
    const LATE: Duration = Duration::from_secs(2);
    journey(async |journey| {
        let scene = Scene::of(journey).await?;
        scene.proxy.deal(Verb::Create, KIND, Fault::Late(LATE));
        let (begun, wanted, options) = (Instant::now(), map("late", ""), PostParams::default());
        let answered = async {
            scene.through.create(&options, &wanted).await?;
            Ok(begun.elapsed())
        };
        let done = async {
            eventually(LATE, "the object is there", || scene.direct.get("late")).await?;
            Ok::<_, anyhow::Error>(begun.elapsed())
        };
        let (answered, done) = try_join!(answered, done)?;
        ensure!(
            done < LATE && LATE <= answered,
            "done after {done:?}, answered after {answered:?}"
        );
        Ok(())
    })
}

#[test]
fn who_asks_too_much_is_told_when_to_come_again() -> Result<()> {
    journey(async |journey| {
        let scene = Scene::of(journey).await?;
        scene
            .proxy
            .deal(Verb::List, KIND, Fault::Refuse(StatusCode::TOO_MANY_REQUESTS));
        let path = format!("/api/v1/namespaces/{}/configmaps", scene.namespace);
        let ask = async || {
            scene
                .client
                .send(Request::get(&path).body(Vec::new().into())?)
                .await
                .map_err(anyhow::Error::from)
        };
        let answer = ask().await?;
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(answer.headers()["retry-after"], "1");
        assert_eq!(ask().await?.status(), StatusCode::OK);
        Ok(())
    })
}

#[test]
fn a_conflict_is_the_api_servers_own_word_because_somebody_wrote() -> Result<()> {
    journey(async |journey| {
        let scene = Scene::of(journey).await?;
        let mut mine = scene.make("one").await?;
        mine.data = map("one", "second").data;
        scene.proxy.deal(Verb::Update, KIND, Fault::Conflict);
        let refused = scene.through.replace("one", &PostParams::default(), &mine).await;
        let Err(kube::Error::Api(status)) = refused else {
            anyhow::bail!("{refused:?}");
        };
        assert_eq!(
            (status.code, status.message.contains("the object has been modified")),
            (409, true),
            "{status:?}"
        );
        let now = scene.direct.get("one").await?;
        assert_eq!(text(&now), "first");
        assert!(now.annotations().contains_key(MEDDLED));
        Ok(())
    })
}

#[test]
fn reads_of_the_past_show_what_was_and_the_watch_from_there_tells_the_rest() -> Result<()> {
    journey(async |journey| {
        let scene = Scene::of(journey).await?;
        let old = scene.make("old").await?;
        let gone = scene.make("gone").await?;
        let then = scene.version().await?;
        scene
            .direct
            .replace("old", &PostParams::default(), &map("old", "second"))
            .await?;
        scene.direct.delete("gone", &DeleteParams::default()).await?;
        scene.make("new").await?;

        scene.proxy.answer_from(then.parse()?, LONG);
        let begun = Instant::now();
        let listed = scene.through.list(&ListParams::default().fields(OURS)).await?;
        let names: Vec<String> = listed.items.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["gone", "old"]);
        assert_eq!(listed.metadata.resource_version.as_ref(), Some(&then));
        assert_eq!(scene.through.get("old").await?, old);
        assert_eq!(scene.through.get("gone").await?.metadata.uid, gone.metadata.uid);
        assert!(scene.through.get_opt("new").await?.is_none(), "it is not there yet");
        let streaming = WatchParams::default().fields(OURS).initial_events();
        let mut stream = pin!(scene.through.watch(&streaming, "").await?);
        let mut initial = Vec::new();
        while !initial.iter().any(|event| event == "bookmark") {
            initial.push(told(&mut stream).await?);
        }
        assert_eq!(initial, ["+gone", "+old", "bookmark"]);
        let mut watch = pin!(scene.watch(&then).await?);
        ensure!(begun.elapsed() < LONG, "the machine is too slow for this test");
        for watch in [&mut stream as &mut (dyn Stream<Item = _> + Unpin), &mut watch] {
            let mut rest = Vec::new();
            for _ in 0..3 {
                rest.push(told(&mut Box::pin(&mut *watch)).await?);
            }
            assert_eq!(rest, ["~old", "-gone", "+new"]);
        }
        assert!(begun.elapsed() >= LONG, "a frozen watch tells nothing");
        assert!(
            scene.through.get_opt("new").await?.is_some(),
            "and then it is the present"
        );
        Ok(())
    })
}

#[test]
fn a_watch_is_interrupted_after_so_many_events() -> Result<()> {
    journey(async |journey| {
        let scene = Scene::of(journey).await?;
        let stalled = Duration::from_millis(700);
        for (round, (kind, expected)) in [
            (InterruptionKind::Cut, ["+a", "broken", "broken"]),
            (InterruptionKind::End, ["+a", "end", "end"]),
            (
                InterruptionKind::Blind(Duration::from_millis(10)),
                ["+a", "error 410", "end"],
            ),
            (InterruptionKind::Stall(stalled), ["+a", "+b", "+c"]),
        ]
        .into_iter()
        .enumerate()
        {
            let version = scene.version().await?;
            let interruption = Interruption { after: 1, kind };
            scene.proxy.deal(Verb::Watch, KIND, Fault::Interrupt(interruption));
            let mut watch = pin!(scene.watch(&version).await?);
            let begun = Instant::now();
            for name in ["a", "b", "c"] {
                scene.make(&format!("{name}{round}")).await?;
            }
            for wanted in expected {
                let found = told(&mut watch).await?;
                let same = found.trim_end_matches(char::is_numeric) == wanted || found == wanted;
                // Who reads on after an error may be told the end, and what was on its way may be lost with its connection.
                let is_lost = kind == InterruptionKind::Cut && wanted == "+a" && ["broken", "end"].contains(&&*found);
                ensure!(
                    same || is_lost || wanted == "broken" && found == "end",
                    "{kind:?}: {found} instead of {wanted}"
                );
            }
            assert!(kind != InterruptionKind::Stall(stalled) || begun.elapsed() >= stalled);
        }
        Ok(())
    })
}

#[test]
fn a_watch_may_begin_further_back_than_it_asks_for() -> Result<()> {
    journey(async |journey| {
        let scene = Scene::of(journey).await?;
        let begin = scene.version().await?;
        let mut watch = pin!(scene.watch(&begin).await?);
        scene.make("one").await?;
        assert_eq!(told(&mut watch).await?, "+one");
        let first = Instant::now();
        // The past is measured in time: so much may pass until the next watch arrives.
        sleep(Duration::from_secs(5)).await;
        scene.make("two").await?;
        assert_eq!(told(&mut watch).await?, "+two");
        let version = scene.version().await?;
        scene.proxy.deal(Verb::Watch, KIND, Fault::Replay(first.elapsed()));
        let mut again = pin!(scene.watch(&version).await?);
        scene.make("three").await?;
        assert_eq!([told(&mut again).await?, told(&mut again).await?], ["+two", "+three"]);
        Ok(())
    })
}

#[test]
fn the_chosen_event_is_lost_and_nothing_of_other_namespaces_counts() -> Result<()> {
    journey(async |journey| {
        let scene = Scene::of(journey).await?;
        let version = scene.version().await?;
        let all = Api::<ConfigMap>::all(scene.client.clone());
        let mut watch = pin!(all.watch(&WatchParams::default().fields(OURS), &version).await?);
        scene.proxy.lose_event(&scene.namespace, Some(2), Duration::ZERO);
        let elsewhere = journey.another_namespace().await?;
        Api::<ConfigMap>::namespaced(journey.client.clone(), &elsewhere)
            .create(&PostParams::default(), &map("elsewhere", ""))
            .await?;
        for name in ["one", "two", "three"] {
            scene.make(name).await?;
        }
        let mut seen = Vec::new();
        while seen.last().is_none_or(|last| last != "error 410") {
            seen.push(told(&mut watch).await?);
        }
        // Other tests have ConfigMaps too.
        seen.retain(|event| ["+elsewhere", "+one", "+two", "+three", "error 410"].contains(&event.as_str()));
        assert_eq!(seen, ["+elsewhere", "+one", "error 410"]);
        assert_eq!(scene.proxy.events(), 2);
        assert!(scene.proxy.lost_event().is_some_and(|event| event.contains("ADDED")));
        Ok(())
    })
}

#[test]
fn in_a_pause_everything_waits_and_nothing_is_lost() -> Result<()> {
    journey(async |journey| {
        let scene = Scene::of(journey).await?;
        let version = scene.version().await?;
        let mut watch = pin!(scene.watch(&version).await?);
        let lasting = Duration::from_millis(800);
        scene.proxy.deal(Verb::List, KIND, Fault::Pause(lasting));
        let begun = Instant::now();
        let reader = scene.through.clone();
        let list = tokio::spawn(async move { reader.list(&ListParams::default()).await });
        let dealt = || {
            std::future::ready(if scene.proxy.blows().is_empty() {
                Err("not yet")
            } else {
                Ok(())
            })
        };
        eventually(SOON, "the pause to begin", dealt).await?;
        scene.make("one").await?;
        assert_eq!(told(&mut watch).await?, "+one");
        assert!(begun.elapsed() >= lasting, "the event waited");
        let listed = list.await??;
        assert!(
            listed.items.iter().any(|object| object.name_any() == "one"),
            "the list came after"
        );
        Ok(())
    })
}
