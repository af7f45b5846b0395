//! Which Secrets and ConfigMaps a Cluster names for the values of its charts, and which of them may be read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crds::labels::{VALUES, VALUES_ALLOWED, VALUES_FROM, VALUES_KEY};

use crate::object_key::GroupKind;

/// Most objects that a Cluster may name: each is read whenever its values are made.
const MOST: usize = 32;

/// Longest names of Kubernetes, and of keys in Secrets and ConfigMaps.
const LONGEST: usize = 253;

/// The end of the names under which kubeconfigs are kept, by Cluster API and by whoever brings his own.
const KUBECONFIG: &str = "-kubeconfig";

/// Of what kind an object with values is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HolderKind {
    /// It is a Secret.
    Secret,
    /// It is a ConfigMap.
    ConfigMap,
}

impl HolderKind {
    /// As the API server has it.
    pub fn group_kind(self) -> GroupKind {
        GroupKind::new("", self.to_string())
    }
}

impl fmt::Display for HolderKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        })
    }
}

/// An object with values, in the namespace of the Cluster that names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// Its kind.
    pub kind: HolderKind,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.name)
    }
}

/// Values that a Cluster takes from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuesFrom {
    /// The folder of the chart that gets them; all charts get them where it is nothing.
    pub chart: Option<String>,
    /// Where they are.
    pub holder: Holder,
    /// Under which key there.
    pub key: String,
}

/// The annotation names nothing that could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValuesFromError {
    /// One of them is written otherwise.
    #[error(
        "the annotation {VALUES_FROM} of the Cluster says {item:?}: write secret/NAME or configmap/NAME, with :KEY behind it unless the key is \
         {VALUES_KEY}, and CHART= before it for one chart alone, separated by commas"
    )]
    Item {
        /// Which.
        item: String,
    },
    /// There are too many.
    #[error(
        "the annotation {VALUES_FROM} of the Cluster names {count} objects, {MOST} are allowed: put several into one"
    )]
    TooMany {
        /// How many.
        count: usize,
    },
    /// The release has no such chart.
    #[error(
        "the annotation {VALUES_FROM} of the Cluster gives values to the chart {chart}, which the release does not have: it has {}",
        list(.charts)
    )]
    NoChart {
        /// Which.
        chart: String,
        /// Those that it has.
        charts: BTreeSet<String>,
    },
}

fn list(charts: &BTreeSet<String>) -> String {
    if charts.is_empty() {
        return "none".to_owned();
    }
    charts.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Why an object that is there is not read into values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Withheld {
    /// Whoever may write it has not said that it may be.
    #[error(
        "it has not the label {VALUES}: \"{VALUES_ALLOWED}\": whoever may write it has to allow with that label that Clusters of its namespace take \
         values from it"
    )]
    NoConsent,
    /// It is made for something else: the kubeconfig of a cluster, the token of a service account, what charts drew at random.
    #[error(
        "it is of a type of its own, and values are taken from Secrets of the type Opaque alone: put them into another one"
    )]
    OtherType,
    /// It is the way into a cluster.
    #[error(
        "a name that ends with {KUBECONFIG} is that of a kubeconfig, from which no values are taken: put them into another one"
    )]
    Kubeconfig,
}

/// Reads the annotation of a Cluster: what it names, in its order. Empty entries are passed over.
pub fn values_from(annotation: &str) -> Result<Vec<ValuesFrom>, ValuesFromError> {
    let items = annotation.split(',').map(str::trim).filter(|item| !item.is_empty());
    let count = items.clone().count();
    if count > MOST {
        return Err(ValuesFromError::TooMany { count });
    }
    let read = |item: &str| {
        one(item).ok_or_else(|| ValuesFromError::Item {
            item: item.chars().take(LONGEST).collect(),
        })
    };
    items.map(read).collect()
}

/// `[CHART=]KIND/NAME[:KEY]`
fn one(item: &str) -> Option<ValuesFrom> {
    let (chart, rest) = match item.split_once('=') {
        Some((chart, rest)) => (Some(chart.trim()), rest.trim()),
        None => (None, item),
    };
    let (kind, rest) = rest.split_once('/')?;
    let kind = match kind {
        "secret" => HolderKind::Secret,
        "configmap" => HolderKind::ConfigMap,
        _ => return None,
    };
    let (name, key) = rest.split_once(':').unwrap_or((rest, VALUES_KEY));
    let is_of = |text: &str, others: &str| {
        let is_one = |letter: char| letter.is_ascii_alphanumeric() || others.contains(letter);
        (1..=LONGEST).contains(&text.len()) && text.chars().all(is_one)
    };
    // No name is a way to another object.
    let is_name = is_of(name, "-.") && name.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    let is_chart = chart.is_none_or(|chart| is_of(chart, "-._"));
    (is_chart && is_name && is_of(key, "-._")).then(|| ValuesFrom {
        chart: chart.map(str::to_owned),
        holder: Holder {
            kind,
            name: name.to_owned(),
        },
        key: key.to_owned(),
    })
}

