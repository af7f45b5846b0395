//! How the registries are asked that somebody named for charts: what the command line, the environment and files say. Asks nobody.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use release::{
    http::{HttpError, Network, NetworkOptions, SecretString},
    pack::ChartRegistries,
    source::oci::Logins,
};

use crate::arguments::AskRegistries;

/// Why nobody can be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistriesError {
    /// A file that somebody named.
    #[error("{}: unable to read it", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file that does not have what it should.
    #[error("{}: is no file with logins for registries, as `docker login` and `helm registry login` write them", path.display())]
    Logins { path: PathBuf },
    /// No client for the network.
    #[error("failed to make ready for asking registries")]
    Network {
        #[source]
        source: HttpError,
    },
}

/// What may be asked; none where nothing was named.
pub(crate) fn read(arguments: &AskRegistries) -> Result<Option<ChartRegistries>, RegistriesError> {
    let AskRegistries {
        chart_registry,
        registry_config,
        ca_file,
        plain_http,
        allow_source_network,
        token_host,
    } = arguments;
    if chart_registry.is_empty() {
        return Ok(None);
    }
    let logins = match registry_config {
        Some(path) => logins(path, &content(path)?)?,
        None => usual_logins()?,
    };
    let network = Network::new(NetworkOptions {
        plain_http: *plain_http,
        networks: allow_source_network.clone(),
        ..NetworkOptions::default()
    });
    Ok(Some(ChartRegistries {
        network: network.map_err(|source| RegistriesError::Network { source })?,
        places: chart_registry.clone(),
        logins,
        certificates: ca_file.as_deref().map(content).transpose()?,
        plain_http: *plain_http,
        token_hosts: token_host.clone(),
    }))
}

/// What the file of Helm has, and for others that of Docker; as far as there are such files.
fn usual_logins() -> Result<Logins, RegistriesError> {
    let mut found = Logins::default();
    for path in [helm_file(), docker_file()].into_iter().flatten() {
        match content(&path) {
            Ok(text) => found = found.or(logins(&path, &text)?),
            Err(RegistriesError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn helm_file() -> Option<PathBuf> {
    let folder = || {
        let folder = variable("HELM_CONFIG_HOME");
        let shared = || variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")));
        folder.or_else(|| Some(shared()?.join("helm")))
    };
    variable("HELM_REGISTRY_CONFIG").or_else(|| Some(folder()?.join("registry/config.json")))
}

fn docker_file() -> Option<PathBuf> {
    let folder = variable("DOCKER_CONFIG").or_else(|| Some(variable("HOME")?.join(".docker")));
    Some(folder?.join("config.json"))
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn content(path: &Path) -> Result<Vec<u8>, RegistriesError> {
    fs::read(path).map_err(|source| RegistriesError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Without what a parser would say, which would repeat the text.
fn logins(path: &Path, content: &[u8]) -> Result<Logins, RegistriesError> {
    let text = SecretString::from(String::from_utf8_lossy(content).into_owned());
    Logins::parse(&text).ok_or_else(|| RegistriesError::Logins { path: path.to_owned() })
}
