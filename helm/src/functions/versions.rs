//! `semver` and `semverCompare`. The rules are in [`crate::semver`].

use std::any::Any;
use std::cmp::Ordering;
use std::rc::Rc;

use super::{Called, Function, FunctionSet, mismatch};
use crate::format::quoted;
use crate::semver::{ConstraintError, Constraints, Version};
use crate::text;
use crate::value::Type::{Named, Str};
use crate::value::{GoObject, Json, Shape, Signature, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("semver", &[Str], semver),
    Function::new("semverCompare", &[Str, Str], |arguments| {
        semver_compare(arguments, ToString::to_string)
    }),
    Function::new("semverCompare", &[Str, Str], |arguments| {
        semver_compare(arguments, |error| match error {
            ConstraintError::Improper(part) => format!("improper constraint: {}", quoted(part)),
            ConstraintError::Version => error.to_string(),
        })
    })
    .since(FunctionSet::V4_2),
];

fn semver(arguments: &[Value]) -> Called {
    let [Value::Str(version)] = arguments else {
        return Err(mismatch());
    };
    Ok(Value::Obj(Rc::new(VersionObject {
        version: Version::parse(&text::lossy(version))?,
        is_pointer: true,
    })))
}

/// `said` is what the library of the Helm version says of a text that is no range.
fn semver_compare(arguments: &[Value], said: fn(&ConstraintError) -> String) -> Called {
    let [Value::Str(constraint), Value::Str(version)] = arguments else {
        return Err(mismatch());
    };
    let constraints = Constraints::parse(&text::lossy(constraint)).map_err(|error| said(&error))?;
    let version = Version::parse(&text::lossy(version))?;
    Ok(Value::Bool(constraints.check(&version)))
}

const POINTER: &str = "*semver.Version";

/// A version as templates see it: `semver` gives a pointer, methods give the struct.
struct VersionObject {
    version: Version,
    is_pointer: bool,
}

impl VersionObject {
    fn structure(version: Version) -> Value {
        Value::Obj(Rc::new(Self {
            version,
            is_pointer: false,
        }))
    }

    /// The version in another value; the executor has checked its type.
    fn other(value: Option<&Value>) -> Result<Version, String> {
        let Some(Value::Obj(object)) = value else {
            return Err(super::lists::NIL_POINTER.to_owned());
        };
        let other: &dyn Any = &**object;
        let other = other.downcast_ref::<Self>().ok_or_else(mismatch)?;
        Ok(other.version.clone())
    }
}

#[expect(
    clippy::cast_possible_wrap,
    reason = "version numbers are small; Go prints them unsigned"
)]
fn number(value: u64) -> Value {
    Value::Int(value as i64, crate::value::IntType::Uint64)
}

impl GoObject for VersionObject {
    fn type_name(&self) -> String {
        let name = if self.is_pointer { POINTER } else { &POINTER[1..] };
        name.to_owned()
    }

    fn shape(&self) -> Shape {
        let version = &self.version;
        let fields = vec![
            ("major", number(version.major())),
            ("minor", number(version.minor())),
            ("patch", number(version.patch())),
            ("pre", Value::from(version.prerelease())),
            ("metadata", Value::from(version.metadata())),
            ("original", Value::from(version.original())),
        ];
        if self.is_pointer {
            Shape::Pointer(fields)
        } else {
            Shape::Struct(fields)
        }
    }

    /// Go exports none.
    fn field(&self, _name: &str) -> Option<Value> {
        None
    }

    fn hidden_fields(&self) -> &'static [&'static str] {
        &["major", "minor", "patch", "pre", "metadata", "original"]
    }

    fn is_comparable(&self) -> bool {
        true
    }

    fn is_alike(&self, other: &dyn GoObject) -> bool {
        let parts = |version: &Version| {
            (
                version.major(),
                version.minor(),
                version.patch(),
                version.original().to_owned(),
            )
        };
        let other: &dyn Any = other;
        let other = other.downcast_ref::<Self>();
        other.is_some_and(|other| self.is_pointer == other.is_pointer && parts(&self.version) == parts(&other.version))
    }

    fn copied(&self) -> Option<Value> {
        Some(Value::Obj(Rc::new(Self {
            version: Version::default(),
            is_pointer: self.is_pointer,
        })))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let parameters: &[_] = match name {
            "Major" | "Minor" | "Patch" | "Prerelease" | "Metadata" | "String" | "IncMajor" | "IncMinor"
            | "IncPatch" => &[],
            "SetPrerelease" | "SetMetadata" => &[Str],
            "Original" if self.is_pointer => &[],
            "Compare" | "Equal" | "LessThan" | "GreaterThan" | "LessThanEqual" | "GreaterThanEqual"
                if self.is_pointer =>
            {
                &[Named(POINTER)]
            }
            _ => return None,
        };
        Some(Signature {
            parameters,
            variadic: false,
        })
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Called {
        let version = &self.version;
        let text = match arguments {
            [Value::Str(text)] => text::lossy(text),
            _ => String::new(),
        };
        Ok(match name {
            "Major" => number(version.major()),
            "Minor" => number(version.minor()),
            "Patch" => number(version.patch()),
            "Prerelease" => Value::from(version.prerelease()),
            "Metadata" => Value::from(version.metadata()),
            "Original" => Value::from(version.original()),
            "String" => Value::from(version.to_string()),
            "IncMajor" => Self::structure(version.raised(0)),
            "IncMinor" => Self::structure(version.raised(1)),
            "IncPatch" => Self::structure(version.raised(2)),
            "SetPrerelease" => Self::structure(version.with_prerelease(&text)?),
            "SetMetadata" => Self::structure(version.with_metadata(&text)?),
            _ => {
                let ordering = version.cmp(&Self::other(arguments.first())?);
                match name {
                    "Compare" => Value::int(ordering as i64),
                    "Equal" => Value::Bool(ordering == Ordering::Equal),
                    "LessThan" => Value::Bool(ordering.is_lt()),
                    "GreaterThan" => Value::Bool(ordering.is_gt()),
                    "LessThanEqual" => Value::Bool(ordering.is_le()),
                    _ => Value::Bool(ordering.is_ge()),
                }
            }
        })
    }

    fn string(&self) -> Option<String> {
        Some(self.version.to_string())
    }

    fn json(&self) -> Option<Json> {
        Some(Json::Value(Value::from(self.version.to_string())))
    }
}
