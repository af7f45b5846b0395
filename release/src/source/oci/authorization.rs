//! Telling a registry who asks: as little as it wants to know, and nobody but itself and its own server for tokens.
//!
//! The first request tells nothing. When it is refused the registry says what it wants: name and password, or a token that another server
//! gives. That server is one that the registry names, so it is treated as what a stranger says: the address obeys the network's policy, TLS
//! is kept, and credentials go there only if it is of the registry's own domain or was named by the user. A token is asked for the right to
//! pull from this repository and for nothing else, whatever the registry proposes, and is used until it expires.

use std::time::Duration;

use serde::Deserialize;
use tokio::{sync::Mutex, time::Instant};

use super::{OciError, Repository, challenge, challenge::Challenge};
use crate::http::{Client, Credentials, HeaderMap, HttpError, Place, Request, Response, SecretString, StatusCode, Url};

/// Most bytes of an answer with a token. Real tokens have some two kilobytes.
const MAX_TOKEN_BYTES: usize = 64 << 10;
/// Longest address of a server for tokens.
const MAX_REALM: usize = 2048;
/// How long a token holds that does not say so: as the specification of tokens has it.
const USUAL_LIFE: Duration = Duration::from_mins(1);
/// No token is used for longer, whatever it says of itself.
pub(super) const LONGEST_LIFE: Duration = Duration::from_hours(1);
/// A token that is about to expire could do so on its way.
const MARGIN: Duration = Duration::from_secs(5);

/// What is known of how to ask one registry, shared by all who ask.
#[derive(Debug)]
pub(super) struct Authorization {
    repository: Repository,
    anonymous: Client,
    credentials: Option<Credentials>,
    token_hosts: Vec<String>,
    state: Mutex<Access>,
}

/// A way to ask the registry.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// Asks with what the registry wanted to know.
    pub(super) client: Client,
    name: Name,
    /// Which attempt this is; so that what failed for many is renewed once.
    serial: u64,
}

/// What the registry is told.
#[derive(Clone, Copy, Debug)]
enum Name {
    Nothing,
    /// What the user gave, as it is.
    Given,
    /// A token of the registry's server for tokens.
    Token {
        until: Instant,
    },
}

/// The answer of a server for tokens; old ones call the token by its second name.
#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<serde_json::Number>,
}

impl Authorization {
    pub(super) fn new(
        repository: Repository,
        anonymous: Client,
        credentials: Option<Credentials>,
        token_hosts: Vec<String>,
    ) -> Self {
        let state = Mutex::new(Access {
            client: anonymous.clone(),
            name: Name::Nothing,
            serial: 0,
        });
        Self {
            repository,
            anonymous,
            credentials,
            token_hosts,
            state,
        }
    }

    pub(super) fn without_secrets(&self, words: &str) -> String {
        self.anonymous.without_secrets(words)
    }

    /// How to ask now. Waits while somebody renews it.
    pub(super) async fn access(&self) -> Access {
        let mut state = self.state.lock().await;
        if matches!(state.name, Name::Token { until } if until <= Instant::now()) {
            *state = Access {
                client: self.anonymous.clone(),
                name: Name::Nothing,
                serial: state.serial + 1,
            };
        }
        state.clone()
    }

    /// How to ask after the registry has refused `refused` with these headers; an error if it would be in vain.
    pub(super) async fn renewed(&self, refused: &Access, headers: &HeaderMap) -> Result<Access, OciError> {
        let mut state = self.state.lock().await;
        if state.serial != refused.serial {
            return Ok(state.clone());
        }
        if let Name::Given = state.name {
            return Err(self.refused());
        }
        let challenge = challenge::read(headers).ok_or_else(|| OciError::Challenge {
            repository: self.repository.clone(),
        })?;
        let (credentials, name) = self.answer(challenge).await?;
        let home = self.anonymous.home().clone();
        let client = self
            .anonymous
            .at(home, Some(&credentials))
            .map_err(|source| self.token_request(source))?;
        *state = Access {
            client,
            name,
            serial: state.serial + 1,
        };
        Ok(state.clone())
    }

    /// The registry refused all that can be told.
    pub(super) fn refused(&self) -> OciError {
        let repository = self.repository.clone();
        match self.credentials {
            None => OciError::Unauthenticated { repository },
            Some(_) => OciError::CredentialsRefused { repository },
        }
    }

