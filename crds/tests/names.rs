//! Names: the contract's grammar as a table, and the laws of round trip and order as properties.

use std::cmp::Ordering;

use crds::names::{Channel, ClassName, KubernetesMinor, NameError, ReleaseStem, ReleaseTag, StackVersion};
use proptest::prelude::*;

/// Text, what it prints as when read in dot form, and in dash form.
const GRAMMAR: &[(&str, Option<&str>, Option<&str>)] = &[
    ("v1", Some("v1"), Some("v1")),
    ("v01", Some("v1"), Some("v1")),
    ("v0-sha.abc", Some("v0-sha.abc"), None),
    ("v0-sha-abc", None, Some("v0-sha.abc")),
    ("v1-alpha", None, None),
    ("v1.0", None, None),
    ("v1-alpha.1.2", None, None),
    ("v1-alpha-1-2", None, None),
    ("V1", None, None),
    ("1", None, None),
    ("v", None, None),
    ("v-1", None, None),
    ("v+1", None, None),
    ("v1-", None, None),
    ("v1-.1", None, None),
    ("v1-alpha.", None, None),
    ("v1-a_b.c", Some("v1-a_b.c"), None),
    ("v1-stable.3", Some("v1"), None),
    ("v99999999999999999999", None, None),
    ("v1-älpha.1", None, None),
];

#[test]
fn versions_are_read_as_the_contract_measured() {
    for (text, dot, dash) in GRAMMAR {
        assert_eq!(
            text.parse::<StackVersion>()
                .ok()
                .map(|version| version.to_string())
                .as_deref(),
            *dot,
            "{text} dot"
        );
        assert_eq!(
            StackVersion::parse_dash(text)
                .ok()
                .map(|version| version.to_string())
                .as_deref(),
            *dash,
            "{text} dash"
        );
    }
    assert_eq!(
        "V1".parse::<StackVersion>().unwrap_err().to_string(),
        "invalid version string V1"
    );
}

#[test]
fn tags_are_refused_in_the_words_of_the_contract() {
    for (tag, words) in [
        ("openstack-scs-v5", "invalid format"),
        ("openstack-csp-helper-v0.3.0", "invalid format"),
        ("openstack-scs-1-29-v2-test", "invalid format"),
        ("openstack-scs-1-32-v0-sha-abc-def", "invalid format"),
        ("openstack-scs-1-32-v0-sha.abc", "invalid format"),
        ("openstack-scs-1-32-v0.1", "invalid version string v0.1"),
        ("openstack-csp-x-1-v5", "invalid major version"),
        ("-scs-1-32-v5", "invalid provider"),
        ("openstack--1-32-v5", "invalid name"),
        ("OpenStack-scs-1-32-v5", "invalid provider"),
        ("openstack-scs-x-32-v5", "invalid major version"),
        ("openstack-scs-1-x-v5", "invalid minor version"),
        ("openstack-scs-1--v5", "invalid minor version"),
        ("openstack-scs-1-32-v0-sha-ABC", "invalid version string v0-sha.ABC"),
        ("openstack-scs-1-32-v0-a_b-c", "invalid version string v0-a_b.c"),
        ("", "invalid format"),
    ] {
        let error = tag.parse::<ReleaseTag>().expect_err(tag).to_string();
        assert!(error.starts_with(words), "{tag}: {error}");
    }
    let long = format!("openstack-scs-1-32-v0-sha-{}", "a".repeat(250));
    assert!(matches!(
        long.parse::<ReleaseTag>(),
        Err(NameError::NotAnObjectName { .. })
    ));
}

