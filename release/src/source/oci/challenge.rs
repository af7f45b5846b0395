//! What a registry that refuses a request wants to see: `WWW-Authenticate`, read without trust. Answers nothing.

use http_auth::{ChallengeRef, parser::ChallengeParser};

use crate::http::{HeaderMap, header::WWW_AUTHENTICATE};

/// Most bytes of one header, and headers of one answer, that are looked at.
const MAX_HEADER: usize = 4096;
const MAX_HEADERS: usize = 8;

/// How the registry wants to be told who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// By name and password in every request.
    Basic,
    /// By a token, which another server gives to who tells it name and password.
    Bearer {
        /// The address of that server, as the registry wrote it.
        realm: String,
        /// What the registry calls itself towards it.
        service: Option<String>,
    },
}

/// What the registry wants; tokens where there is a choice, because they live shorter than passwords. What it says of the scope is not
/// read: we know what we want, and that we only want to read it.
pub(super) fn read(headers: &HeaderMap) -> Option<Challenge> {
    let texts = headers.get_all(WWW_AUTHENTICATE).iter().take(MAX_HEADERS);
    let texts = texts
        .filter(|value| value.len() <= MAX_HEADER)
        .filter_map(|value| value.to_str().ok());
    // What stands before a mistake counts.
    let challenges = texts.flat_map(|text| ChallengeParser::new(text).map_while(Result::ok));
    let mut basic = None;
    for challenge in challenges {
        if challenge.scheme.eq_ignore_ascii_case("bearer")
            && let Some(realm) = parameter(&challenge, "realm")
        {
            let service = parameter(&challenge, "service");
            return Some(Challenge::Bearer { realm, service });
        }
        if challenge.scheme.eq_ignore_ascii_case("basic") {
            basic = Some(Challenge::Basic);
        }
    }
    basic
}

fn parameter(challenge: &ChallengeRef<'_>, name: &str) -> Option<String> {
    let mut parameters = challenge.params.iter();
    let (_, value) = parameters.find(|(found, _)| found.eq_ignore_ascii_case(name))?;
    Some(value.to_unescaped())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(texts: &[&str]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for text in texts {
            headers.append(WWW_AUTHENTICATE, text.parse().unwrap());
        }
        read(&headers)
    }

    fn bearer(realm: &str, service: Option<&str>) -> Challenge {
        Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
        }
    }

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let docker =
            r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull""#;
        let token = Some(bearer("https://auth.docker.io/token", Some("registry.docker.io")));
        assert_eq!(read_all(&[docker]), token);
        assert_eq!(read_all(&["Basic realm=\"Registry Realm\""]), Some(Challenge::Basic));
        assert_eq!(read_all(&["Basic realm=\"a\"", docker]), token);
        assert_eq!(read_all(&[&format!("Basic realm=\"a\", {docker}")]), token);
        assert_eq!(
            read_all(&["bearer REALM=\"https://a\""]),
            Some(bearer("https://a", None))
        );
    }

    #[test]
    fn challenges_that_nobody_can_answer_are_none() {
        assert_eq!(read_all(&[]), None);
        assert_eq!(read_all(&["Negotiate"]), None);
        assert_eq!(read_all(&["Bearer service=\"a\""]), None);
        assert_eq!(read_all(&["Bearer realm=\"https://a"]), None);
        let long = format!("Bearer realm=\"https://a/{}\"", "a".repeat(MAX_HEADER));
        assert_eq!(read_all(&[&long]), None);
        let many = ["Negotiate"; MAX_HEADERS].into_iter().chain(["Basic realm=\"a\""]);
        assert_eq!(read_all(&many.collect::<Vec<_>>()), None);
    }
}
