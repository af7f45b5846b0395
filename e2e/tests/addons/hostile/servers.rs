//! API servers of clusters that want time, memory or what the operator knows.

use anyhow::{Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use crds::conditions::ConditionType;
use e2e::{
    eventually,
    hostile_server::{HostileServer, Question, Reply, head},
    journey::SOON,
};
use serde_json::json;

use super::Attack;

/// What is said of a cluster that shows nothing of itself, before its answer.
const UNSEEN: &str = "cannot be watched: failed to read which kinds the API server serves: ";
pub(super) const JSON: &str = "content-type: application/json";

/// What an API server says first.
pub(super) const VERSION: &str = r#"{"major":"1","minor":"34","gitVersion":"v1.34.0"}"#;

/// A server, its cluster, and how that is told.
pub(super) struct Attacker {
    pub(super) attack: Attack,
    /// As long as there is an attack.
    pub(super) server: HostileServer,
}

/// Each keeps whoever asked it waiting, or has answered.
pub(super) async fn are_asked(attackers: &[Attacker]) -> Result<()> {
    eventually(SOON, "every server to be asked", async || {
        let unasked = attackers.iter().find(|attacker| attacker.server.asked() == 0);
        ensure!(
            unasked.is_none(),
            "{:?}",
            unasked.map(|attacker| &attacker.attack.cluster)
        );
        Ok(())
    })
    .await
}

/// A server that does so, and says that it is the API server of the cluster of this name.
pub(super) async fn attacker(
    name: &'static str,
    words: &[&str],
    behaviour: impl Fn(&Question) -> Reply + Send + Sync + 'static,
) -> Result<Attacker> {
    let (server, authority) = HostileServer::start_tls(behaviour).await?;
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{ "name": "it", "cluster": {
            "server": format!("https://{}", server.place()),
            "certificate-authority-data": BASE64_STANDARD.encode(authority),
        } }],
        "users": [{ "name": "it", "user": { "token": super::CANARY } }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
    });
    let attack = Attack {
        cluster: name.to_owned(),
        kubeconfig: Some(kubeconfig.to_string().into_bytes()),
        condition: ConditionType::ClusterReady,
        words: words.iter().map(|words| (*words).to_owned()).collect(),
        ..Attack::default()
    };
    Ok(Attacker { attack, server })
}

pub(super) fn ok() -> Vec<u8> {
    head("200 OK", &[JSON])
}

/// Servers that are none from the first question on.
async fn of_no_use(decoy: &str) -> Result<Vec<Attacker>> {
    let elsewhere = format!("location: http://{decoy}/");
    Ok(vec![
        attacker("redirect", &["answers with the code 302"], move |_| {
            Reply::answer("302 Found", &[&elsewhere], b"")
        })
        .await?,
        attacker("endless-head", &["failed to reach the API server"], |_| {
            Reply::Floods(b"HTTP/1.1 200 OK\r\n".to_vec(), b"X-More: and more\r\n".repeat(1000))
        })
        .await?,
        attacker("endless-body", &["failed to reach the API server"], |_| {
            Reply::Floods(ok(), vec![b' '; 1 << 16])
        })
        .await?,
        attacker("dripping", &["did not answer within 10 s"], |_| {
            Reply::Drips(b"HTTP/1.1 200 OK\r\nX-Drop: ".to_vec())
        })
        .await?,
        attacker("silent", &["did not answer within 10 s"], |_| Reply::Silence).await?,
        attacker("echo", &["answers with the code 500"], |question| {
            Reply::answer(
                "500 Internal Server Error",
                &[JSON],
                status_of(500, &question.head).as_bytes(),
            )
        })
        .await?,
    ])
}

/// Servers that give a good first answer.
async fn two_faced() -> Result<Vec<Attacker>> {
    let honest = || Reply::answer("200 OK", &[JSON], VERSION.as_bytes());
    let is_first = |question: &Question| question.target == "/version";
    let mut attackers = vec![
        attacker("flood-behind", &[UNSEEN], move |question| {
            if is_first(question) {
                return honest();
            }
            Reply::Floods([ok(), b"[".to_vec()].concat(), br#"{"kind":"Any"},"#.repeat(1000))
        })
        .await?,
        attacker("silence-behind", &["did not answer within 20 s"], move |question| {
            if is_first(question) { honest() } else { Reply::Silence }
        })
        .await?,
        attacker("echo-behind", &[UNSEEN], move |question| {
            if is_first(question) {
                return honest();
            }
            Reply::answer("403 Forbidden", &[JSON], status_of(403, &question.head).as_bytes())
        })
        .await?,
    ];
    for attacker in &mut attackers {
        attacker.attack.condition = ConditionType::HelmChartApplied;
    }
    // What it serves is asked for before anything else.
    attackers[1].attack.condition = ConditionType::ClusterReady;
    Ok(attackers)
}

/// What API servers say when they refuse something.
fn status_of(code: u16, message: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": "Forbidden",
        "message": format!("you came with {message}"),
    })
    .to_string()
}

/// All of them.
pub(super) async fn start(decoy: &str) -> Result<Vec<Attacker>> {
    let mut attackers = of_no_use(decoy).await?;
    attackers.extend(two_faced().await?);
    Ok(attackers)
}
