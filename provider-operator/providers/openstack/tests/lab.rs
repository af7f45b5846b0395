//! The suite of the plugin on a real Keystone and a real Glance: as they usually are, and as a client is easily wrong about, which is by TLS, below
//! a prefix, and with tokens that end all the time.

#[cfg(test)]
mod on_a_site;

#[cfg(test)]
mod real {
    use std::thread;

    use openstack_lab::real::{Installed, Real, RealOptions};
    use tokio::sync::OnceCell;

    use crate::on_a_site::OnASite;

    /// One for all statements of a program, each of which has a project to itself. It ends with the program.
    pub(crate) type Shared = OnceCell<Real>;

    /// None where this machine cannot have one, which is said.
    pub(crate) async fn harness(shared: &'static Shared, options: RealOptions) -> Option<OnASite<&'static Real>> {
        let installed = Installed::find().unwrap()?;
        let start = async || Real::start(&installed, &options).await.unwrap();
        let real = shared.get_or_init(start).await;
        let test = thread::current().name().unwrap_or("statement").to_owned();
        let statement = test.rsplit("::").next().unwrap_or(&test);
        Some(OnASite::new(real.project(statement).await.unwrap(), real))
    }
}

#[cfg(test)]
mod usual {
    use std::sync::Arc;

    use http::Method;
    use openstack_lab::{
        Login,
        client::{Client, whole},
        real::{Real, RealOptions},
    };
    use provider_openstack::{
        CloudAddresses,
        clouds::{Beside, cloud},
        glance::{Glance, Query},
        session::{Need, Session},
        transport::Transport,
    };
    use provider_plugin::ErrorClass;
    use serde_json::{Value, json};
    use url::Url;

    use crate::{
        on_a_site::OnASite,
        real::{Shared, harness},
    };

    static SHARED: Shared = Shared::const_new();

    async fn usual() -> Option<OnASite<&'static Real>> {
        harness(&SHARED, RealOptions::default()).await
    }

    provider_plugin::provider_suite!(match usual().await {
        Some(harness) => harness,
        None => return Ok(()),
    });

    /// A session of whoever says this under `auth`.
    fn session(real: &Real, mut auth: Value) -> Arc<Session> {
        auth["auth_url"] = real.site().keystone.as_str().into();
        // JSON is YAML.
        let yaml = json!({ "clouds": { "openstack": { "auth": auth } } }).to_string();
        let cloud = cloud(yaml.as_bytes(), "openstack", Beside::default()).unwrap();
        let addresses = CloudAddresses {
            networks: vec!["127.0.0.0/8".parse().unwrap()],
        };
        let transport = Transport::new(&cloud.tls, Arc::new(addresses)).unwrap();
        Arc::new(Session::new(cloud, transport))
    }

    /// Somebody of the cloud: his login by names, a token, and what Keystone says of it.
    async fn who(real: &Real, name: &str) -> (Value, String, Value) {
        let site = real.site();
        let Login::Password {
            user,
            password,
            project,
        } = &site.clouds[name]
        else {
            panic!("{name} has a password");
        };
        let url = Url::parse(&format!("{}/auth/tokens", site.keystone)).unwrap();
        let body = whole(site.auth(name).unwrap().to_string());
        let client = Client::new(None).unwrap();
        let json = [("content-type", "application/json")];
        let reply = client.send(Method::POST, &url, &json, body).await.unwrap();
        let token = reply.header("x-subject-token").unwrap().to_owned();
        let login = json!({
            "username": user, "password": password, "user_domain_name": "Default",
            "project_name": project, "project_domain_name": "Default",
        });
        (login, token, reply.json().unwrap()["token"].clone())
    }

