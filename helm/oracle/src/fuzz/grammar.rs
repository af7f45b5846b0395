//! Templates by grammar: mostly such as run, some that fail, none whose answer is random.
//!
//! Everything is a strategy of proptest over text, so whatever is generated can be made smaller while it stays a difference.

use proptest::prelude::{BoxedStrategy, Just, Strategy, any};
use proptest::sample::select;
use proptest::{collection, option, prop_oneof, strategy::Union};

use super::functions::{Callable, Kind, callables};
use super::texts;

const KINDS: [Kind; 22] = [
    Kind::Any,
    Kind::Text,
    Kind::Integer,
    Kind::Count,
    Kind::Number,
    Kind::Bool,
    Kind::List,
    Kind::Map,
    Kind::Pattern,
    Kind::Version,
    Kind::Constraint,
    Kind::Format,
    Kind::Path,
    Kind::Url,
    Kind::Yaml,
    Kind::Json,
    Kind::Toml,
    Kind::Key,
    Kind::Own,
    Kind::Exact,
    Kind::Duration,
    Kind::Layout,
];

/// How often an argument is of another kind than the function wants.
const MISFITS: u32 = 2;

/// How deeply calls nest.
const NESTING: usize = 3;

/// The name of the template that a template defines; numbered where many share a chart.
pub(super) const NESTED: &str = "nested0000";

type Text = BoxedStrategy<String>;

/// Expressions of every kind, nested up to a depth.
struct Expressions(Vec<(Kind, Text)>);

impl Expressions {
    /// Literals and values of the chart.
    fn leaves() -> Self {
        Self(KINDS.map(|kind| (kind, leaf(kind))).to_vec())
    }

    /// What calls functions of expressions one level less deep.
    fn calling(inner: &Self, callables: &[Callable]) -> Self {
        let grow = |kind: Kind| {
            let mut choices: Vec<(u32, Text)> = callables
                .iter()
                .filter(|callable| kind == Kind::Any || callable.result == kind)
                .map(|callable| (1, call(callable, inner)))
                .collect();
            // First, because what is generated shrinks towards the first choice; and as likely as every third call.
            let leaves = u32::try_from(choices.len() / 3).unwrap_or(u32::MAX).max(1);
            choices.insert(0, (leaves, leaf(kind)));
            Union::new_weighted(choices).boxed()
        };
        Self(KINDS.map(|kind| (kind, grow(kind))).to_vec())
    }

    fn of(&self, kind: Kind) -> Text {
        let found = self.0.iter().find(|(own, _)| *own == kind);
        found.map_or_else(|| Just("nil".to_owned()).boxed(), |(_, text)| text.clone())
    }

    /// As an argument: now and then of another kind.
    fn argument(&self, kind: Kind) -> Text {
        match kind {
            // What these make may be large, or is shared with other cases: no surprises there.
            Kind::Count | Kind::Own | Kind::Exact => leaf(kind),
            Kind::Pattern | Kind::Format | Kind::Constraint => self.of(kind),
            _ => Union::new_weighted(vec![(100 - MISFITS, self.of(kind)), (MISFITS, self.of(Kind::Any))]).boxed(),
        }
    }
}

fn call(callable: &Callable, inner: &Expressions) -> Text {
    let (name, then) = (callable.name, callable.then);
    let arguments: Vec<Text> = callable.arguments.iter().map(|kind| inner.argument(*kind)).collect();
    let then = move |text: String| match then {
        "" => text,
        then => format!("({text} | {then})"),
    };
    (arguments, any::<bool>())
        .prop_map(move |(mut arguments, piped)| match arguments.pop() {
            Some(last) if piped => then(format!(
                "({last} | {})",
                [vec![name.to_owned()], arguments].concat().join(" ")
            )),
            Some(last) => then(format!("({name} {})", [arguments, vec![last]].concat().join(" "))),
            None => name.to_owned(),
        })
        .boxed()
}

fn one_of(texts: &'static [&'static str]) -> Text {
    select(texts).prop_map(str::to_owned).boxed()
}

