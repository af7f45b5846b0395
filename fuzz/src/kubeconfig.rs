//! What must hold of a kubeconfig, which is in a Secret that a tenant may write: it leads to one server by TLS, with credentials that stand in it.

use operator_kit::workload::addresses::Addresses;
use operator_kit::workload::kubeconfig::{Access, KUBECONFIG_LIMIT};

/// Whether it was accepted.
pub(crate) fn kubeconfig(input: &[u8]) -> bool {
    let access = match Access::parse(input, Addresses::default()) {
        Ok(access) => access,
        Err(error) => {
            assert!(!error.to_string().trim().is_empty(), "{error:?} has no words");
            return false;
        }
    };
    assert!(input.len() <= KUBECONFIG_LIMIT);
    let server = access.server();
    assert_eq!(server.scheme_str(), Some("https"));
    let authority = server.authority().expect("a server has a host");
    assert!(
        !authority.as_str().contains('@') && server.query().is_none(),
        "{server}"
    );
    let config = access.config();
    assert!(config.proxy_url.is_none() && config.root_cert_file.is_none() && !config.accept_invalid_certs);
    assert!(config.root_cert.is_some_and(|authorities| !authorities.is_empty()));
    let user = config.auth_info;
    assert!(user.exec.is_none() && user.auth_provider.is_none() && user.other.is_empty());
    assert!(user.token_file.is_none() && user.client_certificate.is_none() && user.client_key.is_none());
    assert!(user.username.is_none() && user.password.is_none() && user.impersonate.is_none());
    assert!(user.token.is_some() != user.client_key_data.is_some());
    let again = Access::parse(input, Addresses::default());
    assert!(again.is_ok_and(|again| again.is_same(&access)));
    assert_eq!(format!("{access:?}"), "Access(..)");
    true
}
