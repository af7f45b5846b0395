//! Maps whose keys are no texts, as lists of pairs: JSON has no other keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<K, V, S>(map: &BTreeMap<K, V>, serializer: S) -> Result<S::Ok, S::Error>
where
    K: Serialize,
    V: Serialize,
    S: Serializer,
{
    serializer.collect_seq(map)
}

pub(crate) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let pairs = Vec::<(K, V)>::deserialize(deserializer)?;
    Ok(pairs.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_key::GroupKind;

    #[test]
    fn a_map_by_kinds_is_the_same_after_json() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Holder {
            #[serde(with = "super")]
            words: BTreeMap<GroupKind, String>,
        }
        let kind = GroupKind {
            group: "quay.example.com".to_owned(),
            kind: "Mooring".to_owned(),
        };
        let holder = Holder {
            words: BTreeMap::from([(kind, "storage is (re)initializing".to_owned())]),
        };
        let text = serde_json::to_string(&holder).expect("JSON");
        assert_eq!(serde_json::from_str::<Holder>(&text).expect("the same"), holder);
    }
}
