//! Tables for merging, summarising, linting and cutting.

use jiff::Timestamp;
use strum::IntoEnumIterator;

use super::*;
use ConditionType::{
    ClusterStackReleaseDownloaded, HelmChartApplied, Paused, ProviderClusterStackReleaseReady, Ready, Reconciling,
    Stalled,
};

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn failing(type_: ConditionType, severity: Severity, message: &str) -> Finding {
    Finding::fails(type_, severity, Reason::FailedToApplyObjects, message)
}

fn merged(findings: Vec<Finding>) -> Vec<Condition> {
    merge(&[], findings, at("2026-11-21T10:00:00Z"))
}

#[test]
fn the_vocabulary_contains_the_words_of_the_contract() {
    for type_ in [
        "ClusterReady",
        "EvaluatedCEL",
        "HelmChartFound",
        "HelmChartTemplated",
        "ClusterAddonConfigValidated",
        "HelmChartApplied",
        "HookServerReady",
        "HelmChartDeleted",
        "ProviderClusterStackReleasesSynced",
        "ClusterStackReleasesSynced",
        "ClusterStackReleaseAvailable",
        "ClusterStackReleaseDownloaded",
        "ProviderClusterStackReleaseReady",
        "AssetsClientAPIAvailable",
        "ReleasesSynced",
        "Ready",
        // The Go provider for OpenStack.
        "ClusterStackReleaseAssetsReady",
        "OpenStackNodeImageReleasesReady",
        "CloudAvailable",
        "OpenStackImageServiceClientAvailable",
        "OpenStackImageImportStarted",
        "OpenStackImageActive",
    ] {
        assert_eq!(type_.parse::<ConditionType>().expect(type_).as_str(), type_);
    }
    for reason in [
        "ControlPlaneNotReady",
        "FailedToEvaluatePreCondition",
        "FailedToEvaluatePostCondition",
        "HelmChartMissing",
        "TemplateOldClusterStackOverwriteFailed",
        "TemplateOldClusterStackFailed",
        "TemplateNewClusterStackOverwriteFailed",
        "TemplateNewClusterStackFailed",
        "ParsingClusterAddonConfigFailed",
        "FailedToApplyObjects",
        "ObjectsApplyingOngoing",
        "HookServerUnresponsive",
        "FailedToDeleteObjects",
        "ProviderTemplateNotFound",
        "FailedToCreateOrUpdate",
        "ReleaseAssetsNotDownloadedYet",
        "IssueWithReleaseAssets",
        "ProcessOngoing",
        "FailedCreateAssetsClient",
        "FailedToSync",
        "ReleaseOwnedByOtherStack",
        "Contested",
        // The Go provider for OpenStack.
        "CloudNotSet",
        "SecretNotFound",
        "OpenStackImageServiceClientNotSet",
        "OpenStackImageImportNotStartReason",
        "OpenStackImageNotCreateYet",
        "OpenStackImageNotImportedYet",
        "OpenStackImageImportTimeOutReason",
        "IssueWithOpenStackImage",
    ] {
        assert_eq!(reason.parse::<Reason>().expect(reason).as_str(), reason);
    }
    for type_ in ConditionType::iter() {
        assert_eq!(serde_json::to_value(type_).expect("JSON"), type_.as_str());
    }
    for reason in Reason::iter() {
        assert_eq!(serde_json::to_value(reason).expect("JSON"), reason.as_str());
    }
}

#[test]
fn the_time_changes_only_with_the_status() {
    let first = merge(
        &[],
        [failing(HelmChartApplied, Severity::Error, "one")],
        at("2026-11-21T10:00:00.75Z"),
    );
    assert_eq!(first[0].last_transition_time.0, at("2026-11-21T10:00:00Z"));
    let reworded = merge(
        &first,
        [Finding::fails(
            HelmChartApplied,
            Severity::Info,
            Reason::ObjectsNotHealthy,
            "two",
        )],
        at("2026-11-21T11:00:00Z"),
    );
    assert_eq!(reworded[0].last_transition_time, first[0].last_transition_time);
    assert_eq!(
        (
            reworded[0].severity,
            reworded[0].reason.as_deref(),
            reworded[0].message.as_deref()
        ),
        (Some(Severity::Info), Some("ObjectsNotHealthy"), Some("two"))
    );
    let turned = merge(
        &reworded,
        [Finding::holds(HelmChartApplied)],
        at("2026-11-21T12:00:00Z"),
    );
    assert_eq!(turned[0].last_transition_time.0, at("2026-11-21T12:00:00Z"));
    assert_eq!(
        (turned[0].severity, &turned[0].reason, &turned[0].message),
        (None, &None, &None)
    );
    assert!(
        merge(&turned, [], at("2026-11-21T13:00:00Z")).is_empty(),
        "nothing is latched"
    );
}

