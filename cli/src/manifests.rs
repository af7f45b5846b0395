//! Prints what is installed into a management cluster. Which manifests there are is the business of `crds`.

use std::{
    error::Error,
    io::{self, Write},
};

use crds::manifests::{self, Installation};

use crate::{
    arguments::{Part, PrintManifests},
    heard,
};

/// What is printed where nothing is named: cert-manager need not be there, and before an operator serves the webhooks with a certificate that they
/// trust, nobody could create a Cluster of ours.
const USUAL: [Part; 2] = [Part::Crds, Part::Roles];

/// Standard output cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to print the manifests")]
struct Unprinted(#[source] io::Error);

pub(crate) fn run(arguments: &PrintManifests, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let parts = if arguments.parts.is_empty() {
        &USUAL[..]
    } else {
        &arguments.parts
    };
    let installation = Installation {
        namespace: arguments.namespace.clone(),
        clusters: arguments.cluster_namespaces.clone(),
    };
    let mut text = String::new();
    for part in parts {
        for (_, manifest) in of_crds(*part).files(&installation)? {
            text.push_str("---\n");
            text.push_str(&manifest);
        }
    }
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    Ok(heard(printed).map_err(Unprinted)?)
}

fn of_crds(part: Part) -> manifests::Part {
    match part {
        Part::Crds => manifests::Part::Definitions,
        Part::Roles => manifests::Part::Roles,
        Part::Webhooks => manifests::Part::Webhooks,
        Part::Hooks => manifests::Part::Hooks,
        Part::Certificates => manifests::Part::Certificates,
    }
}