    #[tokio::test]
    async fn keystone_lets_in_who_shows_who_he_is_in_any_of_the_ways() {
        let Some(_on) = usual().await else { return };
        let real = SHARED.get().unwrap();
        let (names, token, said) = who(real, "demo").await;
        let (user, project) = (&said["user"]["id"], &said["project"]["id"]);
        let domain = &said["user"]["domain"]["id"];
        let Login::ApplicationCredential { id, secret } = &real.site().clouds["openstack"] else {
            panic!("it is a credential");
        };
        let (username, password) = (&names["username"], &names["password"]);
        let ways = [
            names.clone(),
            json!({
                "username": username, "password": password, "user_domain_id": domain,
                "project_name": names["project_name"], "project_domain_id": domain,
            }),
            json!({ "user_id": user, "password": password, "project_id": project }),
            json!({ "application_credential_id": id, "application_credential_secret": secret }),
            json!({
                "application_credential_name": "operator", "application_credential_secret": secret,
                "username": username, "user_domain_name": "Default",
            }),
            json!({
                "application_credential_name": "operator", "application_credential_secret": secret, "user_id": user,
            }),
            json!({ "token": token, "project_id": project }),
        ];
        for way in ways {
            let session = session(real, way.clone());
            let came = session.project().await;
            assert_eq!(
                came.as_deref().ok(),
                project.as_str(),
                "{:?}: {came:?}",
                way.as_object().unwrap().keys()
            );
            Glance::new(session).list(&Query::default()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn keystone_lets_in_for_the_cloud_itself_and_that_has_no_images() {
        let Some(_on) = usual().await else { return };
        let real = SHARED.get().unwrap();
        let (mut login, _, _) = who(real, "admin").await;
        let fields = login.as_object_mut().unwrap();
        fields.retain(|field, _| !field.starts_with("project"));
        fields.insert("system_scope".to_owned(), "all".into());
        let session = session(real, login);
        assert_eq!(session.token(Need::Usual).await.unwrap().project, None);
        let error = session.project().await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid);
        assert!(error.to_string().contains("name one in clouds.yaml"), "{error}");
    }
}

#[cfg(test)]
mod by_tls_below_a_prefix_with_short_tokens {
    use std::{sync::Arc, time::Duration};

    use http::StatusCode;
    use openstack_lab::{
        facts::Visitor,
        real::{Real, RealOptions},
    };
    use provider_plugin::{
        Content, ContentPlan, Created, Discarded, ImageStore, RecordState,
        suite::{Harness, Notes, ScriptedSource, SharedSource},
    };
    use tokio::time::{self, Instant};

    use crate::{
        on_a_site::OnASite,
        real::{Shared, harness},
    };

    static SHARED: Shared = Shared::const_new();

    async fn unusual() -> Option<OnASite<&'static Real>> {
        let options = RealOptions {
            prefix: true,
            tls: true,
            token_ttl: Duration::from_secs(8),
            ..RealOptions::default()
        };
        harness(&SHARED, options).await
    }

    provider_plugin::provider_suite!(match unusual().await {
        Some(harness) => harness,
        None => return Ok(()),
    });

    /// Returns when every token is refused that was good when this was called.
    async fn tokens_end(on: &OnASite<&'static Real>) {
        let visitor = Visitor::new(&on.site).await.unwrap();
        let visitor = visitor.tenant("openstack").await.unwrap();
        let end = Instant::now() + Duration::from_mins(1);
        let nothing = "00000000-0000-4000-8000-000000000000";
        while visitor.image(nothing).await.unwrap()["status"] != StatusCode::UNAUTHORIZED.as_u16() {
            assert!(Instant::now() < end, "the token does not end");
            time::sleep(Duration::from_millis(100)).await;
        }
    }

    #[tokio::test]
    async fn an_image_is_made_that_takes_longer_than_a_token_is_good() {
        let Some(on) = unusual().await else { return };
        let (image, bytes) = on.image("long");
        let store = on.store().await;
        let Created::New(id) = store.create(&image, 1).await.unwrap() else {
            panic!("the project is not new");
        };
        let source = Arc::new(ScriptedSource::of(bytes.clone()).hanging_at(bytes.len() as u64 / 2));
        let notes = Arc::<Notes>::default();
        let shared = Arc::new(SharedSource(Arc::clone(&source)));
        let content = Content::new(
            shared,
            source.said(),
            ContentPlan::default(),
            Arc::<Notes>::clone(&notes),
        );
        let sending = store.transfer(&id, &image, content, &*notes);
        let waiting = async {
            source.hangs().await;
            tokens_end(&on).await;
            source.let_go();
        };
        let (sent, ()) = futures::future::join(sending, waiting).await;
        assert_eq!(sent.unwrap().bytes, bytes.len() as u64);
        store.publish(&id, &image, "sha256:00").await.unwrap();
        tokens_end(&on).await;
        let observed = store.observe(&image.subject, &image).await.unwrap();
        let [record] = observed.records.try_into().unwrap();
        assert_eq!((record.state, record.shown), (RecordState::Whole, true));
        let discarded = store.discard(&id, &image.subject.marked(1)).await.unwrap();
        assert_eq!(discarded, Discarded::Gone);
        assert_eq!(store.owned(&image.subject.owner).await.unwrap(), []);
    }
}
