//! The functions that generated templates call, with the kinds of values that make sense as their arguments.
//!
//! Left out are those whose answer is random, reads a clock, depends on Go's random order of maps, or takes long by design.

/// A kind of value, as far as it says what an expression is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Anything at all.
    Any,
    Text,
    Integer,
    /// A count that may be used to make things: small, or negative.
    Count,
    Number,
    Bool,
    List,
    Map,
    Pattern,
    Version,
    Constraint,
    /// A format for `printf`.
    Format,
    Path,
    Url,
    Duration,
    Layout,
    Yaml,
    Json,
    Toml,
    /// A short name of a key.
    Key,
    /// A list whose capacity in Go is its length: that of others depends on how they came to be.
    Exact,
    /// A map that nothing else refers to, so that it may be changed.
    Own,
}

/// A function as generated templates call it.
#[derive(Clone, Debug)]
pub(super) struct Callable {
    pub(super) name: &'static str,
    pub(super) arguments: Vec<Kind>,
    /// What follows the call, where its bare answer would be in random order.
    pub(super) then: &'static str,
    pub(super) result: Kind,
}

/// Rows of `result: name argument...; name argument... | what follows`, a letter for each kind.
const TABLE: &[&str] = &[
    "s: upper s; lower s; title s; untitle s; trunc c s; substr c c s; repeat c s; nospace s; initials s; trim s; trimAll s s; trimPrefix s s; trimSuffix s s",
    "s: abbrev c s; abbrevboth c c s; wrap c s; wrapWith c s s; quote a; quote a a; squote a; squote a a; cat a a; cat s a s; indent c s; nindent c s; replace s s s; plural s s i",
    "s: snakecase s; camelcase s; kebabcase s; swapcase s; toString a; join s l; join s a; b64enc s; b64dec s; b32enc s; b32dec s; sha1sum s; sha256sum s; sha512sum s; adler32sum s",
    "s: print a a; print a a a; println a a; printf f a a; printf f a; printf f a a a; html a; js a; urlquery a; typeOf a; kindOf a; toYaml a; toJson a; toPrettyJson a; toRawJson a; toYamlPretty a; toToml m",
    "s: tpl s a; default s a; coalesce s s; ternary s s b; get m k; base p; dir p; ext p; clean p; osBase p; osDir p; osExt p; osClean p; urlJoin m",
    "s: regexFind r s; regexReplaceAll r s s; regexReplaceAllLiteral r s s; regexQuoteMeta s; toToml m; duration a; durationRound a; seq c; seq c c; seq c c c",
    "i: len l; len m; len s; int a; int64 a; atoi s; add i i; add n i; sub i i; mul i i; div i i; mod i i; add1 i; max i i; min i i; biggest i n; toDecimal a; int n",
    "n: float64 a; addf n n; subf n n; mulf n n; divf n n; add1f n; maxf n n; minf n n; floor a; ceil a; round a c; round a c n",
    "b: eq a a; eq s s; eq s s s; ne s s; ne a a; lt i i; lt n n; le s s; gt n i; ge i i; not a; empty a; contains s s; hasPrefix s s; hasSuffix s s; hasKey m k; has a l; and b b; or b b; all a a; any a a; deepEqual a a; kindIs s a; typeIs s a; typeIsLike s a; regexMatch r s; mustRegexMatch r s; semverCompare v w; isAbs p; osIsAbs p",
    "l: list a a; list a; tuple a a a; append l a; push l a; prepend l a; rest l; initial l; reverse l; uniq l; without l a; compact l; concat l l; slice l c; slice q c c; chunk c l; until c; untilStep c c c; sortAlpha l; toStrings l; splitList s s; regexFindAll r s c; regexSplit r s c; pluck k m m; fromYamlArray y; fromJsonArray j; keys m | sortAlpha; values m | sortAlpha; dig k k l m; mustAppend l a; mustUniq l; mustSlice l c; mustSlice q c c; mustFirst l | list; mustReverse l; mustHas a l | list; default l a; coalesce l l; ternary l l b",
    "d: dict k a; dict k a k a; dict k m; set o k a; unset o k; merge o m; merge o m m; mergeOverwrite o m; mergeOverwrite o m m; mustMerge o m; pick m k k; omit m k; deepCopy m; split s s; splitn s c s; fromYaml y; fromJson j; fromToml t; urlParse u; default m a; dig k m m",
    "a: index l c; index m k; index m k k; get m k; dig k k a m; first l; last l; default a a; coalesce a a a; ternary a a b; and a a; or a a; mustFromJson j; index m k; required s a; semver v; mustToDate s s | toString; fail s; fromYaml y; slice s c; call a",
];

fn kind(letter: &str) -> Kind {
    match letter {
        "s" => Kind::Text,
        "i" => Kind::Integer,
        "c" => Kind::Count,
        "n" => Kind::Number,
        "b" => Kind::Bool,
        "l" => Kind::List,
        "d" | "m" => Kind::Map,
        "r" => Kind::Pattern,
        "v" => Kind::Version,
        "w" => Kind::Constraint,
        "f" => Kind::Format,
        "p" => Kind::Path,
        "u" => Kind::Url,
        "y" => Kind::Yaml,
        "j" => Kind::Json,
        "t" => Kind::Toml,
        "k" => Kind::Key,
        "o" => Kind::Own,
        "q" => Kind::Exact,
        _ => Kind::Any,
    }
}

/// All functions of the table.
pub(super) fn callables() -> Vec<Callable> {
    let mut callables = Vec::new();
    for row in TABLE {
        let Some((result, calls)) = row.split_once(": ") else {
            continue;
        };
        for call in calls.split("; ") {
            let (call, then) = call.split_once(" | ").unwrap_or((call, ""));
            let mut words = call.split(' ');
            let name = words.next().unwrap_or_default();
            callables.push(Callable {
                name,
                arguments: words.map(kind).collect(),
                then,
                result: kind(result),
            });
        }
    }
    callables
}
