//! The shape of a kubeconfig, as far as it is looked at (`k8s.io/client-go/tools/clientcmd/api/v1`). What has no name here is stepped over.
//!
//! A few kilobytes can say that the same megabyte stands in many places (aliases of YAML). So every list and every text that is kept has a
//! bound of its own, and what is stepped over is never followed.

use std::fmt;
use std::marker::PhantomData;

use secrecy::SecretString;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Most contexts, clusters and users each. Cluster API writes one of each.
pub(super) const MOST_ENTRIES: usize = 32;

#[derive(Deserialize)]
pub(super) struct File {
    #[serde(default, rename = "current-context")]
    pub(super) current_context: Text<1024>,
    #[serde(default)]
    pub(super) contexts: List<NamedContext>,
    #[serde(default)]
    pub(super) clusters: List<NamedCluster>,
    #[serde(default)]
    pub(super) users: List<NamedUser>,
}

/// An entry of a list, which has a name.
pub(super) trait Named {
    fn name(&self) -> &str;
}

macro_rules! named {
    ($named:ident, $field:ident: $of:ty) => {
        #[derive(Deserialize)]
        pub(super) struct $named {
            #[serde(default)]
            name: Text<1024>,
            #[serde(default)]
            pub(super) $field: Option<$of>,
        }

        impl Named for $named {
            fn name(&self) -> &str {
                &self.name.0
            }
        }
    };
}

named!(NamedContext, context: Context);
named!(NamedCluster, cluster: Cluster);
named!(NamedUser, user: User);

#[derive(Deserialize)]
pub(super) struct Context {
    #[serde(default)]
    pub(super) cluster: Text<1024>,
    #[serde(default)]
    pub(super) user: Text<1024>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Cluster {
    #[serde(default)]
    pub(super) server: Text<2048>,
    #[serde(default)]
    pub(super) certificate_authority_data: Text<{ 512 << 10 }>,
    #[serde(default)]
    pub(super) tls_server_name: Text<253>,
    #[serde(default)]
    pub(super) certificate_authority: Presence,
    #[serde(default)]
    pub(super) insecure_skip_tls_verify: Presence,
    #[serde(default)]
    pub(super) proxy_url: Presence,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct User {
    #[serde(default)]
    pub(super) client_certificate_data: Text<{ 128 << 10 }>,
    #[serde(default)]
    pub(super) client_key_data: Hidden<{ 64 << 10 }>,
    #[serde(default)]
    pub(super) token: Hidden<{ 64 << 10 }>,
    #[serde(default)]
    pub(super) client_certificate: Presence,
    #[serde(default)]
    pub(super) client_key: Presence,
    #[serde(default, rename = "tokenFile")]
    pub(super) token_file: Presence,
    #[serde(default)]
    pub(super) username: Presence,
    #[serde(default)]
    pub(super) password: Presence,
    #[serde(default, rename = "as")]
    pub(super) impersonated: Presence,
    #[serde(default)]
    pub(super) as_uid: Presence,
    #[serde(default)]
    pub(super) as_groups: Presence,
    #[serde(default)]
    pub(super) as_user_extra: Presence,
    #[serde(default)]
    pub(super) auth_provider: Presence,
    #[serde(default)]
    pub(super) exec: Presence,
}

/// A text of at most so many bytes; empty where there is none.
#[derive(Default)]
pub(super) struct Text<const MOST: usize>(pub(super) String);

/// The same, of what nobody may read.
#[derive(Default)]
pub(super) struct Hidden<const MOST: usize>(pub(super) SecretString);

impl<'de, const MOST: usize> Deserialize<'de> for Text<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_any(BoundedText::<MOST>)?;
        Ok(Self(text))
    }
}

impl<'de, const MOST: usize> Deserialize<'de> for Hidden<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_any(BoundedText::<MOST>)?;
        Ok(Self(SecretString::from(text)))
    }
}

struct BoundedText<const MOST: usize>;

impl<const MOST: usize> Visitor<'_> for BoundedText<MOST> {
    type Value = String;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a text of at most {MOST} bytes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        if text.len() > MOST {
            return Err(E::invalid_length(text.len(), &self));
        }
        Ok(text.to_owned())
    }

    fn visit_unit<E: Error>(self) -> Result<String, E> {
        Ok(String::new())
    }
}

/// Whether a field says something. What it says is of no interest.
#[derive(Clone, Copy, Default)]
pub(super) struct Presence(pub(super) bool);

impl<'de> Deserialize<'de> for Presence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Something).map(Self)
    }
}

struct Something;

impl<'de> Visitor<'de> for Something {
    type Value = bool;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, value: bool) -> Result<bool, E> {
        Ok(value)
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(!text.is_empty())
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut some = false;
        while items.next_element::<IgnoredAny>()?.is_some() {
            some = true;
        }
        Ok(some)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<bool, A::Error> {
        let mut some = false;
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            some = true;
        }
        Ok(some)
    }
}

/// A list of at most [`MOST_ENTRIES`].
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Entries(PhantomData)).map(Self)
    }
}

struct Entries<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
    type Value = Vec<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a list of at most {MOST_ENTRIES} entries")
    }

    fn visit_unit<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = items.next_element()? {
            if entries.len() == MOST_ENTRIES {
                return Err(A::Error::invalid_length(MOST_ENTRIES + 1, &self));
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}