#[test]
fn tag_and_class_name_tell_their_parts() {
    for (tag, class, version) in [
        ("openstack-scs-1-32-v5", "openstack-scs-1-32-v5", "v5"),
        (
            "openstack-scs-1-32-v0-sha-rwvgrna",
            "openstack-scs-1-32-v0-sha.rwvgrna",
            "v0-sha.rwvgrna",
        ),
    ] {
        let parsed: ReleaseTag = tag.parse().expect(tag);
        assert_eq!((parsed.provider(), parsed.name()), ("openstack", "scs"));
        assert_eq!(parsed.kubernetes_minor().to_string(), "1.32");
        assert_eq!(parsed.version().to_string(), version);
        assert_eq!(parsed.stem().to_string(), "openstack-scs-1-32");
        assert_eq!(parsed.class_name().to_string(), class);
        assert_eq!(class.parse::<ClassName>().expect(class).release_tag(), &parsed);
        assert_eq!(serde_json::to_value(&parsed).expect("JSON"), tag);
    }
    // The dash form of a hash version is a tag, but no class.
    assert!("openstack-scs-1-32-v0-sha-rwvgrna".parse::<ClassName>().is_err());
}

#[test]
fn versions_sort_by_number_and_never_by_letter() {
    let sorted = [
        "v0-sha.0a",
        "v0-sha.a0",
        "v1-alpha.9",
        "v1-alpha.10",
        "v1-alpha.rc2",
        "v1-alpha.rc10",
        "v1-beta.1",
        "v1-custom.1",
        "v1",
        "v2-alpha.01",
        "v2-alpha.1",
        "v2",
        "v9",
        "v10",
    ];
    let mut versions: Vec<StackVersion> = sorted.iter().map(|text| text.parse().expect(text)).collect();
    versions.reverse();
    versions.sort();
    let printed: Vec<String> = versions.iter().map(ToString::to_string).collect();
    assert_eq!(printed, sorted);
}

#[test]
fn custom_follows_everything_but_stable() {
    let channel = |word: &str| word.parse::<Channel>().expect(word);
    for (stack, version, follows) in [
        ("stable", "stable", true),
        ("stable", "alpha", false),
        ("custom", "custom", true),
        ("custom", "sha", true),
        ("custom", "alpha", true),
        ("custom", "stable", false),
        ("alpha", "alpha", true),
        ("alpha", "beta", false),
    ] {
        assert_eq!(channel(stack).follows(&channel(version)), follows, "{stack} {version}");
    }
}

#[test]
fn kubernetes_versions_give_their_minor() {
    for (full, minor) in [
        ("v1.32.4", "1.32"),
        ("1.27.3", "1.27"),
        ("v1.30.0-rc.1", "1.30"),
        ("v1.30.2+build.5", "1.30"),
    ] {
        assert_eq!(KubernetesMinor::of_full_version(full).expect(full).to_string(), minor);
    }
    for bad in [
        "", "v1", "v1.32", "v1.32.", "v1.32.x", "1.x.3", "v10.1.1", "vv1.32.4", "v1.+32.4",
    ] {
        assert!(KubernetesMinor::of_full_version(bad).is_err(), "{bad}");
    }
    for bad in ["", "1", "1.", ".1", "1.32.4", "v1.32", "10.1", "1.-2"] {
        assert!(bad.parse::<KubernetesMinor>().is_err(), "{bad}");
    }
    assert!("1.9".parse::<KubernetesMinor>().expect("a minor") < "1.10".parse().expect("a minor"));
}

fn version() -> impl Strategy<Value = StackVersion> {
    // Few letters, so that equal prefixes, runs of digits and leading zeros meet often.
    let patch = prop_oneof!["[a-c0-2]{1,6}", "0{0,2}[0-9]{1,3}", "[A-Za-z0-9_]{1,12}"];
    let channel = prop_oneof!["stable", "alpha", "sha", "[a-z0-9_A-Z]{1,5}"];
    (0..12_u64, channel, patch)
        .prop_map(|(major, channel, patch)| format!("v{major}-{channel}.{patch}").parse().expect("a version"))
}

fn tag() -> impl Strategy<Value = ReleaseTag> {
    ("[a-z0-9]{1,9}", "[a-z0-9]{1,9}", 0..10_u8, 0..200_u32, version()).prop_filter_map(
        "the version must fit into an object name",
        |(provider, name, major, minor, version)| {
            let minor = format!("{major}.{minor}").parse().expect("a minor");
            ReleaseTag::new(ReleaseStem::new(&provider, &name, minor).expect("a stem"), version).ok()
        },
    )
}

