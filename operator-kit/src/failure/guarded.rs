//! What is told of failures whose own words may quote a credential: a YAML parser shows the lines around a mistake, an authentication plugin
//! its output, a proxy its URL. Place and kind of the mistake are told, never what is there.

use std::error::Error;
use std::fmt::Debug;

use kube::client::AuthError;
use kube::config::{KubeconfigError, LoadDataError};

/// Words for a link of a chain that must not speak for itself, nor what it stems from.
pub(super) fn told(link: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = downcast::<KubeconfigError>(link) {
        return told_of_kubeconfig(error);
    }
    if let Some(error) = downcast::<AuthError>(link) {
        return Some(told_of_authentication(error).to_owned());
    }
    match downcast::<kube::Error>(link)? {
        kube::Error::ProxyProtocolUnsupported { .. } | kube::Error::ProxyProtocolDisabled { .. } => Some(
            "unable to use a proxy; take proxy-url out of the kubeconfig and HTTPS_PROXY out of the environment"
                .to_owned(),
        ),
        error => beneath(error),
    }
}

/// kube's errors repeat the words of what they stem from.
fn beneath(error: &kube::Error) -> Option<String> {
    let mut next = error.source();
    while let Some(link) = next {
        if downcast::<AuthError>(link).is_some() || downcast::<KubeconfigError>(link).is_some() {
            return told(link);
        }
        next = link.source();
    }
    None
}

/// What a link is, boxed or not.
pub(super) fn downcast<'a, T: Error + 'static>(link: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let boxed = || link.downcast_ref::<Box<T>>().map(Box::as_ref);
    link.downcast_ref::<T>().or_else(boxed)
}

fn told_of_kubeconfig(error: &KubeconfigError) -> Option<String> {
    let words = match error {
        KubeconfigError::Parse(error) => {
            let kind = kind_of(error.without_snippet());
            match error.location() {
                Some(place) => format!(
                    "unable to read the YAML at line {}, column {} ({kind})",
                    place.line(),
                    place.column()
                ),
                None => format!("unable to read the YAML ({kind})"),
            }
        }
        // Whoever calls names the file already.
        KubeconfigError::ReadConfig(error, _) => format!("unable to read the file: {error}"),
        KubeconfigError::ParseCertificates(_) => "the certificates are not PEM".to_owned(),
        KubeconfigError::LoadCertificateAuthority(LoadDataError::DecodeBase64(_)) => {
            not_base64("certificate-authority-data")
        }
        KubeconfigError::LoadClientCertificate(LoadDataError::DecodeBase64(_)) => not_base64("client-certificate-data"),
        KubeconfigError::LoadClientKey(LoadDataError::DecodeBase64(_)) => not_base64("client-key-data"),
        _ => return None,
    };
    Some(words)
}

fn not_base64(field: &str) -> String {
    format!("{field} is not base64")
}

/// The name of an error's variant, which is all of its derived `Debug` that holds nothing of the input.
fn kind_of(error: &impl Debug) -> String {
    let text = format!("{error:?}");
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}

fn told_of_authentication(error: &AuthError) -> &'static str {
    match error {
        AuthError::AuthExecStart(_) | AuthError::MissingCommand => {
            "unable to start the authentication plugin of the kubeconfig; check the command of its user"
        }
        AuthError::AuthExecRun { .. } => {
            "the authentication plugin of the kubeconfig failed; run its command by hand to see why"
        }
        AuthError::AuthExecParse(_)
        | AuthError::ExecPluginFailed
        | AuthError::AuthExecSerialize(_)
        | AuthError::AuthExec(_)
        | AuthError::ParseTokenKey(_)
        | AuthError::MalformedTokenExpirationDate(_)
        | AuthError::UnrefreshableTokenResponse => {
            "unable to read the answer of the authentication plugin of the kubeconfig"
        }
        AuthError::ReadTokenFile(..) => "unable to read the token file",
        AuthError::InvalidBasicAuth(_) | AuthError::InvalidBearerToken(_) => {
            "the credentials of the kubeconfig hold characters that cannot be sent"
        }
        _ => "unable to authenticate",
    }
}

#[cfg(test)]
mod tests {
    use kube::config::Kubeconfig;

    use super::super::chain;
    use super::*;

    const SECRET: &str = "ey-very-secret";

    #[test]
    fn a_kubeconfig_that_cannot_be_read_is_located_and_not_quoted() {
        let mistakes = [
            format!("users:\n- name: u\n  user:\n    token: {SECRET}\n    token: {SECRET}\n"),
            format!("users:\n- name: u\n  user:\n    token: {SECRET}: oops\n"),
            format!("users:\n- name: u\n  user: {SECRET}\n"),
            format!("users:\n- name: u\n  user:\n    token: {SECRET}\n   x: [\n"),
        ];
        for mistake in mistakes {
            let error = Kubeconfig::from_yaml(&mistake).unwrap_err();
            let wrapped = kube::Error::InferKubeconfig(Kubeconfig::from_yaml(&mistake).unwrap_err());
            for words in [chain(&error), chain(&wrapped)] {
                assert!(!words.contains("secret"), "{words}");
                assert!(words.contains(" at line "), "{words}");
            }
        }
    }

    #[test]
    fn a_kubeconfig_that_is_missing_is_not_named_again() {
        let error = Kubeconfig::read_from("/nowhere/config").unwrap_err();
        assert_eq!(
            chain(&error),
            "unable to read the file: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn what_an_authentication_plugin_said_is_not_repeated() {
        let said = || AuthError::AuthExec(format!("no token in {SECRET}"));
        for error in [kube::Error::Auth(said()), kube::Error::Service(Box::new(said()))] {
            let words = chain(&error);
            assert_eq!(
                words,
                "unable to read the answer of the authentication plugin of the kubeconfig"
            );
        }
    }

    #[test]
    fn a_proxy_is_not_told_with_its_password() {
        let proxy_url = Box::new(format!("http://me:{SECRET}@proxy.example.org").parse().unwrap());
        let words = chain(&kube::Error::ProxyProtocolUnsupported { proxy_url });
        assert!(words.contains("proxy") && !words.contains(SECRET), "{words}");
    }
}
