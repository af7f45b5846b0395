//! The stages alone; what they make of names together is recorded in `tests/globs`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::matcher::{Every, Matcher, Set};
use super::parse::{Node, parse};
use super::search::Found;
use super::*;
use crate::bounds::begin;

fn matcher(pattern: &str) -> Matcher {
    compile(pattern).unwrap().unwrap().0
}

fn is_match(pattern: &str, name: &str) -> Result<bool, GlobError> {
    compile(pattern).unwrap().unwrap().is_match(name)
}

fn text(text: &str) -> Node {
    Node::Text(text.to_owned())
}

fn boxed(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

#[test]
fn stars_stop_at_slashes_unless_doubled() {
    for (pattern, path, expected) in [
        ("conf/*", "conf/a.txt", true),
        ("conf/*", "conf/x/y.txt", false),
        ("conf/**", "conf/x/y.txt", true),
        ("**.bin", "a/z.bin", true),
        ("*.{yaml,yml}", "a.yml", true),
        ("*.{yaml,yml}", "a.yaml.txt", false),
        ("file[a-c]?", "fileb1", true),
        ("file[!a-c]?", "fileb1", false),
        ("a.b", "axb", false),
    ] {
        assert_eq!(is_match(pattern, path), Ok(expected), "{pattern} {path}");
    }
}

#[test]
fn braces_and_commas_are_text_where_no_brace_is_open() {
    assert_eq!(parse("a}b,c"), Ok(vec![text("a}b,c")]));
    assert_eq!(
        parse("{a,b}"),
        Ok(vec![Node::AnyOf(vec![vec![text("a")], vec![text("b")]])])
    );
    assert_eq!(parse(r"\{a\"), Ok(vec![text("{a")]), "a lone backslash is nothing");
}

#[test]
fn open_braces_end_with_the_pattern() {
    assert_eq!(parse("a{b{"), parse("a{b{}}"));
}

#[test]
fn brackets_hold_one_range_or_a_list() {
    let range = |low, high, is_not| Ok(vec![Node::Range { low, high, is_not }]);
    assert_eq!(parse("[a-c]"), range('a', 'c', false));
    assert_eq!(parse("[!--]]"), range('-', ']', true));
    for (pattern, characters) in [("[ab-c]", "ab-c"), ("[-a]", "-a"), (r"[\]]", "]"), ("[a\0]", "a")] {
        let characters = characters.chars().collect();
        assert_eq!(
            parse(pattern),
            Ok(vec![Node::List {
                characters,
                is_not: false
            }]),
            "{pattern}"
        );
    }
    for pattern in [
        "[",
        "[]",
        "[!]",
        "[a",
        "[a-",
        "[a-]",
        "[c-a]",
        "[a-bc]",
        "[\0",
        "[\u{fffd}]",
    ] {
        assert_eq!(parse(pattern), Err(ParseError::Syntax), "{pattern}");
        assert!(compile(pattern).unwrap().is_none(), "{pattern}");
    }
}

#[test]
fn a_nul_ends_a_text_or_the_pattern() {
    assert_eq!(parse("a\0b"), Ok(vec![text("a"), text("b")]));
    assert_eq!(parse("a*\0[b"), Ok(vec![text("a"), Node::Any]));
}

#[test]
fn neighbours_are_glued() {
    assert_eq!(matcher("**{**}"), Matcher::Super);
    assert_eq!(matcher("*{*}"), Matcher::Any);
    let every = |least, is_exact, without: &str| {
        Matcher::Every(Every {
            least,
            is_exact,
            without: without.into(),
        })
    };
    assert_eq!(matcher("?*?"), every(2, false, "/"));
    assert_eq!(matcher("[!ab][!ab]"), every(2, true, "ab"));
    let row = vec![matcher("a"), Matcher::One(Set::no_slash())];
    assert_eq!(matcher("a?"), Matcher::row(2, row));
}

#[test]
fn shared_ends_leave_the_alternatives() {
    assert_eq!(matcher("{*a,*a}"), Matcher::SuffixAny(boxed("a")));
    assert_eq!(matcher("{a**,a**}"), Matcher::Prefix(boxed("a")));
}

#[test]
fn a_beginning_may_overlap_an_end() {
    assert_eq!(matcher("ab**ba"), Matcher::PrefixSuffix(boxed("ab"), boxed("ba")));
    assert_eq!(is_match("ab**ba", "aba"), Ok(true));
    assert_eq!(is_match("ab*ba", "aba"), Ok(false));
}

#[test]
fn rows_take_their_characters_for_bytes() {
    assert_eq!(is_match("?.txt", "a.txt"), Ok(true));
    assert_eq!(is_match("?.txt", "é.txt"), Ok(false));
    assert_eq!(
        matcher("?a").find_in("xxa".as_bytes()),
        Ok(Some(Found {
            start: 1,
            lengths: vec![2]
        }))
    );
}

#[test]
fn trees_inside_of_others_are_never_found() {
    assert_eq!(is_match("a.{t*,m*}", "a.txt"), Ok(true));
    assert_eq!(is_match("a.{t*,y}", "a.txt"), Ok(false));
}

#[test]
fn nothing_behind_the_last_character_is_a_panic_of_go() {
    let cut = Err(GlobError::Cut { end: 2, length: 1 });
    assert_eq!(is_match("a{}", "a"), cut);
    assert_eq!(is_match("a{}", "b"), Ok(false));
}

#[test]
fn long_and_deep_patterns_are_refused() {
    assert_eq!(compile(&"a".repeat(MAX_PATTERN + 1)).err(), Some(GlobError::Length));
    assert!(compile(&"a".repeat(MAX_PATTERN)).is_ok());
    assert_eq!(compile(&"{".repeat(MAX_DEPTH + 1)).err(), Some(GlobError::Depth));
    assert_eq!(compile(&"*a".repeat(MAX_DEPTH + 2)).err(), Some(GlobError::Depth));
    assert!(compile(&"*a".repeat(MAX_DEPTH / 2)).is_ok());
}

#[test]
fn a_pattern_that_goes_back_too_often_runs_out_of_steps() {
    begin(100_000, &Arc::new(AtomicBool::new(false)));
    let found = is_match(&"*a".repeat(40), &format!("{}b", "a".repeat(200)));
    assert_eq!(found, Err(GlobError::Bound(BoundError::Steps)));
}
