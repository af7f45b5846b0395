//! What the program of a Job may, asked of the API server as the account that it has: to patch the status of its own image, and nothing that nobody may.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::{Identity, eventually};
use k8s_openapi::api::{
    authorization::v1::{SelfSubjectAccessReview, SelfSubjectRulesReview},
    core::v1::ServiceAccount,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    everywhere,
    place::{PATIENCE, Web, Wish},
};

const GROUP: &str = "infrastructure.clusterstack.x-k8s.io";
const PLURAL: &str = "filestorenodeimagereleases";
const STATUS: &str = "filestorenodeimagereleases/status";
/// The image that is sent, and another one in a namespace of its own. Each has the name of its namespace.
const IMAGE: &str = "may";
const OTHER: &str = "may-not";

/// What is asked for: a verb, a group, a resource with its subresource, a name and a namespace. The last two are the image's own, where they are [`OWN`].
type Deed = [&'static str; 5];

const OWN: &str = "its own";

/// What nobody needs who sends an image, and might have got with the rest.
const NEEDLESS: [Deed; 15] = [
    ["patch", GROUP, PLURAL, OWN, OWN],
    ["get", GROUP, PLURAL, OWN, OWN],
    ["list", GROUP, PLURAL, "", OWN],
    ["watch", GROUP, PLURAL, "", OWN],
    ["delete", GROUP, PLURAL, OWN, OWN],
    ["get", GROUP, STATUS, OWN, OWN],
    ["update", GROUP, STATUS, OWN, OWN],
    ["patch", GROUP, STATUS, "another", OWN],
    ["patch", GROUP, STATUS, OTHER, OTHER],
    ["patch", GROUP, "openstacknodeimagereleases/status", OWN, OWN],
    ["get", "", "secrets", "cloud", OWN],
    ["list", "", "secrets", "", OWN],
    ["list", "", "secrets", "", ""],
    ["create", "batch", "jobs", "", OWN],
    ["create", "", "serviceaccounts/token", "default", OWN],
];

/// Somebody before the API server.
async fn client_of(wish: &Wish<'_>, account: &str) -> Result<Client> {
    let identity = Identity::ServiceAccount {
        namespace: wish.name.to_owned(),
        name: account.to_owned(),
    };
    wish.place.kubelet.control_plane().client_for(&identity).await
}

async fn may(client: &Client, [verb, group, resource, name, namespace]: Deed) -> Result<bool> {
    let own = |word: &'static str| if word == OWN { IMAGE } else { word };
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let attributes = json!({
        "verb": verb, "group": group, "resource": resource, "subresource": subresource, "name": own(name), "namespace": own(namespace),
    });
    let review: SelfSubjectAccessReview = serde_json::from_value(json!({
        "metadata": {}, "spec": { "resourceAttributes": attributes },
    }))?;
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.status.context("an answer")?.allowed)
}

/// Whether the API server does not know who asks.
fn is_unknown(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 401)
}

/// All rules about resources that hold for somebody in a namespace, each as JSON.
async fn rules(client: &Client, namespace: &str) -> Result<BTreeSet<String>> {
    let review: SelfSubjectRulesReview = serde_json::from_value(json!({
        "metadata": {}, "spec": { "namespace": namespace },
    }))?;
    let api: Api<SelfSubjectRulesReview> = Api::all(client.clone());
    let answer = api.create(&PostParams::default(), &review).await?;
    let status = answer.status.context("an answer")?;
    ensure!(!status.incomplete, "the rules are not all: {status:?}");
    let rules = status.resource_rules.iter();
    rules.map(|rule| Ok(serde_json::to_value(rule)?.to_string())).collect()
}

/// The account of the object's Jobs.
async fn account(wish: &Wish<'_>) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(wish.place.client.clone(), wish.name);
    let accounts = accounts.list(&ListParams::default()).await?;
    let mut names = accounts.items.iter().map(ResourceExt::name_any);
    let account = names.find(|name| name.starts_with("img-"));
    account.context("there is no account")
}

/// Of everything that is allowed to somebody, this and nothing else is not allowed to everybody who has an account.
async fn has_one_rule_more(program: &Client, nobody: &Client) -> Result<()> {
    let (has, all) = (rules(program, IMAGE).await?, rules(nobody, IMAGE).await?);
    let more = has.difference(&all).map(|rule| serde_json::from_str(rule));
    let more: Vec<Value> = more.collect::<Result<_, _>>()?;
    let expected =
        json!([{ "verbs": ["patch"], "apiGroups": [GROUP], "resources": [STATUS], "resourceNames": [IMAGE] }]);
    ensure!(json!(more) == expected, "{more:?}");
    let (has, all) = (rules(program, OTHER).await?, rules(nobody, OTHER).await?);
    ensure!(has == all, "elsewhere it has {has:?}");
    Ok(())
}

#[test]
fn the_program_of_a_job_may_patch_the_status_of_its_image_and_nothing_else_and_that_as_long_as_it_runs() -> Result<()> {
    everywhere(async |place| {
        let web = Web::start(place, false)?;
        let image = || json!({ "url": web.url });
        let other = place.image(OTHER, image(), json!({ "execution": "Job" })).await?;
        let wish = place.image(IMAGE, image(), json!({ "execution": "Job" })).await?;
        wish.moves().await?;
        let program = client_of(&wish, &account(&wish).await?).await?;
        let nobody = client_of(&wish, "default").await?;
        let needed: Deed = ["patch", GROUP, STATUS, OWN, OWN];
        ensure!(may(&program, needed).await?, "it cannot say how far it is");
        for deed in NEEDLESS {
            ensure!(!may(&program, deed).await?, "it may {deed:?}");
        }
        has_one_rule_more(&program, &nobody).await?;

        web.go_on();
        wish.ready().await?;
        eventually(PATIENCE, "the right to go with the Job", async || {
            match may(&program, needed).await {
                Ok(still) => ensure!(!still, "it still may"),
                // The account is gone, and with it what its token was good for.
                Err(error) => ensure!(is_unknown(&error), "{error:#}"),
            }
            Ok(())
        })
        .await?;
        wish.delete().await?;
        other.delete().await
    })
}
