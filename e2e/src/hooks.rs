//! A runtime extension of a test: Cluster API calls it at every moment of a cluster's life, it notes each call and answers as the test says.
//!
//! What is here of the protocol is what the managers of Cluster API do (<https://cluster-api.sigs.k8s.io/tasks/experimental-features/runtime-sdk>);
//! nothing of our operators is in it but the names of their handlers.

mod question;

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
    core::GroupVersionKind,
};
use openstack_lab::listening::{Listening, Port};
use serde_json::{Value, json};

pub use self::question::Question;
use crate::{
    authority::Authority,
    cluster_api::Release,
    eventually,
    journey::SOON,
    web::{self, lock},
};

/// The API of the calls, and the first two parts of their paths.
const API: &str = "hooks.runtime.cluster.x-k8s.io/v1alpha1";

/// A moment at which Cluster API asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of Cluster API, and say it")]
pub enum Hook {
    BeforeClusterCreate,
    AfterControlPlaneInitialized,
    BeforeClusterUpgrade,
    BeforeControlPlaneUpgrade,
    AfterControlPlaneUpgrade,
    BeforeWorkersUpgrade,
    AfterWorkersUpgrade,
    AfterClusterUpgrade,
    BeforeClusterDelete,
}

impl Hook {
    /// All of them, in the order of a life.
    pub const ALL: [Self; 9] = [
        Self::BeforeClusterCreate,
        Self::AfterControlPlaneInitialized,
        Self::BeforeClusterUpgrade,
        Self::BeforeControlPlaneUpgrade,
        Self::AfterControlPlaneUpgrade,
        Self::BeforeWorkersUpgrade,
        Self::AfterWorkersUpgrade,
        Self::AfterClusterUpgrade,
        Self::BeforeClusterDelete,
    ];

    /// As Cluster API calls it.
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    /// In small letters, with dashes between the words: what our operators call their handlers.
    pub fn dashed(self) -> String {
        let mut dashed = String::new();
        for letter in self.name().chars() {
            if letter.is_ascii_uppercase() && !dashed.is_empty() {
                dashed.push('-');
            }
            dashed.push(letter.to_ascii_lowercase());
        }
        dashed
    }

    /// Whether managers before 1.12 have never heard of it.
    pub fn is_of_1_12(self) -> bool {
        matches!(
            self,
            Self::BeforeControlPlaneUpgrade | Self::BeforeWorkersUpgrade | Self::AfterWorkersUpgrade
        )
    }

    /// Whether an answer may hold the cluster back.
    fn may_block(self) -> bool {
        self != Self::AfterControlPlaneInitialized
    }

    /// That of the path of a call, where names are in small letters.
    fn of_path(part: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.name().to_lowercase() == part)
    }
}

/// What a call is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// The cluster goes on.
    #[default]
    Proceed,
    /// It waits, for this reason, and asks again after so many seconds (before 1.12: at the latest).
    Wait {
        /// One or more.
        seconds: u32,
        /// Shown in the condition `TopologyReconciled` of the Cluster.
        message: String,
    },
    /// An error, as the manager sees it: it asks again, ever more seldom.
    Fail(String),
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// At which moment.
    pub hook: Hook,
    /// Namespace and name of the Cluster, with a slash between.
    pub cluster: String,
    /// All that was sent.
    pub request: Value,
    /// What was answered.
    pub answer: Answer,
    /// When.
    pub at: Timestamp,
}

#[derive(Debug)]
struct State {
    handlers: Vec<Hook>,
    answers: Mutex<BTreeMap<Hook, Answer>>,
    calls: Mutex<Vec<Call>>,
}

/// A running extension. Dropped, nobody answers.
#[derive(Debug)]
pub struct Recorder {
    state: Arc<State>,
    authority: Authority,
    listening: Listening,
}

impl Recorder {
    /// Starts one with a handler for each hook that a minor knows. Until told otherwise, it lets everything proceed.
    pub async fn start(release: Release) -> Result<Self> {
        Self::with_handlers(Hook::ALL.into_iter().filter(|hook| release.knows(*hook))).await
    }

    /// The same with handlers for these.
    pub async fn with_handlers(handlers: impl IntoIterator<Item = Hook>) -> Result<Self> {
        let authority = Authority::new()?;
        let state = Arc::new(State {
            handlers: handlers.into_iter().collect(),
            answers: Mutex::default(),
            calls: Mutex::default(),
        });
        let serving = Arc::clone(&state);
        let port = Port::open().await?;
        let listening = authority
            .sign()?
            .answer(port, move |request| answer(Arc::clone(&serving), request))?;
        Ok(Self {
            state,
            authority,
            listening,
        })
    }

    /// From now on this hook is answered so.
    pub fn answer(&self, hook: Hook, answer: Answer) {
        lock(&self.state.answers).insert(hook, answer);
    }

