//! What holds for every provider, held for images in registries of clay; and what holds for these images alone.

use std::{
    collections::BTreeMap,
    future,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use provider_docker::{Asked, CERTIFICATES, Docker, DockerStore, LOGINS, Manifest, Registries, Repository};
use provider_plugin::{
    Addresses, CloudError, ErrorClass, Foreign, Identity, ImageSpec, ImageStore, OwnerId, Pinned, Provider,
    suite::{Harness, Held, facts, subject},
};
use secrecy::{ExposeSecret, SecretString};

const HOST: &str = "registry.example:5000";
const PASSWORD: &str = "canary-password";

/// Registries that have what a test puts there.
#[derive(Clone, Debug, Default)]
struct Clay(Arc<Mutex<Shelf>>);

type Way = (String, Option<(String, String)>, Option<String>);

#[derive(Debug, Default)]
struct Shelf {
    /// By `host/repository tag-or-digest`.
    manifests: BTreeMap<String, Pinned>,
    /// Of which repository, by which name and password, with which certificates.
    ways: Vec<Way>,
    /// Nobody answers any more.
    hangs: bool,
}

#[derive(Debug)]
struct ClayRepository(Clay, String);

impl Registries for Clay {
    fn repository(&self, asked: &Asked) -> Result<Arc<dyn Repository>, CloudError> {
        let place = format!("{}/{}", asked.host, asked.name);
        let login = asked.login.clone();
        let login = login.map(|login| (login.username, login.password.expose_secret().to_owned()));
        let way = (place.clone(), login, asked.certificates.clone());
        self.0.lock().unwrap().ways.push(way);
        Ok(Arc::new(ClayRepository(self.clone(), place)))
    }
}

#[async_trait]
impl Repository for ClayRepository {
    async fn find(&self, manifest: &Manifest) -> Result<Option<Pinned>, CloudError> {
        if self.0.0.lock().unwrap().hangs {
            future::pending::<()>().await;
        }
        let kept = self.0.0.lock().unwrap();
        Ok(kept.manifests.get(&format!("{} {manifest}", self.1)).cloned())
    }
}

impl Clay {
    fn push(&self, repository: &str, tag: &str, digest: &Pinned) {
        let mut kept = self.0.lock().unwrap();
        for name in [tag.to_owned(), digest.to_string()] {
            kept.manifests.insert(format!("{repository} {name}"), digest.clone());
        }
    }

    fn delete(&self, repository: &str) {
        let mut kept = self.0.lock().unwrap();
        kept.manifests
            .retain(|name, _| !name.starts_with(&format!("{repository} ")));
    }

    fn store(&self, keys: &[(&str, String)]) -> Result<DockerStore, CloudError> {
        DockerStore::new(Arc::new(self.clone()), &identity(keys))
    }
}

fn identity(keys: &[(&str, String)]) -> Identity {
    let data = keys.iter();
    Identity {
        name: HOST.to_owned(),
        data: data
            .map(|(key, value)| ((*key).to_owned(), SecretString::from(value.as_str())))
            .collect(),
        version: "uid/1".to_owned(),
    }
}

fn logins() -> String {
    format!(r#"{{ "auths": {{ "{HOST}": {{ "username": "robot", "password": "{PASSWORD}" }} }} }}"#)
}

fn digest(digit: char) -> Pinned {
    Pinned::parse(&format!("sha256:{}", digit.to_string().repeat(64))).unwrap()
}

fn image(reference: &str) -> ImageSpec {
    let owner = OwnerId::parse("suite").unwrap();
    let mut subject = subject(&owner, reference);
    subject.look_for_others = true;
    ImageSpec {
        subject,
        options: serde_json::Map::new(),
        format: None,
        source_digest: None,
        chosen_id: None,
        stores: Vec::new(),
    }
}

async fn seen(store: &DockerStore, reference: &str) -> Vec<Foreign> {
    let image = image(reference);
    let observed = store.observe(&image.subject, &image).await.unwrap();
    assert_eq!(observed.records, []);
    observed.others
}

#[async_trait]
impl Harness for Clay {
    type Store = DockerStore;

    async fn store(&self) -> DockerStore {
        self.store(&[(LOGINS, logins())]).unwrap()
    }

    fn image(&self, name: &str) -> (ImageSpec, Vec<u8>) {
        (image(&format!("{HOST}/{name}:v1")), vec![7; 256 << 10])
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.to_owned()]
    }
}

provider_plugin::provider_suite!(Clay::default());

#[tokio::test]
async fn of_the_suite_all_is_left_out_that_is_about_images_of_ours_and_nothing_else() {
    let applies = ["errors_hide_secrets", "calls_end", "what_a_cloud_cannot_do_is_refused"];
    for (name, fact) in facts::<Clay>() {
        let held = fact(&Clay::default()).await.unwrap();
        let expected = if applies.contains(&name) {
            Held::Holds
        } else {
            Held::Skipped("this provider transfers no images")
        };
        assert_eq!(held, expected, "{name}");
    }
}

#[tokio::test]
async fn an_image_is_there_as_long_as_its_registry_has_it_and_is_named_by_what_it_is() {
    let clay = Clay::default();
    let store = clay.store(&[]).unwrap();
    let repository = format!("{HOST}/team/node");
    let (tagged, pinned) = (format!("{repository}:v1"), format!("{repository}@{}", digest('a')));
    assert_eq!(seen(&store, &tagged).await, []);
    clay.push(&repository, "v1", &digest('a'));
    for reference in [&tagged, &pinned] {
        let found = seen(&store, reference).await.remove(0);
        assert!(found.is_usable, "{found:?}");
        assert_eq!(
            (found.id.0.as_str(), found.digest),
            (pinned.as_str(), Some(digest('a')))
        );
    }
    clay.push(&repository, "v1", &digest('b'));
    assert_eq!(seen(&store, &tagged).await[0].digest, Some(digest('b')));
    assert_eq!(seen(&store, &pinned).await[0].digest, Some(digest('a')));
    clay.delete(&repository);
    for reference in [&tagged, &pinned] {
        assert_eq!(seen(&store, reference).await, []);
    }
}

#[tokio::test]
async fn a_registry_is_told_its_own_login_and_nobody_is_asked_twice_who_he_is() {
    let clay = Clay::default();
    let keys = [(LOGINS, logins()), (CERTIFICATES, "an authority".to_owned())];
    let store = clay.store(&keys).unwrap();
    for tag in ["v1", "v2"] {
        seen(&store, &format!("{HOST}/node:{tag}")).await;
    }
    let anybody = clay.store(&[]).unwrap();
    seen(&anybody, &format!("{HOST}/node:v1")).await;
    let place = format!("{HOST}/node");
    let robot = Some(("robot".to_owned(), PASSWORD.to_owned()));
    assert_eq!(
        clay.0.lock().unwrap().ways,
        [
            (place.clone(), robot, Some("an authority".to_owned())),
            (place, None, None)
        ]
    );
}

#[test]
fn a_secret_that_opens_no_registry_is_told_as_one_and_not_repeated() {
    let clay = Clay::default();
    for keys in [[(LOGINS, PASSWORD.to_owned())], [("password", PASSWORD.to_owned())]] {
        let error = clay.store(&keys).unwrap_err();
        assert_eq!(error.class, ErrorClass::Credentials);
        assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error:?}");
    }
    assert!(clay.store(&[(CERTIFICATES, "an authority".to_owned())]).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_does_not_answer_is_away_and_its_images_are_not() {
    let clay = Clay::default();
    clay.0.lock().unwrap().hangs = true;
    let store = clay.store(&[]).unwrap();
    let image = image(&format!("{HOST}/node:v1"));
    let begun = tokio::time::Instant::now();
    let error = store.observe(&image.subject, &image).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unavailable);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[derive(Debug)]
struct Nowhere;

impl Addresses for Nowhere {
    fn allows(&self, host: &str, _: IpAddr) -> Result<(), String> {
        Err(host.to_owned())
    }
}

#[tokio::test]
async fn each_registry_is_a_cloud_of_its_own_and_is_asked_for_its_own_images_alone() {
    let docker = Docker::new(Arc::new(Clay::default()));
    assert_eq!(docker.cloud_of_image("kindest/node:v1").as_deref(), Some("docker.io"));
    assert_eq!(docker.cloud_of_image(&format!("{HOST}/node")).as_deref(), Some(HOST));
    assert_eq!(docker.cloud_of_image("no image"), None);
    assert_eq!(docker.cloud_of(&identity(&[])).unwrap().to_string(), HOST);
    let store = docker.connect(&identity(&[]), Arc::new(Nowhere)).await.unwrap();
    let elsewhere = image("kindest/node:v1");
    let error = store.observe(&elsewhere.subject, &elsewhere).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
}

#[test]
fn a_reference_that_names_nothing_or_two_things_is_refused_before_anybody_is_asked() {
    let docker = Docker::new(Arc::new(Clay::default()));
    let pinned = |reference: &str, digest: Option<Pinned>| ImageSpec {
        source_digest: digest,
        ..image(reference)
    };
    let by_digest = format!("{HOST}/node@{}", digest('a'));
    for good in [
        pinned(&by_digest, None),
        pinned(&by_digest, Some(digest('a'))),
        pinned(&format!("{HOST}/node:v1"), Some(digest('b'))),
    ] {
        docker.check(&good).unwrap();
    }
    for (bad, words) in [
        (
            pinned("https://registry.example/node", None),
            "registry.example.com/path/name:tag",
        ),
        (pinned(&by_digest, Some(digest('b'))), "leave one of them out"),
    ] {
        let error = docker.check(&bad).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid);
        assert!(error.message.contains(words), "{error}");
    }
}
