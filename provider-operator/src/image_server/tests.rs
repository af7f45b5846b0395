//! Images of a directory, fetched over real connections.

use std::fs;
use std::path::Path;

use async_trait::async_trait;
use axum::body::to_bytes;
use bytes::Bytes;
use futures::stream;
use provider_plugin::{
    Algorithm, Content, ContentKey, ContentPlan, Created, Hasher, ImageId, ImageSource, ImageStore, Opened, Probe,
    Report, SourceError,
};
use release::http::{Client, Network, NetworkOptions, Request as Ask, Response as Told, Url};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::stand_ins::{Notes, image, object};

/// More than sockets hold.
const BYTES: usize = 32 << 20;
const SOON: Duration = Duration::from_mins(1);

/// A file that is here, or breaks off in its midst for ever.
#[derive(Debug)]
struct Here(Bytes, Option<usize>);

#[async_trait]
impl ImageSource for Here {
    fn place(&self) -> &'static str {
        "https://images.example/node"
    }

    async fn probe(&self) -> Result<Probe, SourceError> {
        Ok(Probe {
            size: Some(self.0.len() as u64),
            ..Probe::default()
        })
    }

    async fn open(&self, _: u64, _: &Probe) -> Result<Opened, SourceError> {
        let end = self.1.unwrap_or(self.0.len());
        let bytes = stream::iter([Ok(self.0.slice(..end))]);
        Ok(Opened::FromStart(match self.1 {
            Some(_) => bytes.chain(stream::pending()).boxed(),
            None => bytes.boxed(),
        }))
    }
}

/// A server of one directory.
struct Lab {
    folder: TempDir,
    address: SocketAddr,
    task: JoinHandle<()>,
    cancel: CancellationToken,
    client: Client,
}