    async fn answer(&self, challenge: Challenge) -> Result<(Credentials, Name), OciError> {
        let repository = || self.repository.clone();
        match (challenge, &self.credentials) {
            (Challenge::Basic, None) => Err(self.refused()),
            (Challenge::Basic, Some(Credentials::Bearer(_))) => Err(OciError::PasswordWanted {
                repository: repository(),
            }),
            (Challenge::Basic, Some(given @ Credentials::Basic { .. }))
            | (Challenge::Bearer { .. }, Some(given @ Credentials::Bearer(_))) => Ok((given.clone(), Name::Given)),
            (Challenge::Bearer { realm, service }, given) => {
                let realm = self.realm(&realm, service.as_deref())?;
                if given.is_some() && !is_own(self.anonymous.home(), &self.token_hosts, &realm) {
                    return Err(OciError::ForeignRealm {
                        repository: repository(),
                        realm: Place::origin(&realm),
                    });
                }
                self.token(realm, given.as_ref()).await
            }
        }
    }

    /// Asks for a token, in nobody's name where there are no credentials: many registries want a token even of those who may be anybody.
    async fn token(&self, realm: Url, credentials: Option<&Credentials>) -> Result<(Credentials, Name), OciError> {
        let asked = Instant::now();
        let place = Place::origin(&realm);
        let client = self
            .anonymous
            .at(realm.clone(), credentials)
            .map_err(|source| self.token_request(source))?;
        let response = client
            .send(Request::get(realm))
            .await
            .map_err(|source| self.token_request(source))?;
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(self.refused());
        }
        let (token, life) = self.read(response).await?.ok_or_else(|| OciError::Token {
            repository: self.repository.clone(),
            realm: place,
            status,
        })?;
        let until = asked + life.saturating_sub(MARGIN.min(life / 2));
        Ok((Credentials::Bearer(token), Name::Token { until }))
    }

    /// The token and how long it holds, if the answer is a good one.
    async fn read(&self, response: Response) -> Result<Option<(SecretString, Duration)>, OciError> {
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            let wait = response.retry_after();
            let repository = self.repository.clone();
            return Err(OciError::RateLimited { repository, wait });
        }
        if response.status() != StatusCode::OK {
            return Ok(None);
        }
        let bytes = response
            .bytes(MAX_TOKEN_BYTES)
            .await
            .map_err(|source| self.token_request(source))?;
        Ok(token_in(&bytes))
    }

    /// The address of a token of the server for tokens. What the network does not allow it refuses when the address is used.
    fn realm(&self, text: &str, service: Option<&str>) -> Result<Url, OciError> {
        realm_of(self.anonymous.home(), self.repository.name(), text, service).map_err(|problem| OciError::Realm {
            repository: self.repository.clone(),
            problem,
        })
    }

    fn token_request(&self, source: HttpError) -> OciError {
        OciError::TokenRequest {
            repository: self.repository.clone(),
            source: Box::new(source),
        }
    }
}

/// The token and how long it holds, if that is what a server for tokens has answered. Its errors would quote what it says, which can be the
/// token.
pub(super) fn token_in(answer: &[u8]) -> Option<(SecretString, Duration)> {
    let answer: TokenAnswer = serde_json::from_slice(answer).ok()?;
    let token = answer
        .token
        .or(answer.access_token)
        .filter(|token| !token.trim().is_empty())?;
    let told = answer.expires_in.as_ref().and_then(serde_json::Number::as_u64);
    let life = told.map_or(USUAL_LIFE, Duration::from_secs);
    Some((SecretString::from(token), life.min(LONGEST_LIFE)))
}

/// The address of a token for the right to pull from a repository, of a server that the registry has named in this text; or what is wrong
/// with it.
pub(super) fn realm_of(home: &Url, repository: &str, text: &str, service: Option<&str>) -> Result<Url, &'static str> {
    if text.len() > MAX_REALM {
        return Err("is longer than addresses are");
    }
    let mut realm = Url::parse(text).map_err(|_| "is no URL")?;
    match (home.scheme(), realm.scheme()) {
        (_, "https") | ("http", "http") => {}
        (_, "http") => return Err("is not reached by TLS, though the registry is"),
        _ => return Err("is not one of the web"),
    }
    realm.set_fragment(None);
    let scope = format!("repository:{repository}:pull");
    realm
        .query_pairs_mut()
        .extend_pairs(service.map(|service| ("service", service)))
        .append_pair("scope", &scope);
    Ok(realm)
}

/// Whether credentials for the registry may be sent there: to its host, to its domain and all below (`registry.example.com` uses
/// `auth.example.com`, `registry.gitlab.com` uses `gitlab.com`), or to a host that the user named.
pub(super) fn is_own(home: &Url, token_hosts: &[String], realm: &Url) -> bool {
    let Some(host) = realm.host_str() else { return false };
    let is_named = token_hosts.iter().any(|named| named.eq_ignore_ascii_case(host));
    host == home.host_str().unwrap_or_default() || is_named || domain(home).is_some_and(|domain| is_below(host, domain))
}

/// The domain of a host: what stands behind its first label, if that is more than a label of the whole world. Addresses have none.
fn domain(url: &Url) -> Option<&str> {
    let (_, domain) = url.domain()?.split_once('.')?;
    domain.contains('.').then_some(domain)
}

fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
