//! Renders the class chart of a release before the release is there for anybody: what no operator could apply is refused here, where the
//! one who can mend it sits.

use crds::policy::HelmProfile;
use release::pack::Prepared;
use rendering::{ErrorClass, Lane, RenderError, RenderRequest, Rendered, Renderer};
use serde_json::Value;
use thiserror::Error;

/// Templates see it. Those of class charts hardly ever decide anything by it, and this is as good as any.
const NAMESPACE: &str = "default";
/// What a Cluster names; a stack without one is of no use to anybody.
const CLASS_KIND: &str = "ClusterClass";
const CLASS_GROUP: &str = "cluster.x-k8s.io";

/// What came of the class chart.
pub(crate) struct Class {
    /// How many objects it has; none when this version cannot tell.
    pub(crate) objects: Option<usize>,
    /// What is strange about it, a sentence each.
    pub(crate) warnings: Vec<String>,
}

/// No operator can use a release with this class chart.
#[derive(Debug, Error)]
pub(crate) enum Unusable {
    /// It does not render.
    #[error("{at}: {advice}, then make the release again")]
    Unrenderable {
        /// The file of the stack, with the line where one is known.
        at: String,
        advice: &'static str,
        #[source]
        source: Box<RenderError>,
    },
    /// It makes a class that Clusters of the release do not name, so that nobody could say which release those on it use.
    #[error(
        "{at}: renders the ClusterClass {found}, but a release brings one, and Clusters of this one name {expected}: give it that name, or a second \
         class a stack of its own, then make the release again"
    )]
    OtherClass {
        at: String,
        found: String,
        expected: String,
    },
}

/// Renders the class chart as operators will.
pub(crate) fn render(prepared: &Prepared) -> Result<Class, Unusable> {
    let request = RenderRequest {
        identity: "of a release that is not there yet",
        chart: &|| Ok(prepared.class_chart().to_vec().into()),
        release_name: &prepared.tag().stem().to_string(),
        namespace: NAMESPACE,
        kubernetes_version: None,
        api_versions: &[],
        include_crds: false,
        profile: HelmProfile::default(),
        values: &Value::Null,
        answers: None,
    };
    match Renderer::new(0).render(&request, Lane::Slow) {
        Ok(rendered) => rendered_class(&rendered, prepared),
        Err(error @ RenderError::MissingFunction { function, .. }) => Ok(Class {
            objects: None,
            warnings: vec![format!(
                "{}: the class chart was not tried out, because this version does not answer Helm's function {function:?} yet; operators of \
                 this version cannot use the release, later ones may",
                at(prepared, &error)
            )],
        }),
        Err(source) => Err(Unusable::Unrenderable {
            at: at(prepared, &source),
            advice: advice(&source),
            source: Box::new(source),
        }),
    }
}

fn rendered_class(rendered: &Rendered, prepared: &Prepared) -> Result<Class, Unusable> {
    let Rendered { objects, warnings, .. } = rendered;
    let mut warnings = warnings.clone();
    let expected = prepared.tag().class_name().to_string();
    let classes = || objects.iter().filter(|object| is_class(&object.value));
    if let Some(other) = classes().find(|class| class.value["metadata"]["name"] != expected) {
        return Err(Unusable::OtherClass {
            at: prepared.class_file(&other.source).display().to_string(),
            found: other.value["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            expected,
        });
    }
    if classes().next().is_none() {
        let chart = prepared.class_file("");
        warnings.push(format!(
            "{}: renders no {CLASS_KIND}, so no Cluster can use the release",
            chart.display()
        ));
    }
    Ok(Class {
        objects: Some(objects.len()),
        warnings,
    })
}

/// As operators tell them: other groups may have a kind of the same name.
fn is_class(object: &Value) -> bool {
    let group = object["apiVersion"]
        .as_str()
        .and_then(|version| version.split_once('/'));
    object["kind"] == CLASS_KIND && group.is_some_and(|(group, _)| group == CLASS_GROUP)
}

fn at(prepared: &Prepared, error: &RenderError) -> String {
    let (path, line) = error.place().unwrap_or_default();
    let file = prepared.class_file(path);
    match line {
        Some(line) => format!("{}:{line}", file.display()),
        None => file.display().to_string(),
    }
}

fn advice(error: &RenderError) -> &'static str {
    match error.place() {
        _ if error.class() == ErrorClass::Transient => "try again, or make its templates quicker",
        Some((_, Some(_))) => "correct this template",
        Some((_, None)) => "correct what this template renders (a line named below is one of that)",
        None => "correct the class chart",
    }
}
