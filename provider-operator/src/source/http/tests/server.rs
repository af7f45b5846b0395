//! A web server with one file, which breaks connections as it is told.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// The file, and what is wrong with its server.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    /// Empty: none.
    pub(super) tag: &'static str,
    /// The tag from the first cut on.
    pub(super) tag_after_cut: &'static str,
    /// Time of the last change; empty: none.
    pub(super) time: &'static str,
    pub(super) ranges: bool,
    /// The status of everything.
    pub(super) status: u16,
    /// The status of questions for the headers alone.
    pub(super) head: u16,
    /// Where everybody is sent on to; empty: nowhere.
    pub(super) redirect: String,
    /// After so many bytes of a whole file the connection breaks, each once.
    pub(super) cuts: Vec<usize>,
}

impl File {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            tag: "\"one\"",
            tag_after_cut: "",
            time: "",
            ranges: true,
            status: 200,
            head: 200,
            redirect: String::new(),
            cuts: Vec::new(),
        }
    }
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: String,
    headers: HashMap<String, String>,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

pub(super) struct Server {
    origin: String,
    asked: Arc<Mutex<Vec<Request>>>,
    accepting: AbortHandle,
}

impl Server {
    pub(super) async fn start(file: File) -> Self {
        Self::start_at("127.0.0.1", file).await
    }

    pub(super) async fn start_at(address: &str, file: File) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (noted, file) = (Arc::clone(&asked), Arc::new(Mutex::new(file)));
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (noted, file) = (Arc::clone(&noted), Arc::clone(&file));
                tokio::spawn(async move { serve(stream, &noted, &file).await });
            }
        });
        Self {
            origin,
            asked,
            accepting: accepting.abort_handle(),
        }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    pub(super) fn asked(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }

    pub(super) fn methods(&self) -> Vec<String> {
        self.asked().into_iter().map(|request| request.method).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// One request and its answer; the connection closes after it. Whoever hangs up has heard enough.
async fn serve(mut stream: TcpStream, asked: &Mutex<Vec<Request>>, file: &Mutex<File>) {
    let Some(request) = read(&mut stream).await else { return };
    asked.lock().unwrap().push(request.clone());
    let (head, body) = answer(&request, &mut file.lock().unwrap());
    if stream.write_all(head.as_bytes()).await.is_ok() && stream.write_all(&body).await.is_ok() {
        let _ = stream.shutdown().await;
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let method = lines.next()?.split(' ').next()?.to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    Some(Request {
        method,
        headers: headers.collect(),
    })
}

fn answer(request: &Request, file: &mut File) -> (String, Vec<u8>) {
    let is_head = request.method == "HEAD";
    if !file.redirect.is_empty() {
        let head = format!(
            "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            file.redirect
        );
        return (head, Vec::new());
    }
    let refusal = if is_head && file.head != 200 {
        file.head
    } else {
        file.status
    };
    if refusal != 200 {
        let patience = if matches!(refusal, 429 | 503) {
            "retry-after: 7\r\n"
        } else {
            ""
        };
        let head = format!("HTTP/1.1 {refusal} No\r\n{patience}content-length: 0\r\nconnection: close\r\n\r\n");
        return (head, Vec::new());
    }
    let is_same = request.header("if-range").is_none_or(|tag| tag == file.tag);
    let from = request.header("range").filter(|_| file.ranges && is_same).map(|range| {
        let from = range.trim_start_matches("bytes=").split('-').next().unwrap();
        from.parse::<usize>().unwrap()
    });
    let length = file.bytes.len();
    let mut head = match from {
        Some(from) => format!(
            "HTTP/1.1 206 Part\r\ncontent-range: bytes {from}-{}/{length}\r\n",
            length - 1
        ),
        None => "HTTP/1.1 200 OK\r\n".to_owned(),
    };
    let mut body = file.bytes[from.unwrap_or_default()..].to_vec();
    head += "content-type: application/octet-stream\r\nconnection: close\r\n";
    write!(head, "content-length: {}\r\n", body.len()).unwrap();
    let lines = [
        ("etag", file.tag),
        ("last-modified", file.time),
        ("accept-ranges", if file.ranges { "bytes" } else { "none" }),
    ];
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    head += "\r\n";
    if is_head {
        body.clear();
    } else if from.is_none() && !file.cuts.is_empty() {
        body.truncate(file.cuts.remove(0));
        if !file.tag_after_cut.is_empty() {
            file.tag = file.tag_after_cut;
        }
    }
    (head, body)
}
