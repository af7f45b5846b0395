//! What the command line accepts, and what it says to whoever mistypes.

use std::path::Path;

use clap::{CommandFactory, Parser};
use operator_kit::flags::check_reference;

use super::*;

fn parse(flags: &[&str]) -> Args {
    let flags = ["provider-operator"].iter().chain(flags);
    CommandLine::try_parse_from(flags).expect("flags").args()
}

fn refused(flags: &[&str]) -> String {
    parse(flags).check().expect_err("refused")
}

#[test]
fn the_definition_of_the_command_line_is_consistent() {
    CommandLine::command().debug_assert();
}

#[test]
fn the_flags_of_the_go_provider_are_accepted() {
    let args = parse(&[
        "--leader-elect=true",
        "--log-level=info",
        "--metrics-bind-address=127.0.0.1:8080",
        "--health-probe-bind-address=:9440",
        "--local",
        "--release-dir=/releases",
        "--image-import-timeout=0",
    ]);
    assert_eq!(args.check(), Ok(()));
    assert_eq!(args.clouds.import_patience(), None);
    assert_eq!(args.providers, ["openstack"]);
    assert_eq!(args.usual.release_dir(), Path::new("/releases"));
    assert!(args.lease.leader_elect);
}

#[test]
fn minutes_that_an_import_may_take_are_heard() {
    let of = |flag: &str| parse(&["--local", flag]).clouds.import_patience();
    assert_eq!(of("--image-import-timeout=90"), Some(Duration::from_mins(90)));
    assert_eq!(
        (of("--image-import-timeout=0"), of("--image-import-timeout=-1")),
        (None, None)
    );
}

#[test]
fn the_cache_is_not_that_of_the_core_operator() {
    let of = |flags: &[&str]| parse(flags).download.cache_dir;
    assert_eq!(of(&["--local"]), Path::new("/tmp/stackwright-provider"));
    assert_eq!(of(&["run", "--local"]), Path::new("/tmp/stackwright-provider"));
    assert_eq!(of(&["--cache-dir=/cache"]), Path::new("/cache"));
}

#[test]
fn the_command_orphans_changes_nothing_unless_it_is_told_to() {
    let listing = |flags: &[&str]| {
        let flags = ["provider-operator"].iter().chain(flags);
        match CommandLine::try_parse_from(flags).expect("flags").asked() {
            Asked::Orphans(_, listing) => Some(listing),
            Asked::Run(_) | Asked::Worker(_) => None,
        }
    };
    assert_eq!(listing(&["orphans"]), Some(Listing { is_deleting: false }));
    assert_eq!(listing(&["orphans", "--delete"]), Some(Listing { is_deleting: true }));
    assert_eq!((listing(&[]), listing(&["run"])), (None, None));
    let args = parse(&[
        "orphans",
        "--namespace=fleet",
        "--providers=filestore",
        "--filestore=default=/srv",
    ]);
    assert_eq!((args.scope.namespace.as_str(), args.check_clouds()), ("fleet", Ok(())));
}

#[test]
fn no_command_is_the_command_run() {
    let flags = ["--providers=filestore", "--filestore=default=/srv/images", "--local"];
    let run = parse(&["run", flags[0], flags[1], flags[2]]);
    assert_eq!(run.check(), Ok(()));
    assert_eq!(format!("{run:?}"), format!("{:?}", parse(&flags)));
}

#[test]
fn a_provider_that_is_not_there_is_refused_with_those_that_are() {
    for flags in [&["--local", "--providers=clay"][..], &["--local", "--providers="]] {
        let words = refused(flags);
        assert!(words.contains("filestore") && words.contains("openstack"), "{words}");
    }
}

#[test]
fn flags_that_clash_are_refused_with_what_to_do() {
    for (flags, words) in [
        (&["--local", "--providers=filestore"][..], "--filestore"),
        (&["--local", "--filestore=default=/srv"], "--providers"),
        (&["--local", "--serve-filestore=:8088"], "--providers"),
        (
            &["--local", "--providers=filestore", "--filestore=default=images"],
            "absolute directory",
        ),
        (
            &["--local", "--max-transfers=4", "--max-transfers-total=2"],
            "--max-transfers-total",
        ),
        (&["--local", "--installation=team/one"], "--installation"),
        (&["--source=github"], "GIT_ORG_NAME"),
    ] {
        let told = refused(flags);
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn replicas_that_serve_the_same_have_one_lease() {
    let of = |providers: &str| parse(&[&format!("--providers={providers}")]).lease_name();
    assert_eq!(of("openstack"), "openstack.provider.clusterstack.x-k8s.io");
    assert_eq!(of("openstack,filestore"), of("filestore,openstack"));
    assert_eq!(parse(&["--leader-elect-name=one"]).lease_name(), "one");
}

#[test]
fn help_teaches_by_examples() {
    let help = CommandLine::command().render_long_help().to_string();
    for words in [
        "EXAMPLES",
        "--filestore default=/srv/images",
        "clouds.yaml",
        "--providers",
    ] {
        assert!(help.contains(words), "{words}: {help}");
    }
}

#[test]
fn bad_values_say_how_to_write_good_ones() {
    for (flag, words) in [
        ("--lease-duration=soon", "15s, 500ms or 1m30s"),
        ("--drain=-1s", "negative"),
        ("--metrics-bind-address=eighty", ":8080 or 127.0.0.1:8080"),
        ("--namespace=Fleet", "lower-case"),
        ("--watch-filter=blue green", "label"),
    ] {
        let error = CommandLine::try_parse_from(["provider-operator", flag]).expect_err("refused");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn the_reference_of_the_flags_is_the_generated_one() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/provider-operator.md");
    let checked = check_reference(CommandLine::command(), &file);
    assert_eq!(checked.map_err(|error| error.to_string()), Ok(()));
}