impl Lab {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let stores = FileStores::parse([format!("bare metal={}", folder.path().display()).as_str()]).unwrap();
        let cancel = CancellationToken::new();
        let any = "127.0.0.1:0".parse().unwrap();
        let (address, task) = serve(any, &stores, SOON, cancel.clone()).await.unwrap();
        let network = Network::new(NetworkOptions {
            plain_http: true,
            networks: vec!["127.0.0.0/8".parse().unwrap()],
            ..NetworkOptions::default()
        });
        let home = Url::parse(&format!("http://{address}/")).unwrap();
        Self {
            client: Client::new(&network.unwrap(), home, None, None).unwrap(),
            folder,
            address,
            task,
            cancel,
        }
    }

    fn store(&self) -> FileStore {
        FileStore::new(self.folder.path().to_owned())
    }

    fn url(&self, path: &str) -> Url {
        self.client.home().join(path).unwrap()
    }

    async fn ask(&self, path: &str, headers: &[(HeaderName, &str)]) -> Told {
        let ask = headers.iter().fold(Ask::get(self.url(path)), |ask, (name, value)| {
            ask.header(name.clone(), HeaderValue::from_str(value).unwrap())
        });
        self.client.send(ask).await.unwrap()
    }

    async fn text(&self, path: &str, headers: &[(HeaderName, &str)]) -> String {
        let told = self.ask(path, headers).await.bytes(1 << 20).await.unwrap();
        String::from_utf8(told.to_vec()).unwrap()
    }

    /// The status of a path that clients would put right before they send it.
    async fn status_of(&self, line: &str) -> u16 {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{line} HTTP/1.1\r\nhost: images\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut told = Vec::new();
        timeout(SOON, stream.read_to_end(&mut told)).await.unwrap().unwrap();
        let told = String::from_utf8_lossy(&told).into_owned();
        told.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

fn disk(seed: usize) -> Bytes {
    (0..BYTES)
        .map(|at| (at.wrapping_mul(2_654_435_761 + seed) >> 13).to_le_bytes()[0])
        .collect()
}

fn sha256(bytes: &[u8]) -> String {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(bytes);
    hasher.finish().hex().to_owned()
}

/// Brings an image into the directory as the operator does; `key` tells contents of one name apart, and `attempt` follows from it.
async fn bring(store: &FileStore, name: &str, source: Here, (key, attempt): (char, u32)) {
    let mut image = image(&object("fleet", name));
    image.subject.key = ContentKey::parse(&key.to_string().repeat(64)).unwrap();
    let Created::New(id) = store.create(&image, attempt).await.unwrap() else {
        panic!("there is such a record already")
    };
    let is_cut = source.1.is_some();
    let probe = source.probe().await.unwrap();
    let notes: Arc<dyn Report> = Arc::new(Notes::default());
    let content = Content::new(Arc::new(source), probe, ContentPlan::default(), Arc::clone(&notes));
    let sending = store.transfer(&id, &image, content, notes.as_ref());
    if is_cut {
        tokio::select! {
            sent = sending => panic!("it hangs, and gave {sent:?}"),
            () = until_begun(store, &id) => {}
        }
        return;
    }
    sending.await.unwrap();
    store.publish(&id, &image, "sha256:00").await.unwrap();
}

/// Returns when some bytes of a record are on the disk.
async fn until_begun(store: &FileStore, id: &ImageId) {
    let owner = image(&object("fleet", "any")).subject.owner;
    loop {
        let records = store.owned(&owner).await.unwrap();
        if records.iter().any(|record| record.id == *id && record.size.is_some()) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn tag_of(bytes: &[u8]) -> String {
    format!("\"sha256:{}\"", sha256(bytes))
}

#[tokio::test]
async fn an_image_is_given_whole_with_its_digest_and_is_not_given_to_who_has_it() {
    const PATH: &str = "/bare%20metal/node%20v1";
    let (lab, disk) = (Lab::new().await, disk(0));
    bring(&lab.store(), "node v1", Here(disk.clone(), None), ('a', 1)).await;
    let told = lab.ask(PATH, &[]).await;
    let header = |name: &str| told.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(
        ["content-length", "accept-ranges", "etag", "content-type"].map(header),
        [
            BYTES.to_string(),
            "bytes".to_owned(),
            tag_of(&disk),
            "application/octet-stream".to_owned()
        ]
    );
    let changed = told.headers()["last-modified"].to_str().unwrap().to_owned();
    assert!(told.bytes(BYTES).await.unwrap() == disk);
    let head = lab.client.send(Ask::head(lab.url(PATH))).await.unwrap();
    assert_eq!(head.headers()["content-length"].to_str().unwrap(), BYTES.to_string());
    assert_eq!(head.headers()["etag"].to_str().unwrap(), tag_of(&disk));
    let sums = lab.text(&format!("{PATH}.sha256"), &[]).await;
    assert_eq!(sums, format!("{}  node v1\n", sha256(&disk)));
    for known in [
        (header::IF_NONE_MATCH, tag_of(&disk)),
        (header::IF_MODIFIED_SINCE, changed),
    ] {
        let told = lab.ask(PATH, &[(known.0, &known.1)]).await;
        assert_eq!(told.status(), StatusCode::NOT_MODIFIED);
    }
}

#[tokio::test]
async fn a_fetch_that_was_cut_is_gone_on_with_and_never_with_another_image() {
    const PATH: &str = "/bare%20metal/node";
    let (lab, old, new) = (Lab::new().await, disk(0), disk(2));
    bring(&lab.store(), "node", Here(old.clone(), None), ('a', 1)).await;
    let told = lab.ask(PATH, &[]).await;
    let tag = told.etag().unwrap().to_owned();
    let mut have = vec![0; BYTES / 3];
    {
        let mut reader = Box::pin(told.reader());
        reader.read_exact(&mut have).await.unwrap();
    }
    let range = format!("bytes={}-", have.len());
    let resumed = [(header::RANGE, range.as_str()), (header::IF_RANGE, tag.as_str())];
    let rest = lab.ask(PATH, &resumed).await;
    assert_eq!(rest.status(), StatusCode::PARTIAL_CONTENT);
    let said = rest.headers()["content-range"].to_str().unwrap().to_owned();
    assert_eq!(said, format!("bytes {}-{}/{BYTES}", have.len(), BYTES - 1));
    have.extend(rest.bytes(BYTES).await.unwrap());
    assert!(have == old, "both parts together are the image");
    bring(&lab.store(), "node", Here(new.clone(), None), ('b', 2)).await;
    let whole = lab.ask(PATH, &resumed).await;
    assert_eq!(
        (whole.status(), whole.etag()),
        (StatusCode::OK, Some(tag_of(&new).as_str()))
    );
    assert!(whole.bytes(BYTES).await.unwrap() == new);
    let beyond = lab.ask(PATH, &[(header::RANGE, &format!("bytes={BYTES}-"))]).await;
    assert_eq!(beyond.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(
        beyond.headers()["content-range"].to_str().unwrap(),
        format!("bytes */{BYTES}")
    );
}

#[tokio::test]
async fn what_is_on_its_way_and_what_else_lies_on_the_disk_is_not_there_for_anybody() {
    let lab = Lab::new().await;
    bring(&lab.store(), "node", Here(disk(0), Some(BYTES / 2)), ('a', 1)).await;
    let parts = lab.folder.path().join(".parts");
    let files: Vec<String> = fs::read_dir(&parts)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        files
            .iter()
            .any(|file| Path::new(file).extension().is_some_and(|end| end == "part")),
        "{files:?}"
    );
    fs::write(lab.folder.path().join("notes"), "somebody's").unwrap();
    let mut paths: Vec<String> = files.iter().map(|file| format!(".parts/{file}")).collect();
    paths.extend(files.iter().map(|file| format!(".parts%2F{file}")));
    paths.extend(
        [
            "node",
            "node.sha256",
            "notes",
            "notes.sha256",
            "",
            ".",
            "..",
            "../../../etc/passwd",
            "..%2F..%2Fetc%2Fpasswd",
            "%2Fetc%2Fpasswd",
            "node%00",
        ]
        .map(str::to_owned),
    );
    for path in paths {
        assert_eq!(lab.status_of(&format!("GET /bare%20metal/{path}")).await, 404, "{path}");
    }
    for path in ["/other/node", "/bare%20metal", "//etc/passwd", "/../etc/passwd"] {
        assert_eq!(lab.status_of(&format!("GET {path}")).await, 404, "{path}");
    }
    for method in ["PUT", "POST", "DELETE"] {
        assert_eq!(lab.status_of(&format!("{method} /bare%20metal/node")).await, 405);
    }
    assert_eq!(lab.text("/", &[]).await, "{\n  \"images\": []\n}\n");
}

#[tokio::test]
async fn the_list_is_read_by_people_and_by_programs() {
    let lab = Lab::new().await;
    let disk = disk(0);
    bring(&lab.store(), "node <b>v1", Here(disk.clone(), None), ('a', 1)).await;
    let list: serde_json::Value = serde_json::from_str(&lab.text("/", &[]).await).unwrap();
    let image = &list["images"][0];
    assert_eq!(
        (&image["store"], &image["name"]),
        (&"bare metal".into(), &"node <b>v1".into())
    );
    assert_eq!(
        (&image["bytes"], &image["sha256"]),
        (&BYTES.into(), &sha256(&disk).into())
    );
    let there = |path: &serde_json::Value| lab.url(path.as_str().unwrap());
    for path in ["path", "checksumPath"] {
        let told = lab.client.send(Ask::head(there(&image[path]))).await.unwrap();
        assert_eq!(told.status(), StatusCode::OK, "{path}");
    }
    let page = lab.text("/", &[(header::ACCEPT, "text/html,*/*;q=0.8")]).await;
    assert!(
        page.contains("node &lt;b&gt;v1") && !page.contains("<b>") && page.contains(&sha256(&disk)),
        "{page}"
    );
}

#[tokio::test]
async fn who_finds_no_place_is_told_to_come_again_and_who_finds_no_disk_too() {
    let lab = Lab::new().await;
    bring(&lab.store(), "node", Here(disk(0), None), ('a', 1)).await;
    let file = lab.folder.path().join("node");
    let ask = async |store: FileStore, places, path: &str| {
        let gallery = Gallery {
            stores: BTreeMap::from([("default".to_owned(), store)]),
            places: Arc::new(Semaphore::new(places)),
        };
        let request = Request::get(path).body(Body::empty()).unwrap();
        answer(State(Arc::new(gallery)), request).await
    };
    for answer in [
        ask(lab.store(), 0, "/default/node").await,
        ask(FileStore::new(file), 1, "/").await,
    ] {
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()[header::RETRY_AFTER], AGAIN);
        assert!(
            to_bytes(answer.into_body(), 1024)
                .await
                .unwrap()
                .ends_with(b"try again\n")
        );
    }
}

#[tokio::test]
async fn who_is_fetching_an_image_when_the_server_is_to_end_has_it_to_its_end() {
    let (lab, disk) = (Lab::new().await, disk(0));
    bring(&lab.store(), "node", Here(disk.clone(), None), ('a', 1)).await;
    let told = lab.ask("/bare%20metal/node", &[]).await;
    lab.cancel.cancel();
    let refused = async {
        while TcpStream::connect(lab.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, refused).await.expect("nobody new is let in");
    assert!(!lab.task.is_finished());
    assert!(told.bytes(BYTES).await.unwrap() == disk);
    timeout(SOON, lab.task)
        .await
        .expect("it ends with the last fetch")
        .unwrap();
}
