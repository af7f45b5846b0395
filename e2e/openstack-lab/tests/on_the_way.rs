//! What is on the way of an image fails where it was told to, and nowhere else.

use std::time::Duration;

use http::{Method, StatusCode};
use openstack_lab::{
    client::{Client, Reply, whole},
    facts::Visitor,
    fake::{Fake, FakeOptions},
    proxy::{Point, Proxy, Trouble},
    source::{Article, Source},
};
use serde_json::json;
use url::Url;

async fn behind_a_proxy() -> anyhow::Result<(Fake, Proxy)> {
    let fake = Fake::start(FakeOptions::default()).await?;
    let proxy = Proxy::start(fake.site()).await?;
    Ok((fake, proxy))
}

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until an image has this status; a test that waits in vain ends.
#[cfg(test)]
async fn becomes(fake: &Fake, id: &str, status: &str) {
    let waiting = async {
        while fake.image(id).unwrap()["status"] != status {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| panic!("{id} is not {status}: {:?}", fake.image(id)));
}

#[tokio::test]
async fn a_login_leads_to_the_images_by_way_of_the_proxy() {
    let (fake, proxy) = behind_a_proxy().await.unwrap();
    let url = Url::parse(&format!("{}/auth/tokens", proxy.site().keystone)).unwrap();
    let body = proxy.site().auth("openstack").unwrap().to_string();
    let client = Client::new(None).unwrap();
    let json = [("Content-Type", "application/json")];
    let reply = client.send(Method::POST, &url, &json, whole(body)).await.unwrap();
    assert_eq!(reply.status, StatusCode::CREATED);
    assert!(reply.text().contains(&proxy.site().glance), "{}", reply.text());
    assert!(!reply.text().contains(&fake.site().glance), "{}", reply.text());
}

#[tokio::test]
async fn a_body_is_cut_at_its_byte_and_the_next_one_passes() {
    let (fake, proxy) = behind_a_proxy().await.unwrap();
    let visitor = Visitor::new(proxy.site()).await.unwrap();
    let demo = visitor.tenant("openstack").await.unwrap();
    let id = demo.new_image(json!({})).await.unwrap();
    proxy.meet(Method::PUT, "/file", 1, Trouble::CutRequest(1_000));
    demo.put(&id, "file", whole(visitor.disk.clone())).await.unwrap_err();
    let sent = proxy.passed().last().unwrap().sent;
    assert_eq!(sent, 1_000);
    let received = fake.requests().into_iter().filter(|asked| asked.method == Method::PUT);
    assert!(received.map(|asked| asked.received).max() <= Some(1_000));
    let reply = demo.put(&id, "file", whole(visitor.disk.clone())).await.unwrap();
    assert_eq!(reply.status, StatusCode::NO_CONTENT);
    assert_eq!(proxy.met(), 1);
}

#[tokio::test]
async fn the_work_is_done_whose_answer_is_lost_or_held_and_not_that_which_is_severed() {
    let (fake, proxy) = behind_a_proxy().await.unwrap();
    let visitor = Visitor::new(proxy.site()).await.unwrap();
    let demo = visitor.tenant("openstack").await.unwrap();
    proxy.meet(Method::POST, "/v2/images", 1, Trouble::Sever);
    demo.new_image(json!({})).await.unwrap_err();
    assert_eq!(fake.ids().len(), 0, "it got there");

    proxy.meet(Method::POST, "/v2/images", 1, Trouble::LoseAnswer);
    demo.new_image(json!({})).await.unwrap_err();
    assert_eq!(fake.ids().len(), 1);

    proxy.meet(Method::POST, "/v2/images", 1, Trouble::HoldAnswer);
    let made = async {
        while fake.ids().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        proxy.relent();
    };
    let asked = demo.new_image(json!({}));
    let (id, ()) = tokio::join!(asked, made);
    assert_eq!(fake.ids().last(), Some(&id.unwrap()));
}

#[tokio::test]
async fn a_stranded_body_keeps_its_record_until_everything_is_let_go() {
    let (fake, proxy) = behind_a_proxy().await.unwrap();
    let visitor = Visitor::new(proxy.site()).await.unwrap();
    let demo = visitor.tenant("openstack").await.unwrap();
    let id = demo.new_image(json!({})).await.unwrap();
    proxy.meet(Method::PUT, "/file", 1, Trouble::Strand(1_000));
    demo.put(&id, "file", whole(visitor.disk.clone())).await.unwrap_err();
    // A connection that had been closed would have been noticed by an answer later.
    assert_eq!(demo.image(&id).await.unwrap()["status"], "saving");
    proxy.relent();
    becomes(&fake, &id, "queued").await;
}

#[tokio::test]
async fn a_chosen_change_stops_before_within_or_after_what_it_does() {
    let (fake, proxy) = behind_a_proxy().await.unwrap();
    let visitor = Visitor::new(proxy.site()).await.unwrap();
    let demo = visitor.tenant("openstack").await.unwrap();
    let strike = proxy.strike_at(1, Point::Before);
    let stopped = async {
        let struck = strike.wait(PATIENCE).await.unwrap();
        assert_eq!((struck.method.as_str(), struck.target.as_str()), ("POST", "/v2/images"));
        drop(struck);
    };
    let (made, ()) = tokio::join!(demo.new_image(json!({})), stopped);
    made.unwrap_err();
    assert_eq!(fake.ids(), Vec::<String>::new());

    let strike = proxy.strike_at(2, Point::After);
    let stopped = async { drop(strike.wait(PATIENCE).await.unwrap()) };
    let (made, ()) = tokio::join!(demo.new_image(json!({})), stopped);
    made.unwrap_err();
    let [id] = <[String; 1]>::try_from(fake.ids()).unwrap();

    let strike = proxy.strike_at(3, Point::Within(1_000));
    let stopped = async {
        let struck = strike.wait(PATIENCE).await.unwrap();
        // What was passed on arrives while it stands still.
        becomes(&fake, &id, "saving").await;
        drop(struck);
    };
    let (sent, ()) = tokio::join!(demo.put(&id, "file", whole(visitor.disk.clone())), stopped);
    sent.unwrap_err();
    let changes = proxy.changes();
    assert_eq!(changes.last().map(|change| change.sent), Some(1_000));
    assert_eq!(changes[1].status, Some(StatusCode::CREATED));
    // Nothing is chosen any more.
    becomes(&fake, &id, "queued").await;
    let reply = demo.put(&id, "file", whole(visitor.disk.clone())).await.unwrap();
    assert_eq!(reply.status, StatusCode::NO_CONTENT);
}

async fn read(source: &Source, headers: &[(&str, &str)]) -> anyhow::Result<Reply> {
    let url = Url::parse(&source.url("/disk"))?;
    Client::new(None)?.send(Method::GET, &url, headers, whole("")).await
}

#[tokio::test]
async fn a_source_that_breaks_gives_the_rest_to_who_asks_for_it() {
    let source = Source::start().await.unwrap();
    let disk = openstack_lab::disk::raw(1, 300_000);
    source.put("/disk", Article::of(disk.clone()).breaking_every(200_000));
    read(&source, &[]).await.unwrap_err();
    let rest = read(&source, &[("Range", "bytes=200000-")]).await.unwrap();
    assert_eq!(rest.status, StatusCode::PARTIAL_CONTENT);
    assert_eq!(rest.body, disk[200_000..]);
    assert_eq!(source.visits()[1].from, Some(200_000));
}

#[tokio::test]
async fn a_file_is_another_one_to_those_who_are_to_get_another_one() {
    let source = Source::start().await.unwrap();
    source.put("/disk", Article::of("good").otherwise_to("Python", Article::of("bad")));
    let read_as = async |agent| read(&source, &[("User-Agent", agent)]).await.unwrap().body;
    assert_eq!(read_as("Python-urllib/3").await, &b"bad"[..]);
    assert_eq!(read_as("stackwright").await, &b"good"[..]);
}

#[tokio::test]
async fn a_file_that_was_changed_is_given_from_its_beginning() {
    let source = Source::start().await.unwrap();
    source.put("/disk", Article::of("one"));
    let first = read(&source, &[]).await.unwrap();
    let tag = first.header("etag").unwrap();
    let same = read(&source, &[("Range", "bytes=1-"), ("If-Range", tag)])
        .await
        .unwrap();
    assert_eq!((same.status, &same.body[..]), (StatusCode::PARTIAL_CONTENT, &b"ne"[..]));
    source.put("/disk", Article::of("two"));
    let other = read(&source, &[("Range", "bytes=1-"), ("If-Range", tag)])
        .await
        .unwrap();
    assert_eq!((other.status, &other.body[..]), (StatusCode::OK, &b"two"[..]));
    source.put("/disk", Article::of("two").without_ranges());
    let whole = read(&source, &[("Range", "bytes=1-")]).await.unwrap();
    assert_eq!(whole.status, StatusCode::OK);
}
