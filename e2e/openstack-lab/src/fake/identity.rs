//! Keystone: who may log in, what tokens are worth, and the catalogue. It knows nothing of images.

use std::{collections::BTreeMap, sync::Arc};

use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    REGION, Shared,
    answers::{Answer, Refusal, json_answer, ok},
    versions,
};
use crate::Login;

/// Longest body of a request that is no image.
pub(super) const LONGEST_BODY: usize = 1024 * 1024;

/// What somebody may do in his project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Admin,
    Member,
    Reader,
}

/// A user with the one project that he has a role in.
struct Account {
    user: &'static str,
    project: &'static str,
    role: Role,
}

const ACCOUNTS: [Account; 5] = [
    Account::new("admin", "admin", Role::Admin),
    Account::new("demo", "demo", Role::Member),
    Account::new("other", "other", Role::Member),
    Account::new("tiny", "tiny", Role::Member),
    Account::new("reader", "demo", Role::Reader),
];

/// The application credentials, all of demo's.
const CREDENTIALS: [&str; 2] = ["operator", "images-only"];

impl Account {
    const fn new(user: &'static str, project: &'static str, role: Role) -> Self {
        Self { user, project, role }
    }

    fn password(&self) -> String {
        format!("password-of-{}-{}", self.user, &id_of(self.user)[..8])
    }
}

/// An id as Keystone gives it, which follows from a name.
pub(super) fn id_of(name: &str) -> String {
    hex::encode(&Sha256::digest(name.as_bytes())[..16])
}

fn secret_of(credential: &str) -> String {
    format!(
        "secret-of-{credential}-{}",
        &id_of(&format!("secret {credential}"))[..8]
    )
}

/// The id of a project.
pub(super) fn project_id(project: &str) -> String {
    id_of(&format!("project {project}"))
}

/// How to log in, by the name of the cloud.
pub(super) fn clouds() -> BTreeMap<String, Login> {
    let by_password = ACCOUNTS.iter().map(|account| {
        let login = Login::Password {
            user: account.user.to_owned(),
            password: account.password(),
            project: account.project.to_owned(),
        };
        (account.user.to_owned(), login)
    });
    let by_credential = |cloud: &str, id: String, secret: String| {
        let login = Login::ApplicationCredential { id, secret };
        (cloud.to_owned(), login)
    };
    let operator = || (id_of("operator"), secret_of("operator"));
    by_password
        .chain([
            by_credential("openstack", operator().0, operator().1),
            by_credential("images-only", id_of("images-only"), secret_of("images-only")),
            by_credential("wrong-secret", operator().0, "a-wrong-secret".to_owned()),
            by_credential("no-such-credential", id_of("nobody"), "no-secret".to_owned()),
        ])
        .collect()
}

/// What a token is worth.
#[derive(Clone, Debug)]
pub(super) struct Session {
    user: &'static str,
    /// None: of no project, or of the system.
    pub(super) project: Option<&'static str>,
    pub(super) role: Role,
    expires: Timestamp,
}

/// What Keystone says to a request.
pub(super) async fn answer(shared: &Arc<Shared>, target: &str, request: Request<Incoming>) -> Answer {
    let path = target.split('?').next().unwrap_or_default().trim_end_matches('/');
    match (request.method(), path) {
        (&Method::GET, "") => json_answer(StatusCode::MULTIPLE_CHOICES, &versions::identity(shared)),
        (&Method::GET, "/v3") => ok(&versions::identity_v3(shared)),
        (&Method::POST, "/v3/auth/tokens") => {
            let body = Limited::new(request.into_body(), LONGEST_BODY).collect().await;
            let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            log_in(shared, &body).unwrap_or_else(|refusal| refusal.error())
        }
        _ => Refusal::new(StatusCode::NOT_FOUND, "The resource could not be found.").error(),
    }
}

fn unauthorized() -> Refusal {
    Refusal::new(
        StatusCode::UNAUTHORIZED,
        "The request you have made requires authentication.",
    )
}

fn log_in(shared: &Shared, body: &Value) -> Result<Answer, Refusal> {
    let identity = &body["auth"]["identity"];
    let scope = body["auth"].get("scope");
    let method = identity["methods"][0].as_str();
    let (user, scoped) = match method {
        Some("password") => (by_password(&identity["password"]["user"])?, scope),
        Some("application_credential") if scope.is_none() => {
            let credential = &identity["application_credential"];
            (by_credential(shared, credential)?, None)
        }
        Some("token") => {
            let token = identity["token"]["id"].as_str().unwrap_or_default();
            (session_of(shared, token).ok_or_else(unauthorized)?, scope)
        }
        _ => {
            return Err(Refusal::bad(
                "Expecting to find a method of identity, and no scope beside a credential.",
            ));
        }
    };
    let session = match scoped {
        Some(scope) => in_scope(&user, scope)?,
        None if method == Some("password") => Session { project: None, ..user },
        None => user,
    };
    let ttl = SignedDuration::try_from(shared.options.token_ttl).unwrap_or(SignedDuration::MAX);
    let expires = Timestamp::now().saturating_add(ttl).unwrap_or(Timestamp::MAX);
    let session = Session { expires, ..session };
    let body = described(shared, &session, method.unwrap_or_default());
    let token = shared.state().remember(session);
    let mut answer = json_answer(StatusCode::CREATED, &body);
    if let Ok(token) = HeaderValue::from_str(&token) {
        answer.headers_mut().insert("x-subject-token", token);
    }
    Ok(answer)
}

