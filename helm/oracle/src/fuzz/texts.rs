//! Texts of other languages for templates: words, patterns, versions, formats, URLs, YAML, JSON and TOML.

use std::fmt::Write as _;

use proptest::prelude::{BoxedStrategy, Just, Strategy, any};
use proptest::sample::select;
use proptest::{collection, option, prop_oneof};

type Text = BoxedStrategy<String>;

/// A text as a Go string literal.
pub(super) fn literal(text: &str) -> String {
    let mut literal = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                literal.push('\\');
                literal.push(character);
            }
            '\n' => literal.push_str("\\n"),
            character if u32::from(character) < 0x20 || character == '\u{7f}' => {
                // Writing to a String does not fail.
                let _ = write!(literal, "\\x{:02x}", u32::from(character));
            }
            character => literal.push(character),
        }
    }
    literal.push('"');
    literal
}

fn pieces(pieces: &'static [&'static str], most: usize) -> Text {
    collection::vec(select(pieces), 0..=most)
        .prop_map(|pieces| pieces.concat())
        .boxed()
}

/// Words with everything that quoting, splitting and folding look at.
pub(super) fn words() -> Text {
    prop_oneof![
        3 => pieces(&["a", "b", "Hello", "world", "foo_bar", "fooBar", "-", "_", " ", ".", ",", "1", "42", "é", "ß", "/"], 6),
        1 => select(&["", "yes", "No", "null", "~", "1", "1.5", "0x1f", "0777", "1e3", "true", "-", "- a", "a: b", "a #b", "#a", "'a'", "\"a\"", "12:30", "1_000", ".inf", "=", "<<", "!a", "&a", "*a", "?", "|", ">", "%a", "@a", "`a", "{{ x }}", "[a", "{a", " a", "a ", "a\n", "a\n\n", "\na", "a\nb", " a\nb", "a \nb", "x\ty", "\u{feff}a", "\u{85}", "\u{2028}", "😀", "2020-01-01", "0o7", "1:20:30", "---", "...", "\r\n", "é\u{301}"][..]).prop_map(str::to_owned),
        1 => collection::vec(any::<char>(), 0..6).prop_map(|characters| characters.into_iter().filter(|character| *character != '\0').collect()),
        1 => (1usize..40, select(&["word ", "longer-word ", "x  y ", "\u{e9}t\u{e9} ", "a: b "][..])).prop_map(|(times, word)| word.repeat(times)),
    ]
    .boxed()
}

pub(super) fn pattern() -> Text {
    pieces(
        &[
            "a",
            "b",
            "o",
            "l",
            "[a-z]",
            "[^a]",
            "[[:alpha:]]",
            "(a|b)",
            "(?:x)",
            "(?i)A",
            "(?P<n>o)",
            ".",
            "\\d",
            "\\w+",
            "\\s",
            "\\b",
            "^",
            "$",
            "*",
            "+",
            "?",
            "{2}",
            "{1,3}",
            "{,2}",
            "|",
            "\\.",
            "\\Qa.b\\E",
            "\\pL",
            "[[a]",
            "\\x41",
            "(",
            ")",
            "[",
            "\\",
            "*?",
            "\\z",
            "(?s).",
            "(?m)^",
            "é",
            "[a&&b]",
            "\\<",
        ],
        5,
    )
}

pub(super) fn version() -> Text {
    prop_oneof![
        3 => (option::of(Just("v")), 0u8..4, option::of(0u8..12), option::of(0u8..12), option::of(select(&["-beta", "-alpha.1", "-0", "+build", "-rc.1+b5", "-gke.100"][..])))
            .prop_map(|(prefix, major, minor, patch, suffix)| {
                let minor = minor.map_or_else(String::new, |minor| format!(".{minor}"));
                let patch = patch.filter(|_| !minor.is_empty()).map_or_else(String::new, |patch| format!(".{patch}"));
                format!("{}{major}{minor}{patch}{}", prefix.unwrap_or_default(), suffix.unwrap_or_default())
            }),
        1 => pieces(&["1", ".", "0", "-", "+", "v", "a", "01", "x", " "], 7),
    ]
    .boxed()
}

