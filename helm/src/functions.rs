//! The functions that templates can call, with their Go signatures.
//!
//! A function that is not in the table does not exist: a text that names it does not parse. Functions are pure; those
//! that need the running templates get the executor.

mod automaton;
mod base32;
mod builtin;
mod certificates;
mod chance;
mod cluster;
mod compare;
mod dates;
mod decimals;
mod defaults;
mod dicts;
mod documents;
mod durations;
mod encoding;
mod escape;
mod letters;
mod lists;
mod merge;
mod numbers;
mod paths;
pub(crate) mod patterns;
mod regexes;
mod secrets;
pub(crate) mod slim;
mod split;
mod strings;
mod types;
mod urls;
mod versions;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::answers::Ask;
use crate::template::{Executor, Failure, Operand};
use crate::value::{Signature, Type, Value};

/// What a function gives, or the text of its Go error.
type Called = Result<Value, String>;

/// One function of a table.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub(crate) name: &'static str,
    pub(crate) signature: Signature,
    pub(crate) body: Body,
    since: FunctionSet,
}

/// The functions that Helm versions have had, in order of time. A set is named by the first version that had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FunctionSet {
    V3_19,
    V4_0,
    V4_2,
    V4_3,
}

/// How a function is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// From the values of its arguments.
    Pure(fn(&[Value]) -> Called),
    /// The same with texts [read as whole numbers](slim::with_decimals) first, from one of the arguments on.
    Decimal(usize, fn(&[Value]) -> Called),
    /// From the values of its arguments, of which it changes the first, a map.
    Changing(fn(&[Value]) -> Called),
    /// From its arguments, where a missing value differs from nil.
    Operands(fn(&[Operand]) -> Called),
    /// By executing templates.
    Engine(fn(&mut Executor<'_>, &[Value]) -> Result<Value, Failure>),
    /// From its arguments and what the [answers](crate::answers) of the render say.
    Asking(fn(Ask<'_>) -> Called),
    /// Never, because no value of Helm's is a function; the error names the first argument.
    Call,
    /// The first argument that is false, or the last one.
    And,
    /// The first argument that is true, or the last one.
    Or,
}

impl Function {
    const fn new(name: &'static str, parameters: &'static [Type], body: fn(&[Value]) -> Called) -> Self {
        Self::with(name, parameters, false, Body::Pure(body))
    }

    /// The last parameter may be given any number of times.
    const fn variadic(name: &'static str, parameters: &'static [Type], body: fn(&[Value]) -> Called) -> Self {
        Self::with(name, parameters, true, Body::Pure(body))
    }

    /// It asks, because it is random or reads the world.
    const fn asking(name: &'static str, parameters: &'static [Type], body: fn(Ask<'_>) -> Called) -> Self {
        Self::with(name, parameters, false, Body::Asking(body))
    }

    const fn with(name: &'static str, parameters: &'static [Type], variadic: bool, body: Body) -> Self {
        Self {
            name,
            signature: Signature { parameters, variadic },
            body,
            since: FunctionSet::V3_19,
        }
    }

    /// Earlier sets do not have it.
    const fn since(self, since: FunctionSet) -> Self {
        Self { since, ..self }
    }

    fn is_in(&self, set: FunctionSet) -> bool {
        self.since <= set
    }
}

/// All functions by family; each says since which set it is there. A later one of the same name takes the place of the earlier.
const FAMILIES: &[&[Function]] = &[
    builtin::FUNCTIONS,
    certificates::FUNCTIONS,
    chance::FUNCTIONS,
    cluster::FUNCTIONS,
    compare::FUNCTIONS,
    compare::FUNCTIONS_THAT_NAME_TYPES,
    dates::FUNCTIONS,
    decimals::FUNCTIONS,
    defaults::FUNCTIONS,
    dicts::FUNCTIONS,
    documents::FUNCTIONS,
    durations::FUNCTIONS,
    encoding::FUNCTIONS,
    escape::FUNCTIONS,
    letters::FUNCTIONS,
    lists::FUNCTIONS,
    numbers::FUNCTIONS,
    paths::FUNCTIONS,
    regexes::FUNCTIONS,
    secrets::FUNCTIONS,
    split::FUNCTIONS,
    strings::FUNCTIONS,
    types::FUNCTIONS,
    urls::FUNCTIONS,
    versions::FUNCTIONS,
];

/// The functions that Helm adds to those of its library.
const OF_CHARTS: &[&[u8]] = &[
    b"fromJsonArray",
    b"fromToml",
    b"fromYaml",
    b"fromYamlArray",
    b"include",
    b"lookup",
    b"mustToToml",
    b"mustToYaml",
    b"required",
    b"toToml",
    b"toYaml",
    b"toYamlPretty",
    b"tpl",
];

/// The functions of the library that Helm puts its own in the place of.
const FUNCTIONS_OF_LIBRARY: &[Function] = &[builtin::FAIL_OF_LIBRARY, documents::FROM_JSON_OF_LIBRARY];

/// The functions that the templates of a text can call.
#[derive(Debug)]
pub struct FunctionTable {
    set: FunctionSet,
    functions: HashMap<&'static [u8], &'static Function>,
}

impl FunctionTable {
    pub(crate) fn of(set: FunctionSet) -> &'static Self {
        static TABLES: [OnceLock<FunctionTable>; 4] = [const { OnceLock::new() }; 4];
        TABLES[set as usize].get_or_init(|| Self::new(set))
    }

    fn new(set: FunctionSet) -> Self {
        let mut functions = HashMap::with_capacity(FAMILIES.iter().map(|family| family.len()).sum());
        let all = FAMILIES.iter().copied().flatten();
        functions.extend(
            all.filter(|function| function.is_in(set))
                .map(|function| (function.name.as_bytes(), function)),
        );
        Self { set, functions }
    }

    /// Whether the Go of that Helm version bounds parentheses in each other.
    pub(crate) fn has_bounded_parentheses(&self) -> bool {
        self.set > FunctionSet::V3_19
    }

    /// What is left where no chart is: the functions that Helm takes from its library, as that has them.
    pub(crate) fn of_names(set: FunctionSet) -> &'static Self {
        static TABLES: [OnceLock<FunctionTable>; 4] = [const { OnceLock::new() }; 4];
        TABLES[set as usize].get_or_init(|| {
            let mut table = Self::new(set);
            table.functions.retain(|name, _| !OF_CHARTS.contains(name));
            let library = FUNCTIONS_OF_LIBRARY
                .iter()
                .map(|function| (function.name.as_bytes(), function));
            table.functions.extend(library);
            table
        })
    }

    /// What is left where no Helm is: the functions of slim-sprig, and those of Go's template language.
    pub fn of_slim_sprig() -> &'static Self {
        static FUNCTIONS: OnceLock<Vec<Function>> = OnceLock::new();
        static TABLE: OnceLock<FunctionTable> = OnceLock::new();
        TABLE.get_or_init(|| {
            let functions = FUNCTIONS.get_or_init(slim::functions).iter();
            Self {
                set: slim::SET,
                functions: functions.map(|function| (function.name.as_bytes(), function)).collect(),
            }
        })
    }

    /// The names that templates can call, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.functions.values().map(|function| function.name)
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<&'static Function> {
        self.functions.get(name).copied()
    }
}

/// For a function whose arguments do not have the types of its signature, which the executor does not let happen.
fn mismatch() -> String {
    "arguments contradict the signature".to_owned()
}
