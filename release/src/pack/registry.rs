//! Registries from which charts may be fetched: which are meant, and asking them. Nothing is fetched from where nobody named.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    fmt,
    str::FromStr,
};

use thiserror::Error;
use tokio::runtime::{Builder, Runtime};

use crate::{
    archive::MAX_ENTRY_BYTES,
    http::Network,
    source::oci::{ChartRepository, Logins, OciError, OciOptions, PulledChart, Repository, Wanted, is_version},
};

/// What stands before the address of a registry, where the charts of one lie.
const SCHEME: &str = "oci://";

/// A place in a registry below which charts lie: `oci://registry.example.com/path`, or a whole registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartRegistry(String);

/// A text that names no place in a registry.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no registry of charts; write it as oci://registry.example.com/path")]
pub struct InvalidChartRegistry {
    text: String,
}

impl FromStr for ChartRegistry {
    type Err = InvalidChartRegistry;

    fn from_str(text: &str) -> Result<Self, InvalidChartRegistry> {
        // Any name of a chart will do to see whether one could lie there.
        match place(text).filter(|_| repository(text, "chart").is_some()) {
            Some(place) => Ok(Self(place)),
            None => Err(InvalidChartRegistry { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for ChartRegistry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{}", self.0)
    }
}

impl ChartRegistry {
    /// Whether what a Chart.yaml calls a repository is this place, or below it.
    fn has(&self, named: &str) -> bool {
        let rest = place(named).and_then(|place| Some(place.strip_prefix(&self.0)?.to_owned()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Host and path, if it is one of OCI. Hosts are the same in capitals, and Helm passes over slashes at the end.
fn place(text: &str) -> Option<String> {
    let place = text.strip_prefix(SCHEME)?.trim_end_matches('/');
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    Some(format!("{}{path}", host.to_ascii_lowercase()))
}

/// The repository with the versions of a chart, as Helm composes its name.
fn repository(named: &str, chart: &str) -> Option<Repository> {
    format!("{}/{chart}", place(named)?).parse().ok()
}

/// Whether what a Chart.yaml calls a repository is one of OCI.
pub(super) fn is_registry(named: &str) -> bool {
    named.starts_with(SCHEME)
}

/// Registries from which charts may be fetched, and how they are asked.
#[derive(Clone, Debug)]
pub struct ChartRegistries {
    /// What may be reached.
    pub network: Network,
    /// Where charts may come from; what a Chart.yaml names elsewhere is not fetched.
    pub places: Vec<ChartRegistry>,
    /// Who asks. Where they have none, only what everybody may read can be had.
    pub logins: Logins,
    /// Certificates of authorities to trust besides the usual ones, in PEM.
    pub certificates: Option<Vec<u8>>,
    /// HTTP instead of HTTPS, for registries without TLS; the network has to allow it too.
    pub plain_http: bool,
    /// Hosts that may be told a login besides those of the registry's own domain.
    pub token_hosts: Vec<String>,
}

/// A chart that is wanted, as a Chart.yaml and its Chart.lock name it.
#[derive(Clone, Copy)]
pub(super) struct Wish<'a> {
    pub(super) name: &'a str,
    pub(super) range: &'a str,
    /// The version that was chosen before, where it is in the range.
    pub(super) locked: Option<&'a str>,
    /// What it calls its repository.
    pub(super) repository: &'a str,
}

/// What a registry has for a wish.
pub(super) enum Found {
    /// This, in this version.
    Chart { version: String, chart: PulledChart },
    /// Nothing that fits; these versions.
    Versions(Vec<String>),
}

/// Asks registries, each for everything at most once: so that one release has one chart of a version, also when its tag moves meanwhile.
pub(super) struct Clerk<'a> {
    registries: &'a ChartRegistries,
    /// What connections belong to.
    runtime: Runtime,
    repositories: HashMap<Repository, Shop>,
}

/// What is known of one repository.
struct Shop {
    repository: ChartRepository,
    versions: Option<Vec<String>>,
    pulled: BTreeMap<String, Option<PulledChart>>,
}

impl<'a> Clerk<'a> {
    /// Asks nobody yet.
    ///
    /// # Errors
    /// The system has nothing to wait for answers with.
    pub(super) fn new(registries: &'a ChartRegistries) -> std::io::Result<Self> {
        Ok(Self {
            registries,
            runtime: Builder::new_current_thread().enable_all().build()?,
            repositories: HashMap::new(),
        })
    }

    /// Whether it may ask what a Chart.yaml calls a repository.
    pub(super) fn may_ask(&self, named: &str) -> bool {
        self.registries.places.iter().any(|place| place.has(named))
    }

    /// The repository in which this chart would lie, if that is one.
    pub(super) fn repository(wish: Wish<'_>) -> Option<Repository> {
        repository(wish.repository, wish.name)
    }

    /// Fetches what Chart.lock says, if that is there; else a version that is named as a whole, as Helm does without asking for others; else the newest in the
    /// range.
    pub(super) fn fetch(
        &mut self,
        repository: &Repository,
        wish: Wish<'_>,
        newest: fn(&str, &[&str]) -> Option<usize>,
    ) -> Result<Found, OciError> {
        let Self {
            registries,
            runtime,
            repositories,
        } = self;
        let shop = match repositories.entry(repository.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(Shop::new(registries, repository)?),
        };
        runtime.block_on(shop.fetch(wish, newest))
    }
}

impl Shop {
    fn new(registries: &ChartRegistries, repository: &Repository) -> Result<Self, OciError> {
        let ChartRegistries {
            network,
            places: _,
            logins,
            certificates,
            plain_http,
            token_hosts,
        } = registries;
        let options = OciOptions {
            repository: repository.clone(),
            plain_http: *plain_http,
            credentials: logins.of(repository).cloned(),
            certificates: certificates.clone(),
            token_hosts: token_hosts.clone(),
        };
        let made = ChartRepository::new(network, options);
        Ok(Self {
            repository: made.map_err(|source| OciError::Request {
                wanted: Wanted::Tags,
                repository: repository.clone(),
                source: Box::new(source),
            })?,
            versions: None,
            pulled: BTreeMap::new(),
        })
    }

    async fn fetch(&mut self, wish: Wish<'_>, newest: fn(&str, &[&str]) -> Option<usize>) -> Result<Found, OciError> {
        let Wish { range, locked, .. } = wish;
        let whole = Some(range.trim()).filter(|range| is_version(range.strip_prefix('v').unwrap_or(range)));
        for version in locked.into_iter().chain(whole) {
            if let Some(chart) = self.pull(version).await? {
                let version = version.to_owned();
                return Ok(Found::Chart { version, chart });
            }
        }
        let versions = match &self.versions {
            Some(versions) => versions.clone(),
            None => self.versions.insert(self.repository.versions().await?).clone(),
        };
        let texts: Vec<&str> = versions.iter().map(String::as_str).collect();
        let Some(version) = newest(range, &texts).and_then(|position| versions.get(position)) else {
            return Ok(Found::Versions(versions));
        };
        match self.pull(version).await? {
            Some(chart) => Ok(Found::Chart {
                version: version.clone(),
                chart,
            }),
            // Taken away since it was listed.
            None => Err(OciError::MissingManifest {
                name: version.clone(),
                repository: self.repository.repository().clone(),
            }),
        }
    }

    async fn pull(&mut self, version: &str) -> Result<Option<PulledChart>, OciError> {
        if let Some(pulled) = self.pulled.get(version) {
            return Ok(pulled.clone());
        }
        // As much as a file of a chart may have: it becomes one.
        let pulled = self.repository.pull(version, MAX_ENTRY_BYTES).await?;
        self.pulled.insert(version.to_owned(), pulled.clone());
        Ok(pulled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_has_what_is_at_its_place_or_below_and_nothing_beside() {
        let given: ChartRegistry = "oci://Registry.Example.com:5000/team/".parse().unwrap();
        assert_eq!(given.to_string(), "oci://registry.example.com:5000/team");
        for (named, expected) in [
            ("oci://registry.example.com:5000/team", true),
            ("oci://registry.example.com:5000/team/", true),
            ("oci://REGISTRY.example.com:5000/team/charts", true),
            ("oci://registry.example.com:5000/teammates", false),
            ("oci://registry.example.com:5000", false),
            ("oci://registry.example.com/team", false),
            ("https://registry.example.com:5000/team", false),
            ("", false),
        ] {
            assert_eq!(given.has(named), expected, "{named}");
        }
        let whole: ChartRegistry = "oci://registry.example.com".parse().unwrap();
        assert!(whole.has("oci://registry.example.com/any/path"));
        assert!(!whole.has("oci://registry.example.com.elsewhere.example/any/path"));
    }

    #[test]
    fn texts_that_name_no_registry_are_refused() {
        for text in [
            "",
            "oci://",
            "oci:///charts",
            "registry.example.com/charts",
            "https://registry.example.com/charts",
            "oci://registry.example.com/charts:v1",
            "oci://user@registry.example.com/charts",
            "oci://registry.example.com/../charts",
        ] {
            assert!(text.parse::<ChartRegistry>().is_err(), "{text}");
        }
    }
}