fn leaf(kind: Kind) -> Text {
    match kind {
        Kind::Any => prop_oneof![
            4 => one_of(&[".Values.s", ".Values.n", ".Values.f", ".Values.t", ".Values.nothing", ".Values.l", ".Values.m", ".Values.mixed", ".Values.missing"]),
            1 => one_of(&["nil", ".Values.el", ".Values.em", ".Values.list_of_maps", ".Chart.Name", ".Release", ".Release.Revision", "'x'", ".Files.Get \"note.txt\"", ".Values.m.c.d", ".Values.big"]).prop_map(|text| if text.contains(' ') { format!("({text})") } else { text }),
            2 => leaf(Kind::Text),
            2 => leaf(Kind::Integer),
            1 => leaf(Kind::Number),
            1 => leaf(Kind::Bool),
        ]
        .boxed(),
        Kind::Text => prop_oneof![
            2 => one_of(&[".Values.s", ".Values.uni", ".Values.empty", ".Release.Name", ".Chart.Version"]),
            3 => texts::words().prop_map(|text| texts::literal(&text)),
        ]
        .boxed(),
        Kind::Integer => prop_oneof![
            3 => (-3i64..12).prop_map(|number| number.to_string()),
            1 => one_of(&[".Values.n", ".Values.port", "(int .Values.n)", "(int64 .Values.big)", "0x1F", "1_000", "9223372036854775807", "-9223372036854775808", "4294967296", "1e3", "'a'"]),
        ]
        .boxed(),
        Kind::Count => prop_oneof![4 => (0i64..9).prop_map(|number| number.to_string()), 1 => (-9i64..40).prop_map(|number| number.to_string())].boxed(),
        Kind::Number => prop_oneof![
            2 => one_of(&[".Values.f", ".Values.n", ".Values.big", "0.1", "2.5", "-2.5", "1e21", "1e-7", "1e20", "123456789.125", "0.30000000000000004", "5e-324", "1.7976931348623157e308", "-0.0", "3.0", "100000.5"]),
            1 => any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(|number| format!("{number:e}")),
            1 => (-100i32..100, 1u32..1000).prop_map(|(whole, part)| format!("{whole}.{part:03}")),
        ]
        .boxed(),
        Kind::Bool => one_of(&["true", "false", ".Values.t", ".Values.no"]),
        Kind::List => prop_oneof![
            2 => one_of(&[".Values.l", ".Values.nums", ".Values.mixed", ".Values.el", ".Values.list_of_maps"]),
            1 => leaf(Kind::Exact),
        ]
        .boxed(),
        Kind::Exact => collection::vec(leaf_value(), 0..5)
            .prop_map(|items| format!("(list {})", items.join(" ")).replace("(list )", "list"))
            .boxed(),
        Kind::Map => prop_oneof![
            2 => one_of(&[".Values.m", ".Values.em", ".Values.m.c", "(index .Values.list_of_maps 0)", "dict"]),
            1 => collection::vec((leaf(Kind::Key), leaf_value()), 1..4).prop_map(|entries| {
                let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key} {value}")).collect();
                format!("(dict {})", entries.join(" "))
            }),
        ]
        .boxed(),
        Kind::Own => one_of(&["(deepCopy .Values.m)", "(dict \"a\" 1)", "(dict \"a\" (dict \"b\" 0) \"c\" list)", "(dict \"c\" (dict \"d\" \"\"))", "dict"]),
        Kind::Key => one_of(&["\"a\"", "\"b\"", "\"c\"", "\"k\"", "\"name\"", "\"\"", "\"x.y\"", "\"é\""]),
        Kind::Pattern => texts::pattern().prop_map(|text| texts::literal(&text)).boxed(),
        Kind::Version => texts::version().prop_map(|text| texts::literal(&text)).boxed(),
        Kind::Constraint => texts::constraint().prop_map(|text| texts::literal(&text)).boxed(),
        Kind::Format => texts::format().prop_map(|text| texts::literal(&text)).boxed(),
        Kind::Path => one_of(&["\"/a/b/../c.txt\"", "\"a//b/./c\"", "\"\"", "\".\"", "\"/\"", "\"a.tar.gz\"", "\"..\"", "\"../x\"", "\"/..\"", "\"a/b/\""]),
        Kind::Url => texts::url().prop_map(|text| texts::literal(&text)).boxed(),
        Kind::Yaml => texts::yaml().prop_map(|text| texts::literal(&text)).boxed(),
        Kind::Json => texts::json().prop_map(|text| texts::literal(&text)).boxed(),
        // Go prints the addresses in a time with the verbs of other types.
        Kind::Toml => texts::toml().prop_filter("times", |text| !text.contains("07:32") && !text.contains("1979")).prop_map(|text| texts::literal(&text)).boxed(),
        Kind::Duration => one_of(&["\"1h30m\"", "\"95\"", "\"-3s\"", "\"1.5h\"", "\"x\"", "\"8760h\""]),
        Kind::Layout => one_of(&["\"2006-01-02\"", "\"15:04:05.000\"", "\"Mon Jan _2\""]),
    }
}

/// A value that is no list and no map.
fn leaf_value() -> Text {
    prop_oneof![
        leaf(Kind::Text),
        leaf(Kind::Integer),
        leaf(Kind::Number),
        leaf(Kind::Bool),
        Just("nil".to_owned())
    ]
    .boxed()
}

fn trims(text: &Text) -> Text {
    (any::<(bool, bool)>(), text.clone())
        .prop_map(|((left, right), text)| {
            let (left, right) = (if left { "{{- " } else { "{{ " }, if right { " -}}" } else { " }}" });
            format!("{left}{text}{right}")
        })
        .boxed()
}

/// What stands between actions.
fn between() -> Text {
    prop_oneof![4 => one_of(&["", " ", "\n", "x", " a: ", "\n\n  ", "\t", "<no value>", "é"]), 1 => texts::words()]
        .boxed()
}

