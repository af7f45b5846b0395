//! Templates of values in the folders of stages: which files are such, and which only look like one.

use crds::release_files::{CLUSTER_ADDON_VALUES, CLUSTER_ADDON_VALUES_TERA};

use super::{PackError, tree::Tree};

/// The template of the values of a stage, in either language: read by the operators and not by Helm.
pub(super) const OVERWRITES: [&str; 2] = ["overwrite.yaml", "overwrite.yaml.tera"];
/// What their names begin with.
const STEM: &str = "overwrite";
/// How somebody may end them. What ends otherwise, such as `OVERWRITE.md`, is for people.
const ENDS: [&str; 5] = ["yaml", "yml", "tera", "yaml.tera", "yml.tera"];
/// The end of the names of Tera templates.
const TERA: &str = ".tera";
/// The folder whose texts may read other files of the chart.
const TEMPLATES: &str = "templates/";

/// Refuses two templates of values for the chart of a stage. Refuses none as well where a file looks as if it were meant as one: the operators would pass
/// over it, and the chart get no values.
pub(super) fn check(chart: &Tree) -> Result<(), PackError> {
    let [go, tera] = OVERWRITES;
    match OVERWRITES.map(|name| chart.files.contains_key(name)) {
        [true, true] => Err(PackError::TwoValues {
            path: chart.path(go),
            beside: tera,
        }),
        [false, false] => {
            let mut files = chart.files.keys().filter(|file| !file.contains('/'));
            match files.find_map(|file| Some((file, meant(file)?)).filter(|_| !is_read(chart, file))) {
                None => Ok(()),
                Some((file, meant)) => Err(PackError::UnreadValues {
                    path: chart.path(file),
                    meant,
                }),
            }
        }
        _ => Ok(()),
    }
}

/// The template of values that a file may be meant as.
fn meant(file: &str) -> Option<&'static str> {
    let [go, tera] = OVERWRITES;
    let lower = file.to_lowercase();
    let (stem, end) = lower.split_once('.').unwrap_or((&lower, "yaml"));
    let is_meant = (ENDS.contains(&end) && !expressions::nearest(stem, [STEM]).is_empty())
        || [CLUSTER_ADDON_VALUES, CLUSTER_ADDON_VALUES_TERA].contains(&lower.as_str());
    is_meant.then_some(if lower.ends_with(TERA) { tera } else { go })
}

/// Whether a template of the chart names the file, so that it is for the chart itself.
fn is_read(chart: &Tree, file: &str) -> bool {
    let mut templates = chart.files.keys().filter(|path| path.starts_with(TEMPLATES));
    templates.any(|path| chart.text(path).is_some_and(|text| text.contains(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_charts_are_not_taken_for_templates_of_values() {
        for file in [
            "Chart.yaml",
            "Chart.lock",
            "values.yaml",
            "values.schema.json",
            "README.md",
            "LICENSE",
            ".helmignore",
            "app-readme.md",
            "questions.yaml",
            "requirements.yaml",
            "overlays.json",
            "OVERWRITE.md",
            "overwrite.md.txt",
        ] {
            assert_eq!(meant(file), None, "{file}");
        }
        for file in [
            "overwrite.yml",
            "Overwrite.yaml",
            "overwite.yaml",
            "override.yaml",
            "overwrite",
        ] {
            assert_eq!(meant(file), Some("overwrite.yaml"), "{file}");
        }
        for file in ["overwrite.tera", "overwrite.yml.tera", "cluster-addon-values.yaml.tera"] {
            assert_eq!(meant(file), Some("overwrite.yaml.tera"), "{file}");
        }
    }
}
