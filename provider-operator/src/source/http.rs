//! A file on a web server, asked for through the guarded client of `release`. Whether the file was changed in between is told by its entity tag or its
//! time; whether it is the right one, by its digest, which others compare.

mod answers;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderName, HeaderValue, StatusCode, header};
use provider_plugin::{ErrorClass, ImageSource, Opened, Probe, SourceError};
use release::http::{Client, Credentials, HttpError, Network, Place, Redirects, Request, Response, Url};

pub(super) use self::answers::{bytes, error_of, part_of, probe_of};
use self::answers::{is_other, refusal_of};
use super::layer::{LayerAddress, LayerFile, is_in_registry};
use super::{Files, SumsFile};

/// Opens files on web servers, and those that lie in registries.
#[derive(Clone, Debug)]
pub(crate) struct WebFiles {
    network: Network,
    hosts: Arc<[String]>,
}

/// What a user says of an image on a web server or in a registry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// Where the image is.
    pub(crate) url: String,
    /// Whether a digest says which bytes are meant: then it does not matter who gives them.
    pub(crate) is_pinned: bool,
    /// Where a file of sums is, and under which name the image stands in it unless that is the last part of its URL, or its title.
    pub(crate) sums: Option<(String, Option<String>)>,
    /// What is shown to the server of the image, and to no other.
    pub(crate) credentials: Option<Credentials>,
    /// Certificates of authorities that are trusted besides the usual ones, in PEM.
    pub(crate) certificates: Option<Vec<u8>>,
    /// On whose behalf: namespaces leave room for each other at a server.
    pub(crate) namespace: String,
}

impl WebFiles {
    /// Through this network. `hosts`: where servers may send on to, also where no digest is known; one that begins with a dot stands for all below it.
    pub(crate) fn new(network: &Network, hosts: impl IntoIterator<Item = String>) -> Self {
        Self {
            network: network.counted_as("image"),
            hosts: hosts.into_iter().collect(),
        }
    }

    /// The files that are asked for. Asks nobody; a URL or a Secret that cannot be used is told of when somebody reads.
    pub(crate) fn files(&self, asked: &Asked) -> Files {
        let network = self.network.asked_by(&asked.namespace);
        let certificates = asked.certificates.as_deref();
        let client = |url: &Url, credentials: Option<&Credentials>| {
            Client::new(&network, url.clone(), credentials, certificates)
        };
        let image = Url::parse(&asked.url);
        let in_registry = is_in_registry(&asked.url).then(|| LayerAddress::parse(&asked.url));
        let sums = asked.sums.as_ref().map(|(url, name)| {
            let url = Url::parse(url);
            let is_at_home = matches!((&url, &image), (Ok(sums), Ok(image)) if sums.origin() == image.origin());
            let credentials = asked.credentials.as_ref().filter(|_| is_at_home);
            let title = in_registry.as_ref().and_then(|address| address.as_ref()?.title());
            SumsFile {
                name: name
                    .clone()
                    .unwrap_or_else(|| title.map_or_else(|| last_part(&asked.url), str::to_owned)),
                // Nobody else says what must be in it.
                file: Arc::new(WebFile::new(url, |url| client(url, credentials), false, self.named())),
            }
        });
        let tag_is_digest = in_registry.is_some();
        let image: Arc<dyn ImageSource> = if let Some(address) = in_registry {
            let (credentials, certificates) = (asked.credentials.clone(), asked.certificates.clone());
            Arc::new(LayerFile::new(&network, address, credentials, certificates))
        } else {
            let is_pinned = asked.is_pinned || sums.is_some();
            let redirects = if is_pinned { Redirects::Anywhere } else { self.named() };
            let credentials = asked.credentials.as_ref();
            Arc::new(WebFile::new(
                image,
                |url| client(url, credentials),
                is_pinned,
                redirects,
            ))
        };
        Files {
            image,
            sums,
            tag_is_digest,
        }
    }

    fn named(&self) -> Redirects {
        Redirects::To(Arc::clone(&self.hosts))
    }
}

/// One file on a web server.
struct WebFile {
    place: String,
    /// How it is asked for, or why it cannot be.
    way: Result<Way, (ErrorClass, String)>,
    is_pinned: bool,
}

struct Way {
    client: Client,
    url: Url,
    redirects: Redirects,
}