fn statements(expressions: &Expressions, inner: &Text) -> Text {
    let anything = expressions.of(Kind::Any);
    let condition = prop_oneof![expressions.of(Kind::Bool), expressions.of(Kind::Any)].boxed();
    let block = |word: &'static str, condition: Text, head: &'static str| {
        (
            condition,
            inner.clone(),
            option::of(inner.clone()),
            any::<(bool, bool)>(),
        )
            .prop_map(move |(condition, then, otherwise, (left, right))| {
                let (left, right) = (if left { "{{- " } else { "{{ " }, if right { " -}}" } else { " }}" });
                let otherwise = otherwise.map_or_else(String::new, |text| format!("{{{{ else }}}}{text}"));
                format!("{left}{word} {head}{condition}{right}{then}{otherwise}{left}end{right}")
            })
            .boxed()
    };
    prop_oneof![
        6 => trims(&anything),
        2 => trims(&expressions.of(Kind::Text)),
        1 => block("if", condition.clone(), ""),
        1 => block("with", anything.clone(), ""),
        1 => block("range", expressions.of(Kind::List), ""),
        1 => block("range", expressions.of(Kind::Map), "$k, $v := "),
        1 => block("range", leaf(Kind::Count), "$i := "),
        1 => block("with", anything.clone(), "$w := "),
        1 => trims(&anything.clone().prop_map(|text| format!("$x := {text}")).boxed()),
        1 => (anything.clone(), between()).prop_map(|(text, between)| format!("{{{{ $y := {text} }}}}{between}{{{{ $y }}}}{{{{ $y = 1 }}}}{{{{ $y }}}}")),
        1 => (inner.clone(), anything).prop_map(|(body, dot)| format!("{{{{ define \"{NESTED}\" }}}}{body}{{{{ end }}}}{{{{ include \"{NESTED}\" {dot} | quote }}}}")),
        1 => one_of(&["{{/* comment */}}", "{{- /* comment */ -}}", "{{ . | kindOf }}", "{{ printf \"%T\" . }}", "{{ $ | kindOf }}", "{{ break }}", "{{ .k }}", "{{ .a.b }}"]),
    ]
    .boxed()
}

fn sequence(statement: &Text) -> Text {
    collection::vec((between(), statement.clone()), 1..4)
        .prop_map(|parts| {
            parts
                .into_iter()
                .map(|(between, statement)| between + &statement)
                .collect()
        })
        .boxed()
}

/// A document read and written again: most of what is odd in YAML shows here.
fn documents() -> Text {
    let read = |function: &'static str, text: Text| {
        text.prop_map(move |text| {
            format!(
                "{{{{ $d := {function} {} }}}}{{{{ toJson $d }}}}\n{{{{ toYaml $d }}}}\n{{{{ $d }}}}",
                texts::literal(&text)
            )
        })
        .boxed()
    };
    prop_oneof![
        4 => read("fromYaml", texts::yaml()),
        1 => read("fromYamlArray", texts::yaml()),
        1 => read("fromJson", texts::json()),
        1 => read("mustFromJson", texts::json()),
        1 => texts::json().prop_map(|text| format!("{{{{ fromJson {} | toYamlPretty }}}}", texts::literal(&text))),
        1 => texts::words().prop_map(|text| format!("{{{{ dict \"k\" {0} | toYaml }}}}\n{{{{ dict {0} 1 | toYaml }}}}", texts::literal(&text))),
        1 => read("fromToml", texts::toml()),
    ]
    .boxed()
}

/// Whole templates.
pub(super) fn templates() -> Text {
    let callables = callables();
    let mut expressions = Expressions::leaves();
    for _ in 0..NESTING {
        expressions = Expressions::calling(&expressions, &callables);
    }
    let simple = sequence(&trims(&expressions.of(Kind::Any)));
    let nested = sequence(&statements(&expressions, &simple));
    let whole = sequence(&statements(&expressions, &nested));
    prop_oneof![
        3 => trims(&expressions.of(Kind::Any)),
        2 => simple,
        2 => nested,
        1 => whole,
        2 => documents(),
        1 => damaged(trims(&expressions.of(Kind::Any))),
    ]
    .boxed()
}

/// With one character taken out or put in: most are no templates, and the error has to be the same.
fn damaged(text: Text) -> Text {
    (
        text,
        any::<proptest::sample::Index>(),
        option::of(select(
            &[
                "{", "}", "(", ")", "\"", "|", "$", ".", "-", " ", ":=", "\n", "`", "'", ",", "x", "0", "\\",
            ][..],
        )),
    )
        .prop_map(|(text, index, insert)| {
            let place = index.index(text.len().max(1));
            let (mut head, mut tail) = (place, place);
            while !text.is_char_boundary(head) {
                head -= 1;
            }
            if insert.is_none() {
                tail = (tail + 1).min(text.len());
            }
            while !text.is_char_boundary(tail) {
                tail += 1;
            }
            format!(
                "{}{}{}",
                &text[..head],
                insert.unwrap_or_default(),
                &text[tail.max(head)..]
            )
        })
        .boxed()
}