/// Pieces of names, and what is none.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "docker",
        "a",
        "0",
        "01",
        "27",
        "-",
        ".",
        "-1-27-",
        "v",
        "v1",
        "v01",
        "-v0-sha.",
        "stable",
        "-stable.b",
        "docker-ferrol-1-27-v1",
    ])
}

proptest! {
    #[test]
    fn the_api_server_takes_those_names_for_classes_of_ours_that_we_take(pieces in prop::collection::vec(piece(), 0..8)) {
        let name = pieces.concat();
        let pattern = regex::Regex::new(crds::webhooks::CLASS_NAME_PATTERN).expect("a pattern");
        prop_assert_eq!(pattern.is_match(&name), name.parse::<ClassName>().is_ok(), "{}", name);
    }

    #[test]
    fn the_api_server_knows_the_class_of_every_tag(tag in tag()) {
        let pattern = regex::Regex::new(crds::webhooks::CLASS_NAME_PATTERN).expect("a pattern");
        prop_assert!(pattern.is_match(&tag.class_name().to_string()));
    }

    #[test]
    fn versions_survive_printing_in_both_spellings(version in version()) {
        prop_assert_eq!(&version.to_string().parse::<StackVersion>().expect("dot form"), &version);
        prop_assert_eq!(&StackVersion::parse_dash(&version.dash()).expect("dash form"), &version);
    }

    #[test]
    fn tags_survive_printing_and_the_way_through_the_class_name(tag in tag()) {
        prop_assert_eq!(&tag.to_string().parse::<ReleaseTag>().expect("a tag"), &tag);
        let class = tag.class_name();
        prop_assert_eq!(&class.to_string().parse::<ClassName>().expect("a class"), &class);
        prop_assert_eq!(&ReleaseTag::from(class.clone()), &tag);
        // The contract's conversion: a class name becomes its tag by replacing the only dot.
        prop_assert_eq!(class.to_string().replace('.', "-"), tag.to_string());
        let json = serde_json::to_string(&tag).expect("JSON");
        prop_assert_eq!(&serde_json::from_str::<ReleaseTag>(&json).expect("a tag"), &tag);
    }

    #[test]
    fn tags_are_names_of_objects(tag in tag()) {
        let name = tag.to_string();
        prop_assert!(name.len() <= 253);
        prop_assert!(name.split('-').all(|part| !part.is_empty()));
        prop_assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
        prop_assert!([5, 7].contains(&name.split('-').count()));
    }

    #[test]
    fn any_text_is_read_or_refused_and_what_is_read_is_canonical_when_printed(text in "[vV0-9a-c.-]{0,24}|\\PC{0,24}") {
        if let Ok(tag) = text.parse::<ReleaseTag>() {
            prop_assert_eq!(tag.to_string().parse::<ReleaseTag>().expect("printed"), tag);
        }
        if let Ok(class) = text.parse::<ClassName>() {
            prop_assert_eq!(class.to_string().parse::<ClassName>().expect("printed"), class);
        }
        if let Ok(version) = text.parse::<StackVersion>() {
            prop_assert_eq!(version.to_string().parse::<StackVersion>().expect("printed"), version);
        }
    }

    #[test]
    fn order_is_total_and_agrees_with_equality(left in version(), middle in version(), right in version()) {
        prop_assert_eq!(left.cmp(&middle), middle.cmp(&left).reverse());
        prop_assert_eq!(left.cmp(&middle) == Ordering::Equal, left == middle);
        if left <= middle && middle <= right {
            prop_assert!(left <= right);
        }
        prop_assert_eq!(left.channel().cmp(middle.channel()) == Ordering::Equal, left.channel() == middle.channel());
    }

    #[test]
    fn numbers_in_patches_compare_as_numbers(left in 0..5000_u32, right in 0..5000_u32, word in "[a-z]{0,3}") {
        let version = |number: u32| format!("v1-alpha.{word}{number}").parse::<StackVersion>().expect("a version");
        prop_assert_eq!(version(left).cmp(&version(right)), left.cmp(&right));
    }
}