/// An account without a token.
fn fresh(account: &'static Account) -> Session {
    Session {
        user: account.user,
        project: Some(account.project),
        role: account.role,
        expires: Timestamp::MIN,
    }
}

fn by_password(user: &Value) -> Result<Session, Refusal> {
    let is_default = |domain: &Value| domain["name"] == "Default" || domain["id"] == "default";
    let account = ACCOUNTS.iter().find(|account| match user["id"].as_str() {
        Some(id) => id == id_of(account.user),
        None => user["name"] == account.user && is_default(&user["domain"]),
    });
    let account = account.filter(|account| user["password"] == account.password().as_str());
    account.map(fresh).ok_or_else(unauthorized)
}

fn by_credential(shared: &Shared, credential: &Value) -> Result<Session, Refusal> {
    let is_meant = |name: &&&str| match credential["id"].as_str() {
        Some(id) => id == id_of(name),
        None => credential["name"] == **name && credential["user"]["name"] == "demo",
    };
    let known = CREDENTIALS.iter().find(is_meant);
    let known = known.filter(|name| !shared.state().revoked.contains(**name));
    let Some(name) = known else {
        let id = credential["id"].as_str().unwrap_or("of this name");
        let words = format!("Could not find Application Credential: {id}.");
        return Err(Refusal::new(StatusCode::NOT_FOUND, words));
    };
    let demo = ACCOUNTS.iter().find(|account| account.user == "demo");
    let demo = demo.filter(|_| credential["secret"] == secret_of(name).as_str());
    demo.map(fresh).ok_or_else(unauthorized)
}

fn in_scope(session: &Session, scope: &Value) -> Result<Session, Refusal> {
    if scope["system"]["all"] == true {
        let is_admin = session.role == Role::Admin;
        return is_admin
            .then_some(Session {
                project: None,
                ..session.clone()
            })
            .ok_or_else(unauthorized);
    }
    let asked = &scope["project"];
    let projects = ACCOUNTS.iter().filter(|account| account.user == session.user);
    let mut projects = projects.map(|account| account.project);
    let project = projects.find(|project| match asked["id"].as_str() {
        Some(id) => id == project_id(project),
        None => asked["name"] == *project,
    });
    let project = project.ok_or_else(unauthorized)?;
    Ok(Session {
        project: Some(project),
        ..session.clone()
    })
}

fn described(shared: &Shared, session: &Session, method: &str) -> Value {
    let role = match session.role {
        Role::Admin => "admin",
        Role::Member => "member",
        Role::Reader => "reader",
    };
    let mut token = json!({
        "methods": [method],
        "user": { "id": id_of(session.user), "name": session.user, "domain": { "id": "default", "name": "Default" } },
        "expires_at": session.expires.to_string(),
        "issued_at": Timestamp::now().to_string(),
    });
    if let Some(project) = session.project {
        token["project"] = json!({
            "id": project_id(project), "name": project, "domain": { "id": "default", "name": "Default" },
        });
        token["roles"] = json!([{ "id": id_of(role), "name": role }]);
        token["catalog"] = catalog(shared);
    }
    json!({ "token": token })
}

fn catalog(shared: &Shared) -> Value {
    let service = |kind: &str, name: &str, url: &str| {
        let endpoints = ["public", "internal", "admin"].map(|interface| {
            json!({
                "id": id_of(&format!("{name} {interface}")), "interface": interface,
                "region": REGION, "region_id": REGION, "url": url,
            })
        });
        json!({ "type": kind, "name": name, "id": id_of(name), "endpoints": endpoints })
    };
    json!([
        service("identity", "keystone", &shared.keystone),
        service("image", "glance", &shared.glance),
    ])
}

/// What a token is worth now.
pub(super) fn session_of(shared: &Shared, token: &str) -> Option<Session> {
    let session = shared.state().sessions.get(token).cloned()?;
    (session.expires > Timestamp::now()).then_some(session)
}

/// Who asks the image service, and for which project.
pub(super) fn who(shared: &Shared, headers: &HeaderMap) -> Result<(Session, &'static str), Refusal> {
    let token = headers.get("x-auth-token").and_then(|token| token.to_str().ok());
    let session = token.and_then(|token| session_of(shared, token));
    let project = session.as_ref().and_then(|session| session.project);
    session.zip(project).ok_or_else(|| {
        Refusal::new(
            StatusCode::UNAUTHORIZED,
            "This server could not verify that you are authorized to access the document you requested. Either you supplied the wrong \
             credentials (e.g., bad password), or your browser does not understand how to supply the credentials required.",
        )
    })
}
