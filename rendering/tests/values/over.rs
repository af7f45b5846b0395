//! What lies over the values of a template.

use rendering::{ChartValues, HelmProfile, ValuesDocument, ValuesError, ValuesTemplate};
use serde_json::{Value, json};

use crate::{chain, renderer, roots, roots_of};

fn values_with(template: Option<&str>, over: &[&str]) -> Result<Value, ValuesError> {
    let template = template.map(|text| ValuesTemplate {
        path: "overwrite.yaml",
        text: text.as_bytes(),
    });
    let documents = over.iter().map(|text| ValuesDocument {
        name: "the key values.yaml of the Secret web",
        text: text.as_bytes(),
    });
    let documents: Vec<ValuesDocument<'_>> = documents.collect();
    let all = roots();
    let values = renderer().values(template, &documents, roots_of(&all), HelmProfile::V3_19);
    values.map(|ChartValues { values, .. }| values)
}

#[test]
fn the_last_counts_maps_are_merged_lists_are_replaced_and_null_stays_to_take_a_default_away() {
    let template = "a: {x: 1, w: {{ .Cluster.metadata.name }}}\nlist: [1, 2]\ngone: 1\n";
    let over = [
        "a: {w: two, z: 3}\nlist: [3]\n",
        "",
        "# none\n",
        "a: {z: 4}\ngone: null\n",
    ];
    assert_eq!(
        values_with(Some(template), &over).unwrap(),
        json!({ "a": { "x": 1, "w": "two", "z": 4 }, "list": [3], "gone": null })
    );
    assert_eq!(values_with(None, &["a: 1"]).unwrap(), json!({ "a": 1 }));
    assert_eq!(values_with(None, &[]).unwrap(), json!({}));
    // The text form is that of templates alone.
    assert_eq!(
        values_with(Some("values: |\n  a: 1\n"), &["values: |\n  b: 2\n"]).unwrap(),
        json!({ "a": 1, "values": "b: 2\n" })
    );
}

#[test]
fn what_is_no_mapping_is_named_and_never_repeated() {
    for text in [
        "sesame-open-4711",
        "[sesame-open-4711]",
        "a: 1\nb: [sesame-open-4711\nc: }",
        "a: &x sesame-open-4711\n*sesame-open-4711: 1",
        "\tsesame-open-4711: 1",
        "? [sesame-open-4711]\n: 1",
        "a: 1\na: !!float sesame-open-4711",
    ] {
        let Err(error) = values_with(Some("a: 1"), &[text]) else {
            panic!("{text}");
        };
        let told = format!("{} {error:?}", chain(&error));
        assert!(
            told.contains("values.yaml of the Secret web is no mapping") && !told.contains("sesame"),
            "{told}"
        );
    }
}

#[test]
fn nothing_of_what_a_cluster_was_given_is_in_what_programs_print() {
    let document = ValuesDocument {
        name: "web",
        text: b"password: sesame-open-4711",
    };
    let all = roots();
    let values = renderer()
        .values(None, &[document], roots_of(&all), HelmProfile::V3_19)
        .unwrap();
    let told = format!("{document:?} {values:?}");
    assert!(!told.contains("sesame") && told.contains(&values.digest), "{told}");
}
