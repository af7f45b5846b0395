//! Images that users ask for themselves, from a web server: with real sockets, and so with the real clock.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crds::labels::IMAGE_OWNER;
use operator_kit::in_memory::Server;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

use super::{IMAGE, begin, disk, files, operated};

/// Longer than any of this takes on a machine that has much else to do.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// Between two looks.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

const FLAGS: [&str; 2] = ["--allow-plain-http", "--allow-source-network=127.0.0.0/8"];

/// A web server with one file, which may be taken away.
pub(super) struct Web {
    pub(super) url: String,
    file: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Web {
    pub(super) fn with(file: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let url = format!("http://{}/disk.raw", listener.local_addr().expect("an address"));
        let file = Arc::new(Mutex::new(Some(file)));
        let served = Arc::clone(&file);
        // Ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                thread::spawn(move || serve(&stream, &served));
            }
        });
        Self { url, file }
    }

    fn give(&self, file: Option<Vec<u8>>) {
        *self.file.lock().expect("a file") = file;
    }
}

/// Answers one request and closes.
fn serve(mut stream: &TcpStream, file: &Mutex<Option<Vec<u8>>>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    // All of it is read, or closing would cut the answer off.
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let file = file.lock().expect("a file").clone();
    let (status, body) = match file {
        Some(file) => ("200 OK", file),
        None => ("404 Not Found", b"no such file".to_vec()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"one\"\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if first.starts_with("HEAD") { &[][..] } else { &body };
    // Whoever asked may have gone.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

fn image(url: &str, more: &[(&str, Value)]) -> Value {
    let mut image = json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": IMAGE,
        "metadata": { "name": "ubuntu", "namespace": "fleet" },
        "spec": { "store": "default", "image": { "url": url, "name": "ubuntu.raw", "format": "raw" } },
    });
    for (field, value) in more {
        image["spec"]["image"][*field] = value.clone();
    }
    image
}

pub(super) fn real() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

async fn until(server: &Server, is_so: impl Fn(&Value) -> bool) -> Value {
    until_of(server, IMAGE, is_so).await
}

/// The object of this kind, when its status is so.
pub(super) async fn until_of(server: &Server, kind: &'static str, is_so: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let image = server.find(kind, "ubuntu");
        if is_so(&image) {
            return image;
        }
        assert!(Instant::now() < end, "not so: {image:#}");
        sleep(PAUSE).await;
    }
}

fn is_ready(image: &Value) -> bool {
    image["status"]["ready"] == true
}

#[test]
fn an_image_comes_from_the_web_becomes_a_file_and_goes_with_its_object() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    let web = Web::with(disk());
    operated(&real(), &server, store.path(), &FLAGS, async || {
        server.apply(&image(&web.url, &[]));
        let ready = until(&server, is_ready).await;
        assert_eq!(ready["status"]["phase"], "Ready", "{ready:#}");
        assert_eq!(files(store.path())[0], ("ubuntu.raw".to_owned(), disk().len() as u64));
        let annotation = &ready["metadata"]["annotations"][IMAGE_OWNER];
        assert_eq!(annotation, "here");
        server.delete(IMAGE, "ubuntu");
        until(&server, Value::is_null).await;
        assert!(files(store.path()).is_empty());
    });
}

#[test]
fn an_owner_that_somebody_edits_is_put_back_and_the_image_goes_with_its_object() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    let web = Web::with(disk());
    operated(&real(), &server, store.path(), &FLAGS, async || {
        server.apply(&image(&web.url, &[]));
        let ready = until(&server, is_ready).await;
        let owner = ready["metadata"]["annotations"][IMAGE_OWNER].clone();
        assert_eq!((&ready["status"]["owner"], &owner), (&json!("here"), &json!("here")));
        let edited = json!({ "metadata": { "annotations": { IMAGE_OWNER: "somebody-else" } } });
        server.merge(IMAGE, "ubuntu", &edited);
        until(&server, |image| image["metadata"]["annotations"][IMAGE_OWNER] == owner).await;
        // Whoever deletes it at once, too, has not made it nobody's.
        server.merge(IMAGE, "ubuntu", &edited);
        server.delete(IMAGE, "ubuntu");
        until(&server, Value::is_null).await;
        assert!(files(store.path()).is_empty());
    });
}

#[test]
fn bytes_that_are_not_the_promised_ones_never_become_an_image_and_the_object_says_so() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    let web = Web::with(disk());
    let promised = ("digest", json!(format!("sha256:{}", "ab".repeat(32))));
    operated(&real(), &server, store.path(), &FLAGS, async || {
        server.apply(&image(&web.url, &[promised]));
        let stalled = until(&server, |image| image["status"]["halted"].is_object()).await;
        assert_eq!(stalled["status"]["halted"]["reason"], "SourceMismatch", "{stalled:#}");
        assert_eq!(stalled["status"]["phase"], "Failed", "{stalled:#}");
        assert!(files(store.path()).is_empty());
        // Whoever corrects the spec need do nothing else.
        server.apply(&image(&web.url, &[]));
        until(&server, is_ready).await;
    });
}

#[test]
fn a_file_that_is_not_there_yet_comes_when_somebody_says_that_it_is_and_an_edit_is_followed() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    let (web, other) = (Web::with(disk()), Web::with(vec![7; 300 * 1024]));
    web.give(None);
    operated(&real(), &server, store.path(), &FLAGS, async || {
        server.apply(&image(&web.url, &[]));
        let seen = until(&server, |image| image["status"]["retry"].is_object()).await;
        assert_eq!(seen["status"]["retry"]["class"], "SourceGone", "{seen:#}");
        assert!(files(store.path()).is_empty());
        web.give(Some(disk()));
        let asks = json!({ "metadata": { "annotations": { crds::labels::REQUESTED_AT: "now" } } });
        server.merge(IMAGE, "ubuntu", &asks);
        let ready = until(&server, is_ready).await;
        assert_eq!(ready["status"]["lastHandledReconcileAt"], "now", "{ready:#}");
        assert_eq!(files(store.path())[0], ("ubuntu.raw".to_owned(), disk().len() as u64));
        server.apply(&image(&other.url, &[]));
        let size = |image: &Value| image["status"]["image"]["sizeBytes"].as_u64();
        until(&server, |image| is_ready(image) && size(image) == Some(300 * 1024)).await;
        assert_eq!(files(store.path())[0], ("ubuntu.raw".to_owned(), 300 * 1024));
    });
}

#[test]
fn nothing_is_done_about_a_paused_object_until_it_is_not() {
    let (server, store) = (begin(None), TempDir::new().expect("a folder"));
    let web = Web::with(disk());
    let pause = |value: Value| json!({ "metadata": { "annotations": { crds::labels::PAUSED: value } } });
    operated(&real(), &server, store.path(), &FLAGS, async || {
        let mut paused = image(&web.url, &[]);
        paused["metadata"]["annotations"] = pause(json!("true"))["metadata"]["annotations"].clone();
        server.apply(&paused);
        let says_so = |image: &Value| image["status"]["conditions"].to_string().contains("Paused");
        let seen = until(&server, says_so).await;
        assert!(seen["metadata"]["finalizers"].is_null(), "{seen:#}");
        server.merge(IMAGE, "ubuntu", &pause(Value::Null));
        until(&server, is_ready).await;
    });
}