pub(super) fn constraint() -> Text {
    let part = (select(&["", "=", "!=", ">", "<", ">=", "=>", "<=", "~", "~>", "^", " ", "> "][..]), prop_oneof![4 => version(), 1 => select(&["1.x", "1.2.x", "*", "x", "X.1", "1.*", "0.0.x"][..]).prop_map(str::to_owned)])
        .prop_map(|(operator, version)| format!("{operator}{version}"));
    prop_oneof![
        3 => part.clone(),
        1 => (part.clone(), select(&[", ", " ", " || ", " - ", "||", ",", "  "][..]), part).prop_map(|(left, between, right)| left + between + &right),
    ]
    .boxed()
}

pub(super) fn format() -> Text {
    let flag = select(&["", "", "", "-", "+", "#", " ", "0", "-0", "+0", "# "][..]);
    let width = select(&["", "", "", "1", "5", "12", "*"][..]);
    let precision = select(&["", "", "", ".0", ".2", ".", ".9", ".*"][..]);
    let verb = select(
        &[
            "s", "d", "v", "q", "t", "x", "X", "f", "g", "e", "G", "E", "b", "o", "O", "c", "U", "T", "%", "p", "z",
            "!", "é",
        ][..],
    );
    let index = select(&["", "", "", "", "", "[1]", "[2]", "[9]", "[x]"][..]);
    let directive = (flag, index, width, precision, verb)
        .prop_map(|(flag, index, width, precision, verb)| format!("%{flag}{index}{width}{precision}{verb}"));
    collection::vec(
        prop_oneof![3 => directive, 1 => select(&["a", " ", "%", "%%", "\n", "é"][..]).prop_map(str::to_owned)],
        1..4,
    )
    .prop_map(|parts| parts.concat())
    // A pointer is different each time.
    .prop_filter("pointers", |format| !format.contains('p'))
    .boxed()
}

pub(super) fn url() -> Text {
    pieces(
        &[
            "http", "://", "https", "user", ":", "pass", "@", "host", ".example", ":80", "/", "path", "a%20b", "?",
            "q=1", "&", "#", "frag", "[::1]", "%zz", " ", "é", "mailto:", "//",
        ],
        8,
    )
}

fn scalar() -> Text {
    prop_oneof![
        3 => select(&["a", "b c", "1", "-1", "1.5", "1e3", "0x1F", "0777", "0o17", "0b11", "1_000", "08", "1.", ".5", "-.5", "+1", "1e400", "18446744073709551616", "true", "yes", "No", "on", "OFF", "y", "null", "~", "", "2020-01-01", "12:30", "=", "<<", "a:b", "a#b", "a #c", "-a", "?a", "'q''q'", "\"d\\n\\x41\\u00e9\"", "\"\\/\"", "!!str 1", "!!int '5'", "!!float 5", "!!binary aGk=", "!foo bar", "&x a", "*x", "*nope", "{a: 1, b}", "[a, [b], {c: d}]", "[]", "{}", "{a, b: }", "@a", "%a", "`a", "a: b: c", "\"unclosed", "'", "[", ".inf", ".nan", "0.1e-7", "1e+06", "123456789012345678901", "9007199254740993", "a\n  b", "a\n\n  b", "\"a\n  b\"", "'a\n  b'"][..]).prop_map(str::to_owned),
        1 => words(),
        1 => (select(&["|", ">", "|-", ">-", "|+", ">+", "|2", ">1"][..]), collection::vec(select(&["  text", "    more", "", "  # no comment", "   ", "\ttab", " one"][..]), 0..4)).prop_map(|(head, lines)| format!("{head}\n{}", lines.join("\n"))),
    ]
    .boxed()
}