#[test]
fn merging_the_same_findings_again_changes_nothing() {
    let findings = || {
        with_ready(vec![
            failing(HelmChartApplied, Severity::Error, "one"),
            Finding::holds(ClusterStackReleaseDownloaded),
        ])
    };
    let first = merge(&[], findings(), at("2026-11-21T10:00:00Z"));
    assert_eq!(merge(&first, findings(), at("2026-11-22T10:00:00Z")), first);
    let types: Vec<&str> = first.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(types, ["Ready", "ClusterStackReleaseDownloaded", "HelmChartApplied"]);
}

#[test]
fn ready_is_the_worst_group_and_in_it_the_first_by_name() {
    let unknown = Finding::unknown(ClusterStackReleaseDownloaded, Reason::NotObservedYet, "who knows");
    let table: Vec<(Vec<Finding>, ConditionStatus, Option<Severity>, &str)> = vec![
        (vec![], ConditionStatus::Unknown, None, ""),
        (vec![unknown.clone()], ConditionStatus::Unknown, None, "who knows"),
        (
            vec![unknown.clone(), Finding::holds(HelmChartApplied)],
            ConditionStatus::True,
            None,
            "",
        ),
        (
            vec![
                unknown,
                failing(ProviderClusterStackReleaseReady, Severity::Info, "info"),
                Finding::holds(HelmChartApplied),
            ],
            ConditionStatus::False,
            Some(Severity::Info),
            "info",
        ),
        (
            vec![
                failing(ClusterStackReleaseDownloaded, Severity::Info, "info"),
                failing(ProviderClusterStackReleaseReady, Severity::Warning, "warning"),
            ],
            ConditionStatus::False,
            Some(Severity::Warning),
            "warning",
        ),
        (
            vec![
                failing(ProviderClusterStackReleaseReady, Severity::Error, "second"),
                failing(HelmChartApplied, Severity::Error, "first"),
                failing(ClusterStackReleaseDownloaded, Severity::Warning, "warning"),
            ],
            ConditionStatus::False,
            Some(Severity::Error),
            "first",
        ),
        (
            vec![
                Finding::holds(HelmChartApplied),
                Finding::holds_because(Reconciling, Reason::Progressing, "working"),
                Finding::holds_because(Stalled, Reason::InvalidSpec, "stuck"),
                Finding::holds_because(Paused, Reason::Suspended, "still"),
            ],
            ConditionStatus::True,
            None,
            "",
        ),
        (
            vec![
                Finding::holds_because(ProviderClusterStackReleaseReady, Reason::Drifted, "second"),
                Finding::holds_because(HelmChartApplied, Reason::Drifted, "first"),
                Finding::holds(ClusterStackReleaseDownloaded),
            ],
            ConditionStatus::True,
            None,
            "first",
        ),
    ];
    for (findings, status, severity, message) in table {
        let ready = summarise_ready(&findings);
        assert_eq!(
            (ready.status(), ready.severity(), ready.message()),
            (status, severity, message),
            "{findings:?}"
        );
        let conditions = merged(with_ready(findings));
        let written = find(&conditions, Ready).expect("Ready");
        assert_eq!(written.status, status);
        assert!(!lint(&conditions, 1, 1).contains(&Flaw::ReadyIsNotTheSummary));
    }
}

