//! A token, for as long as it is good, and what came with it: the project, and where the image service is. Many who need one at once log in
//! once. It decides when to log in anew, and sends nothing but logins.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use provider_plugin::{CloudError, ErrorClass};
use secrecy::SecretString;
use serde::Deserialize;
use tokio::{sync::Mutex, time::Instant};
use url::Url;

use crate::{
    auth::Auth,
    catalogue::{CatalogueError, Service, image_url, version_2},
    clouds::Cloud,
    transport::{Answer, Call, Transport},
};

/// What a login is for, to read after "unable to".
const LOG_IN: &str = "log in to the cloud";
/// A token with less than this left is not used for anything new.
const MARGIN: Duration = Duration::from_mins(10);

/// How long a token has to be good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// For one call: ten minutes, or half of its life where that is short.
    Usual,
    /// For a long body: this long. A token that never is good for so long is fresh.
    Fresh(Duration),
}

/// A token and what came with it.
pub struct Token {
    /// The token.
    pub value: SecretString,
    /// The project that it is for; none for tokens of the cloud itself.
    pub project: Option<String>,
    image: Result<Url, CatalogueError>,
    ends: Instant,
    life: Duration,
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Token")
            .field("project", &self.project)
            .field("image", &self.image)
            .finish_non_exhaustive()
    }
}

impl Token {
    fn is_good(&self, need: Need) -> bool {
        let margin = match need {
            Need::Usual => MARGIN.min(self.life / 2),
            Need::Fresh(margin) => margin,
        };
        Instant::now() + margin < self.ends
    }
}

/// Who we are in one cloud.
#[derive(Debug)]
pub struct Session {
    cloud: Cloud,
    transport: Transport,
    token: Mutex<Option<Arc<Token>>>,
}

impl Session {
    /// Nobody is asked yet.
    pub fn new(cloud: Cloud, transport: Transport) -> Self {
        Self {
            cloud,
            transport,
            token: Mutex::default(),
        }
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// What nobody else may read of what the cloud was told, beside tokens.
    pub(crate) fn secret(&self) -> &SecretString {
        self.cloud.auth.secret()
    }

    /// A token that is good for so long; one login at a time.
    pub async fn token(&self, need: Need) -> Result<Arc<Token>, CloudError> {
        let mut kept = self.token.lock().await;
        match kept.as_ref().filter(|token| token.is_good(need)) {
            Some(token) => Ok(Arc::clone(token)),
            None => self.renew_into(&mut kept).await,
        }
    }

    /// Another token than this one, which the cloud refused.
    pub(crate) async fn renewed(&self, refused: &Arc<Token>) -> Result<Arc<Token>, CloudError> {
        let mut kept = self.token.lock().await;
        match kept.as_ref().filter(|token| !Arc::ptr_eq(token, refused)) {
            // Somebody else met the same and was faster.
            Some(token) => Ok(Arc::clone(token)),
            None => self.renew_into(&mut kept).await,
        }
    }

    async fn renew_into(&self, kept: &mut Option<Arc<Token>>) -> Result<Arc<Token>, CloudError> {
        *kept = None;
        let token = Arc::new(self.log_in().await?);
        *kept = Some(Arc::clone(&token));
        Ok(token)
    }

    /// Where the image service is: the URL of its version 2, without a slash at its end.
    pub async fn image_endpoint(&self) -> Result<Url, CloudError> {
        self.endpoint_of(&*self.token(Need::Usual).await?)
    }

    pub(crate) fn endpoint_of(&self, token: &Token) -> Result<Url, CloudError> {
        if let Some(url) = &self.cloud.image_endpoint {
            return Ok(version_2(url));
        }
        token.image.clone().map_err(|error| {
            let words = error.to_string();
            CloudError::new(ErrorClass::Invalid, "find the image service", words).because(error)
        })
    }

    /// The id of our project.
    pub async fn project(&self) -> Result<String, CloudError> {
        let token = self.token(Need::Usual).await?;
        token.project.clone().ok_or_else(|| {
            let words = "the credentials are not for a project, and images are in projects; name one in clouds.yaml";
            CloudError::new(ErrorClass::Invalid, "find our project", words)
        })
    }

    async fn log_in(&self) -> Result<Token, CloudError> {
        let mut url = self.cloud.auth_url.clone();
        url.set_path(&format!("{}/auth/tokens", url.path()));
        let asked = Instant::now();
        let body = Bytes::from(self.cloud.auth.body().to_string());
        let call = Call {
            operation: LOG_IN,
            method: Method::POST,
            url,
            token: None,
            body: Some(("application/json", body)),
        };
        // A login that was lost did nothing.
        let answer = self.transport.call(call).await.map_err(|error| match error.class {
            ErrorClass::Unknown => CloudError {
                class: ErrorClass::Unavailable,
                ..error
            },
            _ => error,
        })?;
        if !answer.status.is_success() {
            return Err(self.refused(&answer));
        }
        self.read(&answer, asked).ok_or_else(|| {
            let words = "what answers at auth_url is not Keystone in version 3; correct auth_url in clouds.yaml";
            CloudError::new(ErrorClass::Invalid, LOG_IN, words)
        })
    }

    fn refused(&self, answer: &Answer) -> CloudError {
        let error = answer.error(LOG_IN, &[self.secret()]);
        let is_of_credential = matches!(self.cloud.auth, Auth::ApplicationCredential { .. });
        // Keystone does not find a credential that was deleted. A page of something else that is found there is no answer of Keystone's.
        let is_credentials = match error.class {
            ErrorClass::Credentials | ErrorClass::Permission => true,
            ErrorClass::Gone => is_of_credential && answer.body.starts_with(b"{"),
            _ => false,
        };
        match error.class {
            _ if is_credentials => CloudError {
                class: ErrorClass::Credentials,
                ..error
            },
            ErrorClass::Gone => CloudError {
                message: format!("{}; is auth_url in clouds.yaml right?", error.message),
                class: ErrorClass::Invalid,
                ..error
            },
            _ => error,
        }
    }

    fn read(&self, answer: &Answer, asked: Instant) -> Option<Token> {
        let value = answer.headers.get("x-subject-token")?.to_str().ok()?;
        let Said { token } = serde_json::from_slice(&answer.body).ok()?;
        // By the cloud's own clock, and from before it was asked: clocks that differ do no harm.
        let begin = token.issued_at.or_else(|| crate::answer::date(&answer.headers));
        let life = token.expires_at.duration_since(begin.unwrap_or_else(Timestamp::now));
        let life = Duration::try_from(life).unwrap_or_default();
        Some(Token {
            value: SecretString::from(value),
            project: token.project.map(|project| project.id),
            image: image_url(&token.catalog, self.cloud.region.as_deref(), self.cloud.interface),
            ends: asked + life,
            life,
        })
    }
}

#[derive(Deserialize)]
struct Said {
    token: SaidOfToken,
}

#[derive(Deserialize)]
struct SaidOfToken {
    expires_at: Timestamp,
    issued_at: Option<Timestamp>,
    project: Option<SaidOfProject>,
    #[serde(default)]
    catalog: Vec<Service>,
}

#[derive(Deserialize)]
struct SaidOfProject {
    id: String,
}