impl WebFile {
    fn new<E: fmt::Display>(
        url: Result<Url, E>,
        client: impl FnOnce(&Url) -> Result<Client, HttpError>,
        is_pinned: bool,
        redirects: Redirects,
    ) -> Self {
        let unusable = |error: E| {
            // What cannot be read may hold anything, also a password.
            let words = format!("the url of the image cannot be read: {error}; correct it");
            (ErrorClass::SourceGone, words)
        };
        let place = match &url {
            Ok(url) => Place::of(url).to_string(),
            Err(_) => "the url of the image".to_owned(),
        };
        let way = url.map_err(unusable).and_then(|url| {
            let client = client(&url).map_err(|error| {
                let error = error_of(&error);
                (error.class, error.message)
            })?;
            Ok(Way { client, url, redirects })
        });
        Self { place, way, is_pinned }
    }

    async fn send(
        &self,
        ask: impl FnOnce(Url) -> Request,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<Response, SourceError> {
        let way = self
            .way
            .as_ref()
            .map_err(|(class, words)| SourceError::new(*class, words))?;
        let request = ask(way.url.clone()).redirects(way.redirects.clone());
        let request = headers
            .into_iter()
            .fold(request, |request, (name, value)| request.header(name, value));
        way.client.send(request).await.map_err(|error| error_of(&error))
    }

    fn is_other(&self, probe: &Probe, found: &Probe) -> bool {
        // The mirrors of one file may each have their own tag; the digest tells better.
        let tag = probe.tag.clone().filter(|_| !self.is_pinned);
        is_other(&Probe { tag, ..probe.clone() }, found)
    }
}

#[async_trait]
impl ImageSource for WebFile {
    fn place(&self) -> &str {
        &self.place
    }

    async fn probe(&self) -> Result<Probe, SourceError> {
        let head = self.send(Request::head, Vec::new()).await?;
        let status = head.status();
        if status.is_success() {
            let probe = probe_of(head.headers());
            if probe.ranges && probe.size.is_some() {
                return Ok(probe);
            }
        } else if matches!(
            status,
            StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::TOO_MANY_REQUESTS
        ) || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED)
        {
            return Err(refusal_of(&self.place, &head));
        }
        // There are servers that give a file and not its headers, and signed URLs that are for reading alone.
        let first = HeaderValue::from_static("bytes=0-0");
        let answer = self.send(Request::get, vec![(header::RANGE, first)]).await?;
        let found = probe_of(answer.headers());
        match answer.status() {
            StatusCode::PARTIAL_CONTENT => Ok(Probe {
                size: part_of(answer.headers()).and_then(|part| part.total),
                ranges: true,
                ..found
            }),
            StatusCode::OK => Ok(Probe { ranges: false, ..found }),
            StatusCode::RANGE_NOT_SATISFIABLE => Ok(Probe { size: Some(0), ..found }),
            _ => Err(refusal_of(&self.place, &answer)),
        }
    }

    async fn open(&self, at: u64, probe: &Probe) -> Result<Opened, SourceError> {
        let mut headers = Vec::new();
        let is_part = at > 0 && probe.ranges;
        if is_part {
            let range = HeaderValue::try_from(format!("bytes={at}-"));
            headers.extend(range.map(|range| (header::RANGE, range)));
            let tag = probe.tag.as_ref().filter(|_| !self.is_pinned);
            let tag = tag.and_then(|tag| HeaderValue::try_from(tag).ok());
            headers.extend(tag.map(|tag| (header::IF_RANGE, tag)));
        }
        let answer = self.send(Request::get, headers).await?;
        let found = probe_of(answer.headers());
        match answer.status() {
            StatusCode::PARTIAL_CONTENT if is_part => {
                let part = part_of(answer.headers());
                let Some(part) = part.filter(|part| part.from == at) else {
                    let words = format!(
                        "{} gave another part of the file than the one that was asked for",
                        self.place
                    );
                    return Err(SourceError::new(ErrorClass::SourceBroken, words));
                };
                let found = Probe {
                    size: part.total,
                    ..found
                };
                if self.is_other(probe, &found) {
                    return Ok(Opened::Changed);
                }
                Ok(Opened::At(bytes(answer.into_body())))
            }
            StatusCode::OK if self.is_other(probe, &found) => Ok(Opened::Changed),
            StatusCode::OK if at == 0 => Ok(Opened::At(bytes(answer.into_body()))),
            StatusCode::OK => Ok(Opened::FromStart(bytes(answer.into_body()))),
            StatusCode::RANGE_NOT_SATISFIABLE | StatusCode::PRECONDITION_FAILED if is_part => Ok(Opened::Changed),
            _ => Err(refusal_of(&self.place, &answer)),
        }
    }
}

impl fmt::Debug for WebFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "WebFile({})", self.place)
    }
}

/// The name of the file as its publisher has it.
fn last_part(url: &str) -> String {
    let url = Url::parse(url).ok();
    let last = url.as_ref().and_then(|url| url.path_segments()?.next_back());
    last.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
