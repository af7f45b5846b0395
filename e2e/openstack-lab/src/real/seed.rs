//! Who and what there is in a new Keystone: the image service with its user, endpoints and limits, and the projects of a [`Site`](crate::Site).

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};
use url::Url;

use super::{
    REGION,
    keystone::{Session, id_of},
    secret::secret,
};
use crate::{Limits, Login, client::Client};

/// What came of it.
pub(super) struct Seeded {
    /// How to log in, by the name of the cloud.
    pub(super) clouds: BTreeMap<String, Login>,
    /// Who may do everything.
    pub(super) administrator: Login,
    /// The password of Glance's own user.
    pub(super) glance_password: String,
    /// The id of Glance's public endpoint.
    pub(super) glance_endpoint: String,
}

/// A user who was made here.
pub(super) struct User {
    id: String,
    name: String,
    password: String,
}

impl User {
    /// How he logs in, for a project that he has a role in.
    pub(super) fn login(&self, project: &str) -> Login {
        by_password(&self.name, &self.password, project)
    }
}

/// Fills a Keystone that has its administrator and nothing else. He gets a password that nobody knows.
pub(super) async fn fill(client: &Client, keystone: &Url, glance: &str, password: String) -> Result<Seeded> {
    let administrator = take_over(client, keystone, &password).await?;
    let admin = Session::open(client, keystone, &administrator).await?;
    let system = Session::open_system(client, keystone, &administrator).await?;

    let identity = json!({ "type": "identity", "name": "keystone" });
    let identity = admin.create("services", "service", &identity).await?;
    endpoints(&admin, &identity, keystone.as_str()).await?;
    let images = json!({ "type": "image", "name": "glance" });
    let images = admin.create("services", "service", &images).await?;
    let glance_endpoint = endpoints(&admin, &images, glance).await?;

    let service = project(&admin, "service").await?;
    let glance = user(&admin, "glance", &service, "admin").await?;
    grant(&admin, &format!("/projects/{service}/users/{}", glance.id), "service").await?;
    // He reads what projects may hold.
    grant(&admin, &format!("/system/users/{}", glance.id), "reader").await?;
    limit_all(&system, &images).await?;

    let demo = project(&admin, "demo").await?;
    let tiny = project(&admin, "tiny").await?;
    let other = project(&admin, "other").await?;
    limit(&system, &images, &tiny, Limits::TINY).await?;
    let member = user(&admin, "demo", &demo, "member").await?;
    let users = [
        (user(&admin, "other", &other, "member").await?, "other"),
        (user(&admin, "tiny", &tiny, "member").await?, "tiny"),
        (user(&admin, "reader", &demo, "reader").await?, "demo"),
    ];
    let owner = Session::open(client, keystone, &member.login("demo")).await?;
    let mut clouds = credentials(&owner, &member).await?;
    clouds.insert("demo".to_owned(), member.login("demo"));
    clouds.insert("admin".to_owned(), administrator.clone());
    clouds.extend(users.map(|(user, project)| (user.name.clone(), user.login(project))));
    Ok(Seeded {
        clouds,
        administrator,
        glance_password: glance.password,
        glance_endpoint,
    })
}

fn by_password(user: &str, password: &str, project: &str) -> Login {
    Login::Password {
        user: user.to_owned(),
        password: password.to_owned(),
        project: project.to_owned(),
    }
}

/// Makes an administrator of our own. The one of the database has a password that others know: he gets one that nobody does, and could not go on
/// himself, since Keystone then refuses what he logs in with for the rest of that second.
async fn take_over(client: &Client, keystone: &Url, password: &str) -> Result<Login> {
    let known = by_password("admin", password, "admin");
    let admin = Session::open(client, keystone, &known).await?;
    let id = admin.find("users", "admin").await?;
    let project = admin.find("projects", "admin").await?;
    let ours = user(&admin, "administrator", &project, "admin").await?;
    grant(&admin, &format!("/system/users/{}", ours.id), "admin").await?;
    let change = json!({ "user": { "password": secret()? } });
    admin.call(Method::PATCH, &format!("/users/{id}"), &change).await?;
    Ok(ours.login("admin"))
}

/// Makes the endpoints of a service, and returns the id of the public one.
async fn endpoints(admin: &Session<'_>, service: &str, url: &str) -> Result<String> {
    let endpoint =
        |interface: &str| json!({ "service_id": service, "interface": interface, "region_id": REGION, "url": url });
    for interface in ["internal", "admin"] {
        admin.create("endpoints", "endpoint", &endpoint(interface)).await?;
    }
    admin.create("endpoints", "endpoint", &endpoint("public")).await
}