/// YAML, most of it well formed, and some that has a hole in it.
pub(super) fn yaml() -> Text {
    let key = select(
        &[
            "a", "b", "c", "key", "1", "yes", "a b", "\"q\"", "'s'", "<<", "? k\n", "&k z", "null", "1.5", "é",
        ][..],
    );
    let node = scalar().prop_recursive(3, 12, 4, move |inner| {
        let indented = |text: String| text.replace('\n', "\n  ");
        let entries = collection::vec((key.clone(), inner.clone()), 1..4).prop_map(move |entries| {
            let entries: Vec<String> = entries
                .into_iter()
                .map(|(key, value)| {
                    let line = if value.contains(": ") && !value.contains('\n') {
                        "\n  "
                    } else {
                        " "
                    };
                    format!("{key}:{line}{}", indented(value))
                })
                .collect();
            format!("\n{}", entries.join("\n"))
        });
        let items = collection::vec(inner, 1..4).prop_map(move |items| {
            let items: Vec<String> = items.into_iter().map(|item| format!("- {}", indented(item))).collect();
            format!("\n{}", items.join("\n"))
        });
        prop_oneof![2 => entries, 1 => items]
    });
    let frame = select(
        &[
            "",
            "",
            "",
            "",
            "---\n",
            "# c\n",
            "%YAML 1.1\n---\n",
            "\u{feff}",
            "\n\n",
            "--- a\n",
            "\t",
        ][..],
    );
    let end = select(&["", "", "\n", "\n...\n", "\n---\nb: 2\n", "\n# c", " # c", "\r\n", "\n "][..]);
    (frame, node, end)
        .prop_map(|(frame, node, end)| format!("{frame}{}{end}", node.trim_start_matches('\n')))
        // Which of two keys that are refused Helm meets first is chance.
        .prop_filter("keys that are null", |text| text.matches("null:").count() < 2)
        .boxed()
}

pub(super) fn json() -> Text {
    let leaf = select(
        &[
            "1",
            "-0",
            "1.5e3",
            "1e400",
            "01",
            "true",
            "null",
            "\"a\"",
            "\"\\u00e9\\ud83d\\ude00\"",
            "\"\\ud800\"",
            "\"\\x\"",
            "\"<&>\"",
            "\"\u{2028}\"",
            "nul",
            "\"",
            "'a'",
            "1.0",
            "12345678901234567890",
            "1e-7",
            "0.000001",
            "1e21",
            "{}",
            "[]",
            "",
            "\"\t\"",
        ][..],
    )
    .prop_map(str::to_owned);
    leaf.prop_recursive(3, 12, 4, |inner| {
        let key = select(&["\"a\"", "\"b\"", "\"a\"", "\"\"", "b", "1", "\"A\""][..]);
        prop_oneof![
            collection::vec((key, inner.clone()), 0..4).prop_map(|entries| {
                let entries: Vec<String> = entries
                    .into_iter()
                    .map(|(key, value)| format!("{key}: {value}"))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }),
            collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
        ]
    })
    .boxed()
}

pub(super) fn toml() -> Text {
    let value = select(
        &[
            "1",
            "-1",
            "+1",
            "1_000",
            "0x1F",
            "0o7",
            "0b1",
            "1.5",
            "1e3",
            "inf",
            "nan",
            "true",
            "\"a\"",
            "'a'",
            "\"\\u00e9\"",
            "\"\"\"a\nb\"\"\"",
            "'''a'''",
            "[1, 2]",
            "[1, \"a\"]",
            "[]",
            "{a = 1}",
            "{}",
            "1979-05-27T07:32:00Z",
            "1979-05-27",
            "07:32:00",
            "1979-05-27 07:32:00",
            "01",
            "1.",
            "a",
            "",
            "\"",
            "[1",
            "{a = 1,}",
            "9223372036854775808",
        ][..],
    );
    let key = select(&["a", "b", "c", "a.b", "\"q\"", "'s'", "1", "", "a b", "é"][..]);
    let line = prop_oneof![
        4 => (key.clone(), value).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => key.clone().prop_map(|key| format!("[{key}]")),
        1 => key.prop_map(|key| format!("[[{key}]]")),
        1 => select(&["# c", "", "=", "[", "a"][..]).prop_map(str::to_owned),
    ];
    collection::vec(line, 0..5).prop_map(|lines| lines.join("\n")).boxed()
}
