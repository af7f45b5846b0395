//! The catalogue that comes with a token: where the image service is. Pure.

use serde::Deserialize;
use thiserror::Error;
use url::Url;

/// Which of the endpoints of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    /// For everybody.
    #[default]
    Public,
    /// For machines inside of the cloud.
    Internal,
    /// For its operators.
    Admin,
    /// Whatever else a cloud may have.
    #[serde(other)]
    Other,
}

/// A service of the catalogue.
#[derive(Clone, Debug, Deserialize)]
pub struct Service {
    /// What it does: `image`, `identity`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is.
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
}

/// Where a service is.
#[derive(Clone, Debug, Deserialize)]
pub struct Endpoint {
    /// For whom.
    pub interface: Interface,
    /// In which region.
    pub region_id: Option<String>,
    /// The same as old versions name it; those between say both.
    pub region: Option<String>,
    /// The URL, as the operators of the cloud wrote it.
    pub url: String,
}

impl Endpoint {
    fn region(&self) -> Option<&str> {
        self.region_id.as_deref().or(self.region.as_deref())
    }
}

/// Why the catalogue does not say where the image service is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CatalogueError {
    /// No such service.
    #[error("the catalogue of this cloud has no image service for this project")]
    FindService,
    /// None in the region.
    #[error("the image service is not in the region {region:?}; it is in {}; correct region_name in clouds.yaml", .known.join(", "))]
    FindRegion {
        /// What was looked for.
        region: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Several regions, and none was named.
    #[error("the image service is in several regions: {}; choose one by region_name in clouds.yaml", .known.join(", "))]
    ChooseRegion {
        /// What there is.
        known: Vec<String>,
    },
    /// None that is reached from outside.
    #[error("the image service has neither an endpoint of the wanted interface nor a public one")]
    FindInterface,
    /// No URL.
    #[error("the URL of the image service in the catalogue cannot be used; set image_endpoint_override in clouds.yaml")]
    ParseUrl,
}

/// The URL of version 2 of the image service, without a slash at its end. The wanted interface is preferred; the public one will do.
pub fn image_url(catalogue: &[Service], region: Option<&str>, interface: Interface) -> Result<Url, CatalogueError> {
    let services = catalogue.iter().filter(|service| service.kind == "image");
    let endpoints: Vec<&Endpoint> = services.flat_map(|service| &service.endpoints).collect();
    let mut known: Vec<String> = endpoints
        .iter()
        .filter_map(|endpoint| Some(endpoint.region()?.to_owned()))
        .collect();
    known.sort();
    known.dedup();
    if endpoints.is_empty() {
        return Err(CatalogueError::FindService);
    }
    let here: Vec<&Endpoint> = match region {
        Some(region) => {
            let is_here = |endpoint: &&&Endpoint| endpoint.region() == Some(region);
            endpoints.iter().filter(is_here).copied().collect()
        }
        None if known.len() > 1 => return Err(CatalogueError::ChooseRegion { known }),
        None => endpoints,
    };
    if let (true, Some(region)) = (here.is_empty(), region) {
        let region = region.to_owned();
        return Err(CatalogueError::FindRegion { region, known });
    }
    let of = |wanted: Interface| here.iter().find(|endpoint| endpoint.interface == wanted);
    let endpoint = of(interface).or_else(|| of(Interface::Public));
    let endpoint = endpoint.ok_or(CatalogueError::FindInterface)?;
    let url = Url::parse(&endpoint.url).ok();
    let url = url.filter(|url| url.has_host() && ["http", "https"].contains(&url.scheme()));
    url.map(|url| version_2(&url)).ok_or(CatalogueError::ParseUrl)
}

/// The same service in version 2, whatever version its URL names.
pub fn version_2(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    let (before, last) = path.rsplit_once('/').unwrap_or(("", path));
    let is_version = last
        .strip_prefix('v')
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
    let path = if is_version { before } else { path };
    let path = format!("{path}/v2");
    url.set_path(&path);
    url
}

#[cfg(test)]
mod tests;
