//! `semver` and `semverCompare`. The rules are in [`crate::semver`].

use std::cmp::Ordering;
use std::rc::Rc;

use super::{Called, Function, mismatch};
use crate::semver::{Constraints, Version};
use crate::text;
use crate::value::Type::{Named, Str};
use crate::value::{GoObject, Json, Shape, Signature, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("semver", &[Str], semver),
    Function::new("semverCompare", &[Str, Str], semver_compare),
];

fn semver(arguments: &[Value]) -> Called {
    let [Value::Str(version)] = arguments else {
        return Err(mismatch());
    };
    Ok(Value::Obj(Rc::new(VersionObject(Version::parse(&text::lossy(
        version,
    ))?))))
}

fn semver_compare(arguments: &[Value]) -> Called {
    let [Value::Str(constraint), Value::Str(version)] = arguments else {
        return Err(mismatch());
    };
    let constraints = Constraints::parse(&text::lossy(constraint))?;
    let version = Version::parse(&text::lossy(version))?;
    Ok(Value::Bool(constraints.check(&version)))
}

const TYPE_NAME: &str = "*semver.Version";

/// A version as templates see it.
struct VersionObject(Version);

impl VersionObject {
    /// The version in another value; the executor has checked its type.
    fn other(value: Option<&Value>) -> Result<Version, String> {
        let Some(Value::Obj(object)) = value else {
            return Err(super::lists::NIL_POINTER.to_owned());
        };
        Version::parse(&object.string().ok_or_else(mismatch)?)
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
        TYPE_NAME.to_owned()
    }

    fn shape(&self) -> Shape {
        Shape::Pointer(Vec::new())
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let parameters: &[_] = match name {
            "Major" | "Minor" | "Patch" | "Prerelease" | "Metadata" | "Original" | "String" => &[],
            "Compare" | "Equal" | "LessThan" | "GreaterThan" | "LessThanEqual" | "GreaterThanEqual" => {
                &[Named(TYPE_NAME)]
            }
            _ => return None,
        };
        Some(Signature {
            parameters,
            variadic: false,
        })
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Called {
        let Self(version) = self;
        Ok(match name {
            "Major" => number(version.major()),
            "Minor" => number(version.minor()),
            "Patch" => number(version.patch()),
            "Prerelease" => Value::from(version.prerelease()),
            "Metadata" => Value::from(version.metadata()),
            "Original" => Value::from(version.original()),
            "String" => Value::from(version.to_string()),
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
        Some(self.0.to_string())
    }

    fn json(&self) -> Option<Json> {
        Some(Json::Value(Value::from(self.0.to_string())))
    }
}
