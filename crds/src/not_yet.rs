//! What the API has and this version of the operator does not act on. One list, by which the descriptions in the CRDs are marked; a
//! journey holds it against what the operator answers.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

/// Fields of a stack below `spec`, of a release below `spec` or `spec.policy`, with what holds instead. All that is below a field is meant
/// with it.
pub const NOT_YET: &[(&str, &str)] = &[(
    "verification.cosign.keyless",
    "Not in this version: such signatures cannot be checked. With the mode Require every release is refused, with Warn each says so.",
)];

/// For a kind that nobody acts on.
pub(crate) const NO_ADDONS: &str = "Not in this version: nobody acts on it.";

/// Marks the descriptions of those fields in the schema of a kind.
pub(crate) fn mark(schema: &mut JSONSchemaProps) {
    for (field, sentence) in NOT_YET {
        for parent in ["spec", "spec.policy"] {
            let path = format!("{parent}.{field}");
            if let Some(field) = path.split('.').try_fold(&mut *schema, property) {
                append(field, sentence);
            }
        }
    }
}

pub(crate) fn append(schema: &mut JSONSchemaProps, sentence: &str) {
    let description = schema.description.get_or_insert_default();
    description.push(' ');
    description.push_str(sentence);
}

fn property<'a>(schema: &'a mut JSONSchemaProps, name: &str) -> Option<&'a mut JSONSchemaProps> {
    schema.properties.as_mut()?.get_mut(name)
}
