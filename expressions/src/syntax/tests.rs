use proptest::prelude::{ProptestConfig, any, prop_oneof, proptest};
use proptest::strategy::Strategy;
use proptest::test_runner::RngSeed;

use super::{DEEPEST, LONGEST_TEXT, MOST_LISTS, ParseError, is_variable, parse};

fn refusal(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

#[test]
fn an_error_says_where_and_what_was_expected() {
    for (text, expected) in [
        (
            "a.b ==",
            "line 1, column 7: expected a value, a name or an opening bracket, found the end",
        ),
        (
            "a.b == 1 c",
            "line 1, column 10: expected an operator or the end, found \"c\"",
        ),
        ("(a", "line 1, column 3: expected \")\" or an operator, found the end"),
        ("[1, 2", "line 1, column 6: expected \",\" or \"]\", found the end"),
        (
            "a &&\n  b.\n",
            "line 3, column 1: expected the name of a field or function, found the end",
        ),
        ("é = 1", "line 1, column 1: the character 'é' means nothing here"),
        ("\"é\" = 1", "line 1, column 5: a single = compares nothing: write =="),
        ("a & b", "line 1, column 3: a single & means nothing: write &&"),
        ("'abc", "line 1, column 1: a text begins here and is not closed"),
        (
            r"'\d'",
            "line 1, column 1: the escape \"\\\\d\" is none of the language",
        ),
        (
            "a ? b",
            "line 1, column 6: expected \":\" and what holds otherwise, found the end",
        ),
        (
            "99999999999999999999 == 1",
            "line 1, column 1: the number 99999999999999999999 is too large",
        ),
        (
            "namespace.a",
            "line 1, column 1: expected the name of a variable, found \"namespace\", a word that the language reserves: give the object another key",
        ),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
        let error = parse(text).expect_err(text);
        let position = error.position().expect("it is about a place");
        assert_eq!(format!("{position}: {}", error.problem()), expected, "{text}");
    }
}

#[test]
fn nesting_is_refused_before_it_exhausts_the_stack() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("-(", ")"),
        ("a[", "]"),
        ("f(", ")"),
        ("{1:", "}"),
        ("1?1:", ""),
        ("a.all(x,", ")"),
        ("true&&(", ")"),
    ] {
        for times in [DEEPEST + 1, LONGEST_TEXT / (open.len() + close.len()) - 1, 100_000] {
            let text = format!("{}1{}", open.repeat(times), close.repeat(times));
            let error = parse(&text).expect_err(open);
            assert!(
                matches!(error, ParseError::TooDeep { .. } | ParseError::TooLong { .. }),
                "{open}: {error}"
            );
        }
    }
}

#[test]
fn a_row_that_makes_a_deep_tree_is_refused_and_a_row_of_conditions_is_not() {
    for (first, part) in [("1", "+1"), ("a", ".a"), ("a", "[1]"), ("a", ".a()")] {
        let error = parse(&format!("{first}{}", part.repeat(2000))).expect_err(part);
        assert!(matches!(error, ParseError::TooDeep { .. }), "{part}: {error}");
    }
    for row in ["true && ", "true || ", "!"] {
        assert!(parse(&format!("{}true", row.repeat(2000))).is_ok(), "{row}");
    }
}

#[test]
fn more_lists_maps_and_macros_than_allowed_are_refused() {
    let deeper = format!(".map(x, {}x{})", "[".repeat(40), "]".repeat(40));
    let one_more = MOST_LISTS + 1;
    for text in [
        format!("[0]{} == []", deeper.repeat(50)),
        format!("true{}", " && 1 in [1]".repeat(one_more)),
        format!("true{}", " && 1 in {1: 1}".repeat(one_more)),
        format!("true{}", " && a.all(x, x)".repeat(one_more)),
    ] {
        let error = parse(&text).expect_err(&text);
        assert!(matches!(error, ParseError::TooManyLists { .. }), "{text}: {error}");
    }
    assert!(parse(&format!("true{}", " && 1 in [1]".repeat(MOST_LISTS))).is_ok());
}

#[test]
fn depth_up_to_the_bound_is_understood() {
    let within = DEEPEST - 1;
    assert!(parse(&format!("{}1{}", "(".repeat(within), ")".repeat(within))).is_ok());
    assert!(parse(&format!("{}1{}", "[".repeat(within), "]".repeat(within))).is_ok());
}

#[test]
fn what_was_written_can_be_shown_part_by_part() {
    let expression = parse("a.b == 1 &&\n (c.d || e[0])").expect("an expression");
    let written: Vec<_> = expression
        .root
        .kind
        .children()
        .into_iter()
        .map(|node| expression.written(node))
        .collect();
    assert_eq!(written, ["a.b == 1", "(c.d || e[0])"]);
}

/// Texts of the words of the language, in any order: nearer to an expression than any characters are.
pub(crate) fn words() -> impl Strategy<Value = String> {
    const WORDS: [&str; 52] = [
        "a",
        "b",
        ".a",
        ".b",
        ".status",
        "[0]",
        "[-1]",
        "[\"a\"]",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "?",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        " in ",
        "&&",
        "||",
        "1",
        "2u",
        "0.5",
        "\"x\"",
        "b'x'",
        "null",
        "true",
        "false",
        "has(",
        "size(",
        "string(",
        "timestamp(",
        "duration(",
        ".all(x,",
        ".exists(x,",
        ".map(x,",
        ".filter(x,",
        "x",
        ".matches(",
        ".contains(",
    ];
    let word = (0..WORDS.len()).prop_map(|index| WORDS[index].to_owned());
    let word = prop_oneof![20 => word, 1 => any::<char>().prop_map(String::from)];
    proptest::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_understood_or_refused(text in ".*") {
        let _ = parse(&text);
    }

    #[test]
    fn any_words_are_understood_or_refused(text in words()) {
        let _ = parse(&text);
    }
}

#[test]
fn what_an_expression_reads_of_an_object_is_known() {
    let reads = |text: &str| parse(text).expect("an expression").reads("harbor", "status");
    for text in [
        "harbor.status.readyReplicas == 1",
        "quay.spec.on || has(harbor.status)",
        "harbor[\"status\"].readyReplicas == 1",
        "[1].all(one, harbor.status.readyReplicas >= one)",
        "harbor == quay",
        "harbor[quay.spec.field] == 1",
        "size(harbor) > 3",
    ] {
        assert!(reads(text), "{text}");
    }
    for text in [
        "harbor.spec.status == 1",
        "quay.status.readyReplicas == 1 && harbor.spec.replicas == 1",
        "sharbor.status.on",
        "harbor[\"spec\"].replicas == 1",
        "\"harbor.status\" == quay.spec.text",
    ] {
        assert!(!reads(text), "{text}");
    }
}

#[test]
fn a_variable_is_a_name_that_the_language_does_not_keep_for_itself() {
    for name in ["a", "_", "myNode", "my_node_2", "has", "size", "int"] {
        assert!(is_variable(name), "{name}");
    }
    for text in [
        "",
        "my-node",
        "my.node",
        "2nd",
        "in",
        "true",
        "null",
        "namespace",
        "(a)",
        " a",
        "a//",
        "é",
        "'a'",
    ] {
        assert!(!is_variable(text), "{text:?}");
    }
}