/// Makes a project and returns its id.
pub(super) async fn project(admin: &Session<'_>, name: &str) -> Result<String> {
    let project = json!({ "name": name, "domain_id": "default" });
    admin.create("projects", "project", &project).await
}

/// Makes a user with this role in this project.
pub(super) async fn user(admin: &Session<'_>, name: &str, project: &str, role: &str) -> Result<User> {
    let password = secret()?;
    let user = json!({ "name": name, "domain_id": "default", "password": password });
    let id = admin.create("users", "user", &user).await?;
    grant(admin, &format!("/projects/{project}/users/{id}"), role).await?;
    Ok(User {
        id,
        name: name.to_owned(),
        password,
    })
}

async fn grant(admin: &Session<'_>, to: &str, role: &str) -> Result<()> {
    let role = admin.find("roles", role).await?;
    admin
        .call(Method::PUT, &format!("{to}/roles/{role}"), &Value::Null)
        .await?;
    Ok(())
}

/// Makes an application credential of a user, who is logged in to the project that it is for. `rules` are the calls that it is good for.
pub(super) async fn credential(owner: &Session<'_>, user: &User, name: &str, rules: Option<Value>) -> Result<Login> {
    // With everything that documents and URLs escape, as people's own may have it.
    let secret = format!("{}\"\\/+&%é", secret()?);
    let mut fields = json!({ "name": name, "secret": secret, "roles": [{ "name": "member" }] });
    if let Some(rules) = rules {
        fields["access_rules"] = rules;
    }
    let path = format!("/users/{}/application_credentials", user.id);
    let made = owner
        .call(Method::POST, &path, &json!({ "application_credential": fields }))
        .await?;
    let made = &made["application_credential"];
    Ok(Login::ApplicationCredential {
        id: id_of(made)?,
        secret: made["secret"]
            .as_str()
            .context("a credential without a secret")?
            .to_owned(),
    })
}

/// The application credentials of a site.
async fn credentials(owner: &Session<'_>, user: &User) -> Result<BTreeMap<String, Login>> {
    let operator = credential(owner, user, "operator", None).await?;
    // Rules are about the whole path, which may have a prefix.
    let calls = ["GET", "POST", "PUT", "PATCH", "DELETE"].into_iter();
    let rules = calls.flat_map(|method| {
        ["/v2/**", "/image/v2/**"].map(|path| json!({ "service": "image", "method": method, "path": path }))
    });
    let images_only = credential(owner, user, "images-only", Some(rules.collect())).await?;
    let mut clouds = BTreeMap::from([("images-only".to_owned(), images_only)]);
    if let Login::ApplicationCredential { id, .. } = &operator {
        let wrong = Login::ApplicationCredential {
            id: id.clone(),
            secret: secret()?,
        };
        clouds.insert("wrong-secret".to_owned(), wrong);
    }
    clouds.insert("openstack".to_owned(), operator);
    let nobody = Login::ApplicationCredential {
        id: secret()?[..32].to_owned(),
        secret: secret()?,
    };
    clouds.insert("no-such-credential".to_owned(), nobody);
    Ok(clouds)
}

/// What limits are called, and how wide these are.
fn resources(limits: Limits) -> [(&'static str, u64); 4] {
    let Limits {
        size_total,
        stage_total,
        count_total,
        count_uploading,
    } = limits;
    [
        ("image_size_total", size_total),
        ("image_stage_total", stage_total),
        ("image_count_total", count_total),
        ("image_count_uploading", count_uploading),
    ]
}

/// What every project may hold that has no limits of its own. Without these Glance refuses everything.
async fn limit_all(system: &Session<'_>, service: &str) -> Result<()> {
    let limits = resources(Limits::WIDE).map(|(name, limit)| {
        json!({ "service_id": service, "region_id": REGION, "resource_name": name, "default_limit": limit })
    });
    let limits = json!({ "registered_limits": limits });
    system.call(Method::POST, "/registered_limits", &limits).await?;
    Ok(())
}

/// Has a project hold no more than this of a service's; both by their ids.
pub(super) async fn limit(system: &Session<'_>, service: &str, project: &str, limits: Limits) -> Result<()> {
    let limits = resources(limits).map(|(name, limit)| {
        json!({
            "service_id": service, "region_id": REGION, "project_id": project,
            "resource_name": name, "resource_limit": limit,
        })
    });
    system
        .call(Method::POST, "/limits", &json!({ "limits": limits }))
        .await?;
    Ok(())
}