/// Whether values may be read from an object with these labels, and of this type where it is a Secret.
pub fn is_given(
    holder: &Holder,
    labels: Option<&BTreeMap<String, String>>,
    secret_type: Option<&str>,
) -> Result<(), Withheld> {
    if holder.kind == HolderKind::Secret && !matches!(secret_type, None | Some("" | "Opaque")) {
        return Err(Withheld::OtherType);
    }
    if holder.kind == HolderKind::Secret && holder.name.ends_with(KUBECONFIG) {
        return Err(Withheld::Kubeconfig);
    }
    let label = labels.and_then(|labels| labels.get(VALUES));
    if label.is_some_and(|value| value == VALUES_ALLOWED) {
        Ok(())
    } else {
        Err(Withheld::NoConsent)
    }
}

/// Fails where values are meant for a chart that the release does not have.
pub fn are_for_charts<'a>(
    given: &[ValuesFrom],
    charts: impl Iterator<Item = &'a String> + Clone,
) -> Result<(), ValuesFromError> {
    let mut named = given.iter().filter_map(|given| given.chart.as_ref());
    match named.find(|chart| charts.clone().all(|one| one != *chart)) {
        None => Ok(()),
        Some(chart) => Err(ValuesFromError::NoChart {
            chart: chart.clone(),
            charts: charts.cloned().collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(chart: Option<&str>, kind: HolderKind, name: &str, key: &str) -> ValuesFrom {
        ValuesFrom {
            chart: chart.map(str::to_owned),
            holder: Holder {
                kind,
                name: name.to_owned(),
            },
            key: key.to_owned(),
        }
    }

    #[test]
    fn what_a_cluster_names_is_read_in_its_order() {
        let annotation = "configmap/defaults, cni = secret/cilium.tunnel:cni.yaml,,secret/web\n";
        let expected = [
            given(None, HolderKind::ConfigMap, "defaults", "values.yaml"),
            given(Some("cni"), HolderKind::Secret, "cilium.tunnel", "cni.yaml"),
            given(None, HolderKind::Secret, "web", "values.yaml"),
        ];
        assert_eq!(values_from(annotation).as_deref(), Ok(&expected[..]));
        assert_eq!(values_from(" , ").as_deref(), Ok(&[][..]));
    }

    #[test]
    fn what_is_written_otherwise_is_quoted_with_what_to_write() {
        for item in [
            "web",
            "Secret/web",
            "node/web",
            "secret/",
            "secret/web:",
            "secret/other/web",
            "secret/../web",
            "secret/..",
            "=secret/web",
            "a/b=secret/web",
            "secret/web?watch=1",
            "secret/web:a/b",
        ] {
            let refused = values_from(&format!("configmap/good,{item}")).expect_err(item);
            let item = item.to_owned();
            assert_eq!(refused, ValuesFromError::Item { item });
            assert!(refused.to_string().contains("configmap/NAME"), "{refused}");
        }
        let many = vec!["secret/web"; MOST + 1].join(",");
        assert_eq!(values_from(&many), Err(ValuesFromError::TooMany { count: MOST + 1 }));
    }

    #[test]
    fn as_many_objects_as_allowed_may_be_named() {
        let most = vec!["secret/web"; MOST].join(",");
        assert_eq!(values_from(&most).expect("not too many").len(), MOST);
    }

    #[test]
    fn nothing_is_read_without_consent_nor_from_what_is_made_for_something_else() {
        let labels = |value: &str| BTreeMap::from([(VALUES.to_owned(), value.to_owned())]);
        let consent = labels(VALUES_ALLOWED);
        let holder = |kind, name: &str| given(None, kind, name, "").holder;
        let (secret, map) = (holder(HolderKind::Secret, "web"), holder(HolderKind::ConfigMap, "web"));
        for type_ in [None, Some(""), Some("Opaque")] {
            assert_eq!(is_given(&secret, Some(&consent), type_), Ok(()));
        }
        assert_eq!(is_given(&map, Some(&consent), None), Ok(()));
        for without in [None, Some(&labels("false")), Some(&labels("")), Some(&labels("True"))] {
            for holder in [&secret, &map] {
                assert_eq!(is_given(holder, without, None), Err(Withheld::NoConsent));
            }
        }
        for type_ in [
            "cluster.x-k8s.io/secret",
            "clusterstack.x-k8s.io/memo",
            "kubernetes.io/service-account-token",
        ] {
            assert_eq!(is_given(&secret, Some(&consent), Some(type_)), Err(Withheld::OtherType));
        }
        let kubeconfig = holder(HolderKind::Secret, "web-kubeconfig");
        assert_eq!(
            is_given(&kubeconfig, Some(&consent), Some("Opaque")),
            Err(Withheld::Kubeconfig)
        );
    }

    #[test]
    fn values_for_a_chart_that_is_not_there_name_those_that_are() {
        let charts = ["cni".to_owned(), "ccm".to_owned()];
        let all = values_from("secret/web,cni=secret/web").expect("an annotation");
        assert_eq!(are_for_charts(&all, charts.iter()), Ok(()));
        let wrong = values_from("csi=secret/web").expect("an annotation");
        let refused = are_for_charts(&wrong, charts.iter()).expect_err("there is none");
        assert!(
            refused
                .to_string()
                .ends_with("the chart csi, which the release does not have: it has ccm, cni"),
            "{refused}"
        );
    }
}