#[test]
fn long_messages_are_cut_at_a_character() {
    for length in [MESSAGE_BYTES - 1, MESSAGE_BYTES] {
        assert_eq!(cut(&"a".repeat(length)).len(), length);
    }
    // Two bytes each, and an odd place for the cut.
    let cut_message = cut(&format!("a{}", "ä".repeat(MESSAGE_BYTES)));
    assert!(cut_message.len() <= MESSAGE_BYTES && cut_message.len() > MESSAGE_BYTES - 4);
    assert!(cut_message.ends_with("ä..."));
    let finding = failing(HelmChartApplied, Severity::Error, &"x".repeat(5000));
    assert_eq!(finding.message().len(), MESSAGE_BYTES);
}

#[test]
fn no_message_of_a_condition_steers_a_terminal_or_turns_the_direction_of_text() {
    let words = "\u{1b}]0;owned\u{7}\u{1b}[2Jall\r\nwell\u{9b}31m\u{202e}";
    let told = "]0;owned [2Jall well 31m";
    let findings = [
        Finding::holds_because(Ready, Reason::Progressing, words),
        Finding::fails(Ready, Severity::Error, Reason::InvalidSpec, words),
        Finding::unknown(Ready, Reason::NotObservedYet, words),
    ];
    for finding in findings {
        assert_eq!(finding.message(), told, "{finding:?}");
    }
    let paused = paused(&[], Reason::Suspended, words, at("2026-11-21T11:00:00Z"));
    assert!(
        paused
            .iter()
            .any(|condition| condition.message.as_deref() == Some(told)),
        "{paused:?}"
    );
}

#[test]
fn a_paused_object_keeps_what_it_said_and_says_why_it_stands_still() {
    let pause = |stored: &[Condition], now: &str| paused(stored, Reason::Suspended, "set it to false", at(now));
    let stored = sound();
    let first = pause(&stored, "2026-11-21T11:00:00.5Z");
    assert_eq!(lint(&first, 3, 2), [], "also when the generation is another one");
    let types: Vec<&str> = first.iter().map(|condition| condition.type_.as_str()).collect();
    let all = [
        "Ready",
        "ClusterStackReleaseDownloaded",
        "HelmChartApplied",
        "Paused",
        "Stalled",
    ];
    assert_eq!(types, all);
    let (ready, before) = (&first[0], &stored[0]);
    assert_eq!(
        (ready.status, ready.severity, &ready.last_transition_time),
        (before.status, before.severity, &before.last_transition_time)
    );
    for says in [ready, &first[3]] {
        let words = (says.reason.as_deref(), says.message.as_deref());
        assert_eq!(words, (Some("Suspended"), Some("set it to false")));
    }
    assert_eq!(first[3].last_transition_time.0, at("2026-11-21T11:00:00Z"));
    assert_eq!([&first[1], &first[2], &first[4]], [&stored[1], &stored[2], &stored[3]]);
    assert_eq!(pause(&first, "2026-11-21T12:00:00Z"), first, "the same again");
}

#[test]
fn an_object_that_is_paused_before_anybody_looked_at_it_is_unknown() {
    let conditions = paused(&[], Reason::Paused, "remove it", at("2026-11-21T10:00:00Z"));
    assert_eq!(lint(&conditions, 1, 0), []);
    let statuses: Vec<_> = conditions
        .iter()
        .map(|condition| (condition.type_.as_str(), condition.status))
        .collect();
    let expected = [("Ready", ConditionStatus::Unknown), ("Paused", ConditionStatus::True)];
    assert_eq!(statuses, expected);
}

/// Conditions without a flaw, to be spoilt one by one.
fn sound() -> Vec<Condition> {
    merged(with_ready(vec![
        failing(HelmChartApplied, Severity::Error, "refused"),
        Finding::holds_because(Stalled, Reason::InvalidSpec, "refused"),
        Finding::holds(ClusterStackReleaseDownloaded),
    ]))
}

#[test]
fn sound_conditions_have_no_flaw() {
    assert_eq!(lint(&sound(), 3, 3), []);
    let working = merged(with_ready(vec![
        Finding::holds(HelmChartApplied),
        Finding::holds_because(Reconciling, Reason::Progressing, "upgrading"),
    ]));
    assert_eq!(lint(&working, 3, 2), []);
}

