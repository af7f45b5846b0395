//! Many long answers at once: of few of them there is more in memory than their beginning, and those that come slowly keep nobody else waiting.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use release::{
    http::{Client, Deadlines, HttpError, Network, NetworkOptions, Request},
    source::{
        GithubOptions, GithubSource, HttpOptions, HttpSource, ReleaseSource,
        oci::{OciOptions, OciSource},
    },
};
use tokio::task::{self, JoinSet};

use crate::stub::{NAMES, Reply, Stub, authority, network, options};

/// Sources that are asked at once, each on behalf of somebody else.
const CROWD: usize = 20;
/// Bytes of an answer: less than that of a page of tags may have.
const LONG: usize = 2_000_000;
const MEBIBYTE: u64 = 1 << 20;

/// An answer of [`LONG`] bytes that is this in JSON. Only `is_announced` it tells its length first.
fn long(json: &str, is_announced: bool) -> Reply {
    let body = json.to_owned() + &" ".repeat(LONG - json.len());
    if is_announced {
        return Reply::of(200, &[], body);
    }
    Reply::Says(format!("HTTP/1.1 200 OK\r\n\r\n{body}").into())
}

/// Lists all sources at once, and tells how many bytes of answers there were at most that had come and were not yet understood.
async fn peak(network: &Network, sources: Vec<Arc<dyn ReleaseSource>>) -> u64 {
    let count = sources.len() as u64;
    let ended = Arc::new(AtomicU64::new(0));
    let mut lists = JoinSet::new();
    for source in sources {
        let ended = Arc::clone(&ended);
        lists.spawn(async move {
            source.list().await.unwrap();
            ended.fetch_add(LONG as u64, Ordering::SeqCst);
        });
    }
    let mut peak = 0;
    while ended.load(Ordering::SeqCst) < count * LONG as u64 && !lists.is_empty() {
        let understood = ended.load(Ordering::SeqCst);
        peak = peak.max(network.statistics().bytes - understood);
        task::yield_now().await;
        if let Some(Err(failed)) = lists.try_join_next() {
            panic!("{failed}");
        }
    }
    peak
}

/// As many sources as there are in a crowd, each of another namespace.
fn crowd(network: &Network, make: impl Fn(&Network) -> Arc<dyn ReleaseSource>) -> Vec<Arc<dyn ReleaseSource>> {
    let networks = (0..CROWD).map(|number| network.asked_by(&format!("namespace-{number}")));
    networks.map(|network| make(&network)).collect()
}

fn index(stub: &Stub) -> impl Fn(&Network) -> Arc<dyn ReleaseSource> {
    let options = HttpOptions {
        url: stub.url("/stacks").to_string(),
        credentials: None,
        certificates: Some(authority().to_vec()),
    };
    move |network| Arc::new(HttpSource::new(&options, network).unwrap())
}

const INDEX: &str = r#"{ "apiVersion": "index.clusterstack.x-k8s.io/v1alpha1", "releases": [] }"#;

#[tokio::test]
async fn of_many_long_lists_few_are_in_memory_until_they_are_understood() {
    let stub = Stub::new(|asked| match asked.target.as_str() {
        "/stacks/index.json" => long(INDEX, true),
        target if target.starts_with("/repos") => long("[]", true),
        _ => long(r#"{ "name": "kaas/stacks", "tags": [] }"#, true),
    })
    .await;
    let github = GithubOptions {
        owner: "octo".to_owned(),
        repository: "stacks".to_owned(),
        api_url: Some(stub.url("/").to_string()),
        token: None,
        certificates: Some(authority().to_vec()),
    };
    let base = stub.url("/");
    let repository = format!("{}:{}/kaas/stacks", NAMES[0], base.port().unwrap());
    let oci = OciOptions {
        repository: repository.parse().unwrap(),
        plain_http: false,
        credentials: None,
        certificates: Some(authority().to_vec()),
        token_hosts: Vec::new(),
    };
    for sort in ["index", "github", "oci"] {
        let network = network();
        let sources = crowd(&network, |network| match sort {
            "index" => index(&stub)(network),
            "github" => Arc::new(GithubSource::new(github.clone(), network).unwrap()),
            _ => Arc::new(OciSource::new(network, oci.clone()).unwrap()),
        });
        let peak = peak(&network, sources).await;
        // Two, and what came for the next before it was told that one is understood.
        assert!(peak <= 3 * LONG as u64, "{sort}: {peak}");
    }
}

#[tokio::test]
async fn of_many_lists_of_which_nobody_told_that_they_are_long_few_are_in_memory_beyond_their_beginning() {
    let stub = Stub::new(|_| long(INDEX, false)).await;
    let network = network();
    let peak = peak(&network, crowd(&network, index(&stub))).await;
    // Each with what was on its way when it was known to be long.
    let beginnings = CROWD as u64 * (MEBIBYTE + MEBIBYTE / 2);
    assert!(peak <= beginnings + LONG as u64, "{peak}");
}

#[tokio::test]
async fn long_answers_that_come_slowly_give_their_places_to_others() {
    let stub = Stub::new(|asked| match asked.target.as_str() {
        "/slow" => Reply::Hangs([b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b'x'; LONG]].concat()),
        _ => long("", true),
    })
    .await;
    let deadlines = Deadlines {
        quick: Duration::from_millis(100),
        ..Deadlines::default()
    };
    let network = Network::new(NetworkOptions { deadlines, ..options() }).unwrap();
    let ask = |asker: String, path: &str| {
        let network = network.asked_by(&asker);
        let client = Client::new(&network, stub.url("/"), None, Some(authority())).unwrap();
        let request = Request::get(stub.url(path));
        async move { client.send(request).await.unwrap().bytes(2 * LONG).await }
    };
    let mut slow = JoinSet::new();
    for number in 0..6 {
        slow.spawn(ask(format!("slow-{number}"), "/slow"));
    }
    for _ in 0..4 {
        let error = slow.join_next().await.unwrap().unwrap().unwrap_err();
        assert!(matches!(error, HttpError::TooManySlow { .. }), "{error:?}");
        assert_eq!(error.reason(), "SourceTimedOut");
    }
    // Two go on, and take no place from others.
    let long = ask("quick".to_owned(), "/quick").await.unwrap();
    assert_eq!((long.len(), slow.len()), (LONG, 2));
    assert!(slow.try_join_next().is_none());
}

#[tokio::test]
async fn whoever_has_much_to_read_reads_one_long_answer_at_a_time() {
    let stub = Stub::new(|_| long("", true)).await;
    let network = network();
    let ask = |asker: &str| {
        let network = network.asked_by(asker);
        let client = Client::new(&network, stub.url("/"), None, Some(authority())).unwrap();
        let request = Request::get(stub.url("/"));
        async move { client.send(request).await.unwrap().bytes(LONG).await.unwrap() }
    };
    let first = ask("greedy").await;
    let mut second = task::spawn(ask("greedy"));
    let other = tokio::select! {
        _ = &mut second => panic!("the first is still there"),
        other = ask("other") => other,
    };
    assert!(!second.is_finished());
    drop(first);
    assert_eq!((second.await.unwrap().len(), other.len()), (LONG, LONG));
}
