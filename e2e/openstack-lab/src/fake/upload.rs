//! Bytes on their way into an image: who may send them, what becomes of the image meanwhile and at the end. It decides as Glance does, also that
//! a refused upload leaves its bytes behind, and that changes made meanwhile are undone.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sha2::{Digest, Sha256, Sha512};

use super::{
    Shared,
    answers::{Answer, Refusal, empty},
    images::visible,
    model::{Amendable, Image, Status, Sums},
    quota,
};

/// What of the bytes is looked at to know their format.
const HEAD: usize = 64;
/// Bytes of the checksum, as many as an md5 has.
const CHECKSUM: usize = 16;

/// Where bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    File,
    Stage,
}

/// Bytes that came.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) sums: Sums,
    /// All of them, unless they are more than is kept.
    pub(super) data: Option<Bytes>,
    pub(super) format: &'static str,
}

/// Takes in what comes for an image.
pub(super) async fn upload(
    shared: &Arc<Shared>,
    project: &'static str,
    id: &str,
    to: Place,
    request: Request<Incoming>,
    number: usize,
) -> Result<Answer, Refusal> {
    let begun = begin(shared, project, id, to, length(request.headers()))?;
    let received = receive(shared, request.into_body(), number).await?;
    begun.end(received)?;
    Ok(empty(StatusCode::NO_CONTENT))
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn begin(
    shared: &Arc<Shared>,
    project: &'static str,
    id: &str,
    to: Place,
    length: Option<u64>,
) -> Result<Begun, Refusal> {
    let mut state = shared.state();
    let next = match to {
        Place::File => Status::Saving,
        Place::Stage => Status::Uploading,
    };
    let image = visible(&state, id, project)?;
    if image.status != Status::Queued || image.import.is_some() {
        let words = format!(
            "Image status transition from {} to {} is not allowed",
            image.status.word(),
            next.word()
        );
        return Err(Refusal::conflict(words));
    }
    if image.is_spoilt {
        return Err(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The server has either erred or is incapable of performing the requested operation.",
        ));
    }
    quota::upload(shared, &state, project, to, length)?;
    let Some(image) = state.images.get_mut(id) else {
        return Err(Refusal::not_found(id));
    };
    image.status = next;
    image.touch();
    Ok(Begun {
        shared: Arc::clone(shared),
        id: id.to_owned(),
        life: shared.life(),
        next,
        before: image.fields.clone(),
        is_ended: false,
    })
}

/// An upload that goes on. Dropped before its end, the image is as it was: that is what a cut connection does.
struct Begun {
    shared: Arc<Shared>,
    id: String,
    life: u64,
    next: Status,
    before: Amendable,
    is_ended: bool,
}

impl Begun {
    fn end(mut self, received: Received) -> Result<(), Refusal> {
        self.is_ended = true;
        let mut state = self.shared.state();
        let Some(image) = state.images.get_mut(&self.id) else {
            let words = format!(
                "Image {} could not be found after upload. The image may have been deleted during the upload.",
                self.id
            );
            return Err(Refusal::new(StatusCode::GONE, words));
        };
        image.touch();
        if self.next == Status::Uploading {
            image.staged = Some(received);
            return Ok(());
        }
        // What was loaded when the upload began is stored when it ends.
        image.fields = self.before.clone();
        image.store(received)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if self.is_ended || self.shared.life() != self.life {
            return;
        }
        let mut state = self.shared.state();
        if let Some(image) = state.images.get_mut(&self.id).filter(|image| image.status == self.next) {
            image.status = Status::Queued;
            image.fields = self.before.clone();
            image.touch();
        }
    }
}

impl Image {
    /// Puts the bytes of a whole upload or import in their place.
    pub(super) fn store(&mut self, received: Received) -> Result<(), Refusal> {
        let promised = self.fields.disk_format.as_deref().unwrap_or("raw");
        let is_looked_at = ["raw", "qcow2", "vmdk", "vhd", "vhdx"].contains(&promised);
        self.sums = Some(received.sums);
        if is_looked_at && promised != received.format {
            let words = format!(
                "Image disk_format {promised} does not match stream data {}",
                received.format
            );
            self.status = Status::Queued;
            self.is_spoilt = true;
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, words));
        }
        self.status = Status::Active;
        self.data = received.data;
        Ok(())
    }
}

async fn receive(shared: &Shared, mut body: Incoming, number: usize) -> Result<Received, Refusal> {
    let mut receiving = Receiving::new(shared.options.keep);
    while let Some(frame) = body.frame().await {
        // A body that is shorter than was promised ends so, too.
        let frame = frame.map_err(|_| {
            Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The server has either erred or is incapable of performing the requested operation.",
            )
        })?;
        if let Ok(bytes) = frame.into_data() {
            shared.faults.received(number, bytes.len());
            receiving.take(&bytes);
        }
    }
    Ok(receiving.done())
}

/// What is remembered of bytes while they come.
pub(super) struct Receiving {
    keep: usize,
    data: Option<Vec<u8>>,
    head: Vec<u8>,
    size: u64,
    sha512: Sha512,
    checksum: Sha256,
}

impl Receiving {
    pub(super) fn new(keep: usize) -> Self {
        Self {
            keep,
            data: Some(Vec::new()),
            head: Vec::new(),
            size: 0,
            sha512: Sha512::new(),
            checksum: Sha256::new(),
        }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.sha512.update(bytes);
        let missing = HEAD.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend(&bytes[..missing]);
        if missing > 0 {
            // Of the beginning alone: nobody looks at it.
            self.checksum.update(&bytes[..missing]);
        }
        match &mut self.data {
            Some(data) if data.len() + bytes.len() <= self.keep => data.extend(bytes),
            data => *data = None,
        }
    }

    pub(super) fn done(self) -> Received {
        let format = format_of(&self.head);
        let virtual_size = match format {
            "qcow2" => virtual_size(&self.head),
            _ => Some(self.size),
        };
        Received {
            sums: Sums {
                size: self.size,
                virtual_size,
                checksum: hex::encode(&self.checksum.finalize()[..CHECKSUM]),
                sha512: hex::encode(self.sha512.finalize()),
            },
            data: self.data.map(Bytes::from),
            format,
        }
    }
}

/// What bytes look like by their beginning; that is all that is looked at.
fn format_of(head: &[u8]) -> &'static str {
    match head {
        [b'Q', b'F', b'I', 0xfb, ..] => "qcow2",
        [b'K', b'D', b'M', b'V', ..] => "vmdk",
        _ if head.starts_with(b"conectix") => "vhd",
        _ if head.starts_with(b"vhdxfile") => "vhdx",
        _ => "raw",
    }
}

fn virtual_size(head: &[u8]) -> Option<u64> {
    let field = head.get(24..32)?.try_into().ok()?;
    Some(u64::from_be_bytes(field))
}
