//! The simple reader against the whole one: where it does not give up, both agree.

use proptest::prelude::*;

use super::{read, skim};
use crate::value::Value;
use crate::yaml::decode::{Decoded, decode, refuse_infinite};
use crate::yaml::error::Error;
use crate::yaml::scan::Source;
use crate::yaml::{convert, emit, through_json};

fn whole(text: &str) -> Result<Decoded, Error> {
    let decoded = decode(&Source::read(text.as_bytes())?)?;
    refuse_infinite(&decoded.node)?;
    Ok(decoded)
}

fn agree(text: &str) -> Result<(), TestCaseError> {
    if let Some(simple) = read(text.as_bytes()) {
        prop_assert_eq!(Some(simple), whole(text).ok(), "{}", text);
    }
    if let Some(skimmed) = skim(text.as_bytes(), |key| key == "a") {
        let whole = whole(text).map(|decoded| decoded.node.memory());
        prop_assert!(whole.is_ok_and(|memory| memory <= skimmed.memory), "{}", text);
    }
    Ok(())
}

#[test]
fn what_charts_write_is_simple() {
    for text in [
        "",
        "# nothing\n",
        "# first\n---\na: 1\n",
        "a: 1\nb: x y  # c\nc:\n  d: 'it''s'\n  \"e f\": \"\\\"g\\\" \\n\"\n",
        "- a\n-   b: 1\n    c: [1, \"x\", {k: z}]\n\n-\n- {}\n",
        "a:\n- 1\n- b:\n    - 2\nc: ~\nd:\n",
        "a: |\n  x\n   y\n\n  # z\nb: |-\n\n    x\n  \nc:\n- |+\n  x\n\n\n",
        "a: |\n  x",
        "a: 2020-01-01\nb: 0x1F\nc: 1_000\nd: 08\ne: -.5\nf: yes\ng: --flag\nh: http://x:80/#y\n",
        "ä: ö\n",
        "a:\n  {}\nb: c d\n  e\n\n   - f\n  # g\nh:\n  'i'\n",
        "- a\n  b\n- c:\n    d: e\n     f\n",
        "a: 1\na: 2\n",
        "a: 'b  \n  it''s\n\n\n   c'\nd:\n  - 'e\n\n      '  # f\n",
        "a: '\n  b''\n  '\n",
    ] {
        let simple = read(text.as_bytes());
        assert!(simple.is_some(), "{text}");
        assert_eq!(simple, whole(text).ok(), "{text}");
    }
}

#[test]
fn what_is_wrong_is_left_to_the_whole_reader() {
    for text in [
        "a: b: c\n",
        "a: 1\n b: 2\n",
        "a:\n  - b\n - c\n",
        "a: \"b\n",
        "a: [b\n",
        "a: 'b' c\n",
        "\ta: 1\n",
        "a: .inf\n",
        "- a\nb: 1\n",
        "a\nb: 1\n",
        "a: @b\n",
        "a: \"\\/\"\n",
        "? a\n: b\n",
        "~: 1\n",
        "a: |\n    b\n  c\n",
        "a: \u{1}\n",
        "a: *b\n",
        "a: 'b\n",
        "a:\n  b: 'c\n  d'\n",
    ] {
        assert_eq!(read(text.as_bytes()), None, "{text}");
        assert!(skim(text.as_bytes(), |_| false).is_none(), "{text}");
    }
}

/// Pieces that have a meaning somewhere.
const PIECES: [&str; 46] = [
    "a", "b", "key", ": ", ":", "- ", "-", "\n", "\n", "\n  ", "\n  ", "\n    ", "\n ", "  ", " ", "'", "''", "\"",
    "\\", "\\n", "|", "|-", "|+", "|2", ">", "[", "]", "{", "}", ", ", ",", "#", " # c", "1", "0x1", "1.5", "~", "yes",
    ".inf", "-", "---", "...", "\t", "<<", "&x", "ä",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn both_readers_agree_on_pieces(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24)) {
        agree(&pieces.concat())?;
    }

    #[test]
    fn both_readers_agree_on_lines(lines in prop::collection::vec(
        (0_usize..4, prop::sample::select(&["a:", "b: 1", "- a", "- b: 1", "-", "a: |", "- |-", "c: |+", "# x", "", "text", "a: [1, b]",
            "- 'x'", "d: \"y\"", "e: {f: g}", "- - a", "a: b c", " ", "f: 'g", "h'"][..])), 0..10), end in any::<bool>()) {
        let mut text = lines.iter().map(|(indent, line)| format!("{}{line}", "  ".repeat(*indent))).collect::<Vec<_>>().join("\n");
        if end {
            text.push('\n');
        }
        agree(&text)?;
    }

    #[test]
    fn converted_values_are_what_their_json_is(number in any::<f64>(), integer in any::<i64>(), text in "[ -~äé\n\t\u{7f}\u{85}]{0,8}", key in "[a-z<:.0-9]{0,3}") {
        for value in [Value::Float(number), Value::Float(number.trunc()), Value::int(integer), Value::from(text.as_str())] {
            let map = Value::Map([(key.as_str(), value)].into_iter().collect());
            if let Some(node) = convert::node(&map) {
                prop_assert_eq!(Some(emit(&node)), through_json(&map).ok().map(|node| emit(&node)));
            }
        }
    }
}
