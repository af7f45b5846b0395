//! `semver` and `semverCompare`. The rules are in [`crate::semver`].

use std::any::Any;
use std::cmp::Ordering;
use std::rc::Rc;

use super::{Called, Function, FunctionSet, mismatch};
use crate::semver::{Constraints, Library, Number, Version};
use crate::text;
use crate::value::Type::{Named, Str};
use crate::value::{GoObject, IntType, Json, Shape, Signature, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("semver", &[Str], |arguments| semver(arguments, Library::V3_4)),
    Function::new("semver", &[Str], |arguments| semver(arguments, Library::V3_5)).since(FunctionSet::V4_2),
    Function::new("semverCompare", &[Str, Str], |arguments| {
        semver_compare(arguments, Library::V3_4)
    }),
    Function::new("semverCompare", &[Str, Str], |arguments| {
        semver_compare(arguments, Library::V3_5)
    })
    .since(FunctionSet::V4_2),
];

fn semver(arguments: &[Value], library: Library) -> Called {
    let [Value::Str(version)] = arguments else {
        return Err(mismatch());
    };
    Ok(Value::Obj(Rc::new(VersionObject {
        version: Version::parse(version, library)?,
        library,
        is_pointer: true,
    })))
}

fn semver_compare(arguments: &[Value], library: Library) -> Called {
    let [Value::Str(constraint), Value::Str(version)] = arguments else {
        return Err(mismatch());
    };
    let constraints = Constraints::parse(constraint, library).map_err(|error| error.to_string())?;
    let version = Version::parse(version, library)?;
    Ok(Value::Bool(constraints.check(&version)))
}

const POINTER: &str = "*semver.Version";

/// A version as templates see it: `semver` gives a pointer, methods give the struct.
struct VersionObject {
    version: Version,
    library: Library,
    is_pointer: bool,
}

impl VersionObject {
    fn structure(&self, version: Version) -> Value {
        Value::Obj(Rc::new(Self {
            version,
            library: self.library,
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

fn number(value: u64) -> Value {
    Value::Int(value.cast_signed(), IntType::Uint64)
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
            library: self.library,
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
            "IncMajor" => self.structure(version.raised(Number::Major, self.library)?),
            "IncMinor" => self.structure(version.raised(Number::Minor, self.library)?),
            "IncPatch" => self.structure(version.raised(Number::Patch, self.library)?),
            "SetPrerelease" => self.structure(version.with_prerelease(&text)?),
            "SetMetadata" => self.structure(version.with_metadata(&text)?),
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