#[test]
fn every_flaw_is_found() {
    type Spoil = fn(&mut Vec<Condition>);
    let ready_and = |findings: Vec<Finding>| merged(with_ready(findings));
    let spoilt = |spoil: Spoil| {
        let mut conditions = sound();
        spoil(&mut conditions);
        conditions
    };
    let name = || "HelmChartApplied".to_owned();
    let table = [
        (merged(vec![Finding::holds(HelmChartApplied)]), Flaw::ReadyMissing),
        (
            ready_and(vec![
                failing(HelmChartApplied, Severity::Error, ""),
                Finding::holds_because(Stalled, Reason::InvalidSpec, ""),
                Finding::holds_because(Reconciling, Reason::Progressing, ""),
            ]),
            Flaw::ReconcilingAndStalled,
        ),
        (
            ready_and(vec![
                Finding::holds(HelmChartApplied),
                Finding::holds_because(Stalled, Reason::InvalidSpec, ""),
            ]),
            Flaw::StalledButNotFalse,
        ),
        (ready_and(vec![]), Flaw::UnknownWithoutReconciling),
        (
            spoilt(|all| all[3].status = ConditionStatus::Unknown),
            Flaw::PresentButNotTrue(Stalled),
        ),
        (spoilt(|all| all.insert(2, all[2].clone())), Flaw::Duplicate(name())),
        (
            spoilt(|all| all.swap(0, 1)),
            Flaw::Unsorted("ClusterStackReleaseDownloaded, Ready, HelmChartApplied, Stalled".to_owned()),
        ),
        (
            spoilt(|all| all[1].type_ = "Downloaded".to_owned()),
            Flaw::UnknownType("Downloaded".to_owned()),
        ),
        (
            spoilt(|all| all[2].reason = Some("Oops".to_owned())),
            Flaw::UnknownReason(name(), "Oops".to_owned()),
        ),
        (spoilt(|all| all[2].reason = None), Flaw::ReasonMissing(name())),
        (
            spoilt(|all| all[3].reason = None),
            Flaw::ReasonMissing("Stalled".to_owned()),
        ),
        (spoilt(|all| all[2].severity = None), Flaw::SeverityMismatch(name())),
        (
            spoilt(|all| all[1].severity = Some(Severity::Info)),
            Flaw::SeverityMismatch("ClusterStackReleaseDownloaded".to_owned()),
        ),
        (
            spoilt(|all| all[2].message = Some("x".repeat(MESSAGE_BYTES + 1))),
            Flaw::MessageTooLong(name()),
        ),
        (
            spoilt(|all| all[2].last_transition_time = Time(at("2026-11-21T10:00:00.5Z"))),
            Flaw::FractionalTime(name()),
        ),
        (
            spoilt(|all| all[0].message = Some("another story".to_owned())),
            Flaw::ReadyIsNotTheSummary,
        ),
        (
            ready_and(vec![
                Finding::holds(HelmChartApplied),
                Finding::holds_because(Paused, Reason::Suspended, ""),
            ]),
            Flaw::ReadyHidesThePause,
        ),
    ];
    for (conditions, flaw) in table {
        let flaws = lint(&conditions, 3, 3);
        assert!(flaws.contains(&flaw), "{flaw}: found only {flaws:?}");
    }
    assert_eq!(lint(&sound(), 3, 2), [Flaw::BehindWithoutReconciling]);
    assert_eq!(lint(&sound(), 3, 4), [Flaw::ObservedTheFuture]);
}

#[test]
fn words_of_others_become_one_short_line() {
    let table = [
        ("uploading 1 of 2", "uploading 1 of 2"),
        ("  two\r\n\tlines\u{1b}[31m\u{7}  ", "two lines [31m"),
        ("\u{202e}evil\u{2066} words\u{200f}", "evil words"),
        ("\u{85}\n", ""),
        ("Größe: viel zu lang für hier", "Größe: viel zu..."),
    ];
    for (words, expected) in table {
        assert_eq!(one_line(words, 19), expected, "{words:?}");
    }
    assert_eq!(one_line(&"x".repeat(1 << 20), 64).len(), 64);
    assert_eq!(one_line(&"x ".repeat(1 << 20), 64).len(), 64);
}
