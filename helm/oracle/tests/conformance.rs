//! A small part of what `cargo xtask conformance` compares, in all profiles, for every test run.

use std::io::{Write as _, stderr};

use helm_oracle::{
    Lab,
    conformance::{self, Settings},
    lab,
};

/// Of our own charts: everything that is drawn, values and order of subcharts.
const OWN: [&str; 3] = ["drawn.tgz", "umbrella.tgz", "sequence.tgz"];
/// Real ones that render quickly: a cluster class, an add-on whose values take a default away, something drawn.
const REAL: [&str; 3] = [
    "docker_scs_cluster-class",
    "openstack_scs_cluster-addon_ccm",
    "charts_podinfo",
];
const PROFILES: [&str; 4] = ["v3.19", "v4.1", "v4.2", "v4.3"];

#[test]
fn a_small_part_of_the_charts_renders_as_each_helm_renders_it() {
    let corpus = lab::corpus();
    if corpus.is_none() {
        // Unlike the macros, this is not captured.
        stderr()
            .write_all(b"REDUCED: conformance: STACKWRIGHT_CORPUS is not set, so no real chart is rendered\n")
            .unwrap();
    }
    let names = OWN.iter().chain(REAL.iter().filter(|_| corpus.is_some()));
    let settings = Settings {
        profiles: PROFILES.map(str::to_owned).to_vec(),
        names: names.map(ToString::to_string).collect(),
        ..Settings::default()
    };
    let report = conformance::run(&settings, &Lab::load().unwrap()).unwrap();
    stderr().write_all(report.to_string().as_bytes()).unwrap();
    assert_eq!(report.total.charts, settings.names.len(), "charts that were rendered");
    assert_eq!(report.profiles.len(), PROFILES.len());
    assert!(report.total.masked_equal > 0, "nothing was drawn");
    assert!(report.is_good(), "{report}");
}