    /// Every call so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.state.calls).clone()
    }

    /// Returns the calls of this hook about this cluster once there are so many.
    pub async fn called(&self, hook: Hook, cluster: &str, times: usize) -> Result<Vec<Call>> {
        eventually(SOON, format!("{times} calls of {hook:?} about {cluster}"), async || {
            let mut calls = self.calls();
            calls.retain(|call| call.hook == hook && call.cluster == cluster);
            if calls.len() < times {
                Err(calls.len())
            } else {
                Ok(calls)
            }
        })
        .await
    }

    /// Tells Cluster API of it, under this name, and returns at once: see [`Recorder::discovered`].
    pub async fn register(&self, client: &Client, name: &str) -> Result<()> {
        let url = format!("https://127.0.0.1:{}", self.listening.port());
        let config = json!({
            // The one version that every minor serves.
            "apiVersion": "runtime.cluster.x-k8s.io/v1alpha1", "kind": "ExtensionConfig", "metadata": { "name": name },
            "spec": { "clientConfig": { "url": url, "caBundle": BASE64_STANDARD.encode(&self.authority.pem) } },
        });
        let created = extension_configs(client)
            .create(&PostParams::default(), &serde_json::from_value(config)?)
            .await;
        created.map(drop).context("failed to register a runtime extension")
    }

    /// Returns the names of the handlers when Cluster API has asked for them and has taken the answer. (It writes that it has before it writes
    /// which there are.)
    pub async fn discovered(client: &Client, name: &str) -> Result<Vec<String>> {
        eventually(SOON, format!("the handlers of {name} to be known"), async || {
            let condition = discovery(client, name).await?;
            let handlers = handlers(client, name).await?;
            ensure!(condition["status"] == "True" && !handlers.is_empty(), "{condition}");
            Ok(handlers)
        })
        .await
    }
}

/// What Cluster API says about asking an extension which hooks it handles: the condition `Discovered`, or null.
pub async fn discovery(client: &Client, name: &str) -> Result<Value> {
    let config = extension_configs(client).get(name).await?;
    let conditions = config.data["status"]["conditions"].as_array();
    let discovered = |condition: &&Value| condition["type"] == "Discovered";
    Ok(conditions
        .into_iter()
        .flatten()
        .find(discovered)
        .cloned()
        .unwrap_or_default())
}

/// The names of the handlers that Cluster API calls.
pub async fn handlers(client: &Client, name: &str) -> Result<Vec<String>> {
    let config = extension_configs(client).get(name).await?;
    let handlers = config.data["status"]["handlers"].as_array();
    let names = handlers
        .into_iter()
        .flatten()
        .filter_map(|handler| handler["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// What Cluster API knows of extensions.
pub fn extension_configs(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("runtime.cluster.x-k8s.io", "v1alpha1", "ExtensionConfig");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// `/<group>/<version>/discovery` or `/<group>/<version>/<hook>/<handler>`.
async fn answer(state: Arc<State>, request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let path = head.uri.path().trim_matches('/').strip_prefix(API).unwrap_or_default();
    let what = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let said = match (what, Hook::of_path(what)) {
        ("discovery", _) => Some(state.discovery()),
        (_, Some(hook)) => serde_json::from_slice(&body)
            .ok()
            .map(|request| state.take(hook, request)),
        _ => None,
    };
    let json = [(header::CONTENT_TYPE.as_str(), "application/json".to_owned())];
    let answer = match said {
        Some(said) => web::answer(StatusCode::OK, &json, said.to_string()),
        None => web::answer(StatusCode::NOT_FOUND, &[], "no such hook"),
    };
    Ok(answer.map(Full::from))
}

impl State {
    fn discovery(&self) -> Value {
        let handlers = self.handlers.iter().map(|hook| {
            json!({
                "name": format!("recorder-{}", hook.name().to_lowercase()),
                "requestHook": { "apiVersion": API, "hook": hook.name() },
                "timeoutSeconds": 10, "failurePolicy": "Fail",
            })
        });
        json!({
            "apiVersion": API, "kind": "DiscoveryResponse", "status": "Success",
            "handlers": handlers.collect::<Vec<_>>(),
        })
    }

    /// Notes a call and answers it.
    fn take(&self, hook: Hook, request: Value) -> Value {
        let answer = lock(&self.answers).get(&hook).cloned().unwrap_or_default();
        let part = |name: &str| request["cluster"]["metadata"][name].as_str().unwrap_or_default();
        let cluster = format!("{}/{}", part("namespace"), part("name"));
        let call = Call {
            hook,
            cluster,
            request,
            answer: answer.clone(),
            at: Timestamp::now(),
        };
        lock(&self.calls).push(call);
        let mut response = json!({ "apiVersion": API, "kind": format!("{hook:?}Response"), "status": "Success" });
        if hook.may_block() {
            response["retryAfterSeconds"] = 0.into();
        }
        match answer {
            Answer::Proceed => {}
            Answer::Wait { seconds, message } => {
                response["retryAfterSeconds"] = seconds.into();
                response["message"] = message.into();
            }
            Answer::Fail(message) => {
                response["status"] = "Failure".into();
                response["message"] = message.into();
            }
        }
        response
    }
}
