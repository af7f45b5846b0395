//! Discovery in the aggregated form: two documents, which an API server gives away whole, or not at all to who has them already.
//!
//! It knows them by tags, which are hashes (`k8s.io/apiserver/pkg/endpoints/discovery/aggregated`). Nobody else is asked by the tags that one API server gave:
//! that of a hostile cluster could name those of others, and they would have what it says of them.

use futures::join;
use http::{Request, Response, StatusCode, header};
use kube::client::{APIGroupDiscovery, APIGroupDiscoveryList, Body, Client};
use kube::core::Status;
use kube::core::discovery::v2::ACCEPT_AGGREGATED_DISCOVERY_V2;

/// The tags of both documents, of which an API server gave some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tags {
    core: Option<String>,
    groups: Option<String>,
}

/// What an API server says to who has documents with certain tags.
pub(super) enum Answer {
    /// These are its own.
    Same,
    /// Its own; without groups where it does not know the form.
    Other(Vec<APIGroupDiscovery>, Tags),
}

/// One document.
enum Document {
    Same,
    Other(APIGroupDiscoveryList, Option<String>),
}

/// Asks for both documents, but for those with these tags.
pub(super) async fn read(client: &Client, known: &Tags) -> kube::Result<Answer> {
    let (core, groups) = join!(
        document(client, "/api", known.core.as_deref()),
        document(client, "/apis", known.groups.as_deref())
    );
    // Where both are refused, always the same one is told of, whichever answer came first: people are shown the words.
    let (core, groups) = (core?, groups?);
    if matches!((&core, &groups), (Document::Same, Document::Same)) {
        return Ok(Answer::Same);
    }
    // One alone says nothing: they are kept together.
    let (core, of_core) = whole(client, "/api", core).await?;
    let (groups, of_groups) = whole(client, "/apis", groups).await?;
    let tags = Tags {
        core: of_core,
        groups: of_groups,
    };
    let all = core.items.into_iter().chain(groups.items);
    Ok(Answer::Other(all.collect(), tags))
}

async fn whole(client: &Client, path: &str, answer: Document) -> kube::Result<(APIGroupDiscoveryList, Option<String>)> {
    match answer {
        Document::Other(list, tag) => Ok((list, tag)),
        Document::Same => match document(client, path, None).await? {
            Document::Other(list, tag) => Ok((list, tag)),
            // Nobody was told of a tag: whoever says so is no API server.
            Document::Same => Ok((APIGroupDiscoveryList::default(), None)),
        },
    }
}

async fn document(client: &Client, path: &str, known: Option<&str>) -> kube::Result<Document> {
    let mut request = Request::get(path).header(header::ACCEPT, ACCEPT_AGGREGATED_DISCOVERY_V2);
    if let Some(known) = known {
        request = request.header(header::IF_NONE_MATCH, known);
    }
    let request = request.body(Body::empty()).map_err(kube::Error::HttpError)?;
    let answer = client.send(request).await?;
    if known.is_some() && answer.status() == StatusCode::NOT_MODIFIED {
        return Ok(Document::Same);
    }
    let tag = answer.headers().get(header::ETAG);
    let tag = tag.and_then(|tag| tag.to_str().ok()).map(str::to_owned);
    let list = body(answer).await?;
    Ok(Document::Other(list, tag))
}

async fn body(answer: Response<Body>) -> kube::Result<APIGroupDiscoveryList> {
    let code = answer.status();
    let bytes = answer.into_body().collect_bytes().await?;
    if code.is_success() {
        return serde_json::from_slice(&bytes).map_err(kube::Error::SerdeError);
    }
    let told = serde_json::from_slice::<Status>(&bytes).unwrap_or_else(|_| {
        let words = String::from_utf8_lossy(&bytes);
        Status::failure(words.trim(), "").with_code(code.as_u16())
    });
    Err(kube::Error::Api(told.boxed()))
}
