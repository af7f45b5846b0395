//! The functions of slim-sprig, a fork of sprig without what needs other libraries. What both have answers alike, but for the few things
//! here. The commit of the fork is that in `rendering/recorder/go.mod`, its answers are recorded in `rendering/tests/values`.

use super::{Body, Called, FAMILIES, FUNCTIONS_OF_LIBRARY, Function, FunctionSet};
use crate::answers::Ask;
use crate::value::Type::Str;
use crate::value::Value;

/// The Go of the recorded answers is that of the newest Helm version.
pub(super) const SET: FunctionSet = FunctionSet::V4_3;

/// Functions of Go's template language itself; `slice` is there too, but slim-sprig puts its own in the place of it.
const OF_LANGUAGE: &str = "\
    and call eq ge gt html index js le len lt ne not or print printf println urlquery";

/// What slim-sprig has as sprig has it.
const AS_SPRIG: &str = "\
    adler32sum ago all any append atoi b32dec b32enc b64dec b64enc base cat ceil chunk clean coalesce compact \
    concat contains date dateInZone dateModify date_in_zone date_modify deepEqual default dict dig dir \
    duration durationRound empty ext fail first float64 floor fromJson get has hasKey hasPrefix hasSuffix \
    hello htmlDate htmlDateInZone indent initial isAbs join keys kindIs kindOf last list lower maxf minf \
    mustAppend mustChunk mustCompact mustDateModify mustFirst mustFromJson mustHas mustInitial mustLast \
    mustPrepend mustPush mustRegexFind mustRegexFindAll mustRegexMatch mustRegexReplaceAll \
    mustRegexReplaceAllLiteral mustRegexSplit mustRest mustReverse mustToDate mustToJson mustToPrettyJson \
    mustToRawJson mustUniq mustWithout must_date_modify nindent now omit osBase osClean osDir osExt osIsAbs \
    pick pluck plural prepend push quote randInt regexFind regexFindAll regexMatch regexQuoteMeta \
    regexReplaceAll regexReplaceAllLiteral regexSplit repeat replace rest reverse round seq set sha1sum \
    sha256sum sortAlpha split splitList splitn squote substr ternary title toDate toDecimal toJson \
    toPrettyJson toRawJson toString toStrings trim trimAll trimPrefix trimSuffix trimall trunc tuple typeIs \
    typeIsLike typeOf uniq unixEpoch unset until untilStep upper urlJoin urlParse values without";

/// What takes texts for whole numbers. Sprig reads them as Go's source does, slim-sprig as plain decimal digits.
const WITH_DECIMALS: &str = "\
    add add1 biggest div int int64 max min mod mul mustSlice slice sub";

/// Those of them whose first argument is a list.
const OF_LISTS: &str = "mustSlice slice";

/// What looks at the world around the program. Helm takes the first two out of sprig and lets the third find nothing.
const OF_WORLD: &[Function] = &[
    Function::asking("env", &[Str], unanswered),
    Function::asking("expandenv", &[Str], unanswered),
    Function::asking("getHostByName", &[Str], unanswered),
];

/// Nothing makes an answer up.
fn unanswered(mut ask: Ask<'_>) -> Called {
    ask.text(|_| Err("nothing of the world is known here".to_owned()))
        .map(Value::from)
}

/// All functions, those of Go's template language among them.
pub(super) fn functions() -> Vec<Function> {
    let sprig = || {
        FAMILIES
            .iter()
            .copied()
            .flatten()
            .filter(|function| function.is_in(SET))
    };
    let is_in = |names: &str, function: &Function| names.split(' ').any(|name| name == function.name);
    let is_alike = |function: &&Function| is_in(OF_LANGUAGE, function) || is_in(AS_SPRIG, function);
    let with_decimals = sprig().filter(|function| is_in(WITH_DECIMALS, function));
    let with_decimals = with_decimals.map(|function| Function {
        body: match function.body {
            Body::Pure(body) => Body::Decimal(is_in(OF_LISTS, function).into(), body),
            body => body,
        },
        ..*function
    });
    let alike = sprig().chain(FUNCTIONS_OF_LIBRARY).filter(is_alike).copied();
    alike.chain(with_decimals).chain(OF_WORLD.iter().copied()).collect()
}

/// Arguments of which the texts, from one on, are read as whole numbers: digits of the base ten, and a sign. What is none, or too large,
/// is 0.
pub(crate) fn with_decimals(arguments: &[Value], from: usize) -> Vec<Value> {
    let decimal = |text: &[u8]| str::from_utf8(text).ok()?.parse().ok();
    let read = |(place, value): (usize, &Value)| match value {
        Value::Str(text) if place >= from => Value::int64(decimal(text).unwrap_or(0)),
        other => other.clone(),
    };
    arguments.iter().enumerate().map(read).collect()
}
