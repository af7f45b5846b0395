//! The providers that this operator was built with and is to serve. A provider that is left out of the build is unknown here and nowhere else.

use std::sync::Arc;

use crds::providers::Provider as Name;
use provider_plugin::Provider;
use thiserror::Error;

/// What providers are given when the operator starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// The directories of the provider `filestore`.
    #[cfg(feature = "filestore")]
    pub(crate) filestores: provider_filestore::FileStores,
    /// How the provider `docker` asks registries.
    #[cfg(feature = "docker")]
    pub(crate) registries: crate::registries::WebRegistries,
}

/// The providers that are served.
#[derive(Clone)]
pub(crate) struct Registry {
    providers: Vec<(Name, Arc<dyn Provider>)>,
}

/// A provider that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum RegistryError {
    /// None of this name.
    #[error("there is no provider {name:?} in this operator; it has {known}")]
    Choose {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
}

impl Registry {
    /// Those of these names, `openstack` for example; without any name all that the operator was built with.
    pub(crate) fn of(names: &[String], given: Given) -> Result<Self, RegistryError> {
        let all = built(given);
        if names.is_empty() {
            return Ok(Self { providers: all });
        }
        let known: Vec<String> = all.iter().map(|(name, _)| name.to_string()).collect();
        if let Some(name) = names.iter().find(|name| !known.contains(name)) {
            return Err(RegistryError::Choose {
                name: name.clone(),
                known: known.join(", "),
            });
        }
        let is_chosen = |(name, _): &(Name, _)| names.contains(&name.to_string());
        Ok(Self {
            providers: all.into_iter().filter(is_chosen).collect(),
        })
    }

    /// The names of those that are served, always in the same order.
    pub(crate) fn names(&self) -> impl Iterator<Item = Name> + '_ {
        self.providers.iter().map(|(name, _)| *name)
    }

    /// The one of this name, if it is served.
    pub(crate) fn get(&self, name: Name) -> Option<&Arc<dyn Provider>> {
        let found = self.providers.iter().find(|(known, _)| *known == name);
        found.map(|(_, provider)| provider)
    }
}

#[cfg_attr(
    not(any(feature = "docker", feature = "filestore")),
    expect(
        unused_variables,
        clippy::needless_pass_by_value,
        reason = "the others are given nothing"
    )
)]
fn built(given: Given) -> Vec<(Name, Arc<dyn Provider>)> {
    Vec::from([
        #[cfg(feature = "openstack")]
        named(Name::OpenStack, provider_openstack::OpenStack),
        #[cfg(feature = "filestore")]
        named(Name::FileStore, given.filestores),
        #[cfg(feature = "docker")]
        named(Name::Docker, provider_docker::Docker::new(Arc::new(given.registries))),
    ])
}

fn named(name: Name, provider: impl Provider + 'static) -> (Name, Arc<dyn Provider>) {
    (name, Arc::new(provider))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(chosen: &[&str]) -> Result<Vec<String>, RegistryError> {
        let chosen: Vec<String> = chosen.iter().map(|name| (*name).to_owned()).collect();
        let registry = Registry::of(&chosen, Given::default())?;
        Ok(registry.names().map(|name| name.to_string()).collect())
    }

    #[test]
    fn every_provider_has_one_name_in_flags_kinds_and_metrics() {
        let registry = Registry::of(&[], Given::default()).unwrap();
        for name in registry.names() {
            assert_eq!(registry.get(name).unwrap().name(), name.to_string());
        }
    }

    #[test]
    fn only_those_are_served_that_are_chosen() {
        let all = names(&[]).unwrap();
        for name in &all {
            assert_eq!(names(&[name]).unwrap(), std::slice::from_ref(name));
        }
        let error = names(&["clay"]).unwrap_err().to_string();
        assert!(all.iter().all(|name| error.contains(name)), "{error}");
    }
}
