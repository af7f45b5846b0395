//! The kinds of the providers that are compiled in: how their objects are read, and what of them a provider is told in its own words. One row for
//! each provider, and nothing that asks which one it is. Touches nothing.

use crds::providers::{Definition, Provider, ProviderImage};
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use provider_plugin::{CreateOptions, Format, ImageId};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[cfg(feature = "docker")]
use crds::providers::docker::DockerNodeImageReleaseSpec;
#[cfg(feature = "filestore")]
use crds::providers::filestore::FileStoreNodeImageReleaseSpec;
#[cfg(feature = "openstack")]
use crds::providers::openstack::OpenStackNodeImageReleaseSpec;

/// What an image object asks for, whoever's it is.
pub(crate) type ImageWish = Box<dyn ProviderImage + Send + Sync>;

/// One provider's kinds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    definition: &'static Definition,
    read_image: fn(Value) -> Result<ImageWish, serde_json::Error>,
    /// The option with the format of the disk.
    format: &'static str,
    /// Whether the provider is told all options: one that has no others than name and format is told them otherwise.
    has_options: bool,
    /// Whether the provider makes images, and does not only look for those of others.
    pub(crate) makes_images: bool,
    /// The key of a Secret in the place of which an object may name another.
    pub(crate) secret_key: Option<&'static str>,
    /// The type of Secrets that are made for this provider. Besides these it is given those without a type: others are for others.
    pub(crate) secret_type: Option<&'static str>,
}

/// All of them, in the order of [`Provider`].
pub(crate) static KINDS: &[Kind] = &[
    #[cfg(feature = "openstack")]
    Kind {
        definition: Provider::OpenStack.definition(),
        read_image: read::<OpenStackNodeImageReleaseSpec>,
        format: "disk_format",
        has_options: true,
        makes_images: true,
        secret_key: None,
        secret_type: None,
    },
    #[cfg(feature = "filestore")]
    Kind {
        definition: Provider::FileStore.definition(),
        read_image: read::<FileStoreNodeImageReleaseSpec>,
        format: "format",
        has_options: false,
        makes_images: true,
        secret_key: None,
        secret_type: None,
    },
    #[cfg(feature = "docker")]
    Kind {
        definition: Provider::Docker.definition(),
        read_image: read::<DockerNodeImageReleaseSpec>,
        format: "format",
        has_options: false,
        makes_images: false,
        secret_key: Some(provider_docker::LOGINS),
        secret_type: Some(provider_docker::LOGINS_TYPE),
    },
];

fn read<T>(spec: Value) -> Result<ImageWish, serde_json::Error>
where
    T: ProviderImage + DeserializeOwned + Send + Sync + 'static,
{
    let spec: T = serde_json::from_value(spec)?;
    Ok(Box::new(spec))
}

/// The names of the providers that are compiled in, for people.
pub(crate) fn names() -> String {
    let names: Vec<String> = KINDS.iter().map(Kind::name).collect();
    names.join(", ")
}

/// What a provider is told of an image's options.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) options: CreateOptions,
    pub(crate) format: Option<Format>,
    pub(crate) container_format: Option<String>,
    pub(crate) chosen_id: Option<ImageId>,
}

impl Kind {
    /// The kind of this provider, if it is compiled in.
    pub(crate) fn of(provider: Provider) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.provider() == provider)
    }

    pub(crate) fn provider(&self) -> Provider {
        self.definition.provider
    }

    /// As in flags and metrics.
    pub(crate) fn name(&self) -> String {
        self.provider().to_string()
    }

    pub(crate) fn definition(&self) -> &'static Definition {
        self.definition
    }

    /// How the API server is asked for image objects.
    pub(crate) fn images(&self) -> ApiResource {
        resource(self.definition.image_kind, self.definition.image_plural)
    }

    /// How the API server is asked for release objects.
    pub(crate) fn releases(&self) -> ApiResource {
        resource(self.definition.release_kind, self.definition.release_plural)
    }

    /// What an image object asks for.
    pub(crate) fn wish(&self, object: &DynamicObject) -> Result<ImageWish, serde_json::Error> {
        (self.read_image)(spec_of(object))
    }

    /// What the provider is told of the options.
    pub(crate) fn told(&self, wish: &ImageWish) -> Told {
        let options = wish.options();
        let text = |field: &str| options.get(field).and_then(Value::as_str).map(str::to_owned);
        Told {
            format: text(self.format).map(Format::from),
            container_format: text("container_format"),
            chosen_id: text("id").map(ImageId),
            options: if self.has_options {
                options
            } else {
                CreateOptions::new()
            },
        }
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.provider() == other.provider()
    }
}

fn resource(kind: &str, plural: &str) -> ApiResource {
    let gvk = GroupVersionKind::gvk(crds::PROVIDER_GROUP, crds::VERSION, kind);
    ApiResource::from_gvk_with_plural(&gvk, plural)
}

/// The spec of an object; null where it has none.
pub(crate) fn spec_of(object: &DynamicObject) -> Value {
    object.data.get("spec").cloned().unwrap_or_default()
}

/// Sets a part of an object: its spec, or its status.
pub(crate) fn with(object: &mut DynamicObject, field: &str, value: Value) {
    match object.data.as_object_mut() {
        Some(data) => drop(data.insert(field.to_owned(), value)),
        None => object.data = json!({ field: value }),
    }
}

/// The status of an object of ours. What cannot be read, somebody else wrote, and it is written anew.
pub(crate) fn status_of<T: DeserializeOwned + Default>(object: &DynamicObject) -> T {
    let status = object.data.get("status").cloned().unwrap_or_default();
    serde_json::from_value(status).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(provider: Provider) -> &'static Kind {
        Kind::of(provider).expect("it is compiled in")
    }

    fn object(kind: &Kind, spec: &Value) -> DynamicObject {
        DynamicObject::new("ubuntu", &kind.images()).data(json!({ "spec": spec }))
    }

    #[test]
    fn a_provider_is_told_its_own_words_alone() {
        let of = |provider, spec: Value| {
            let kind = kind(provider);
            let wish = kind.wish(&object(kind, &spec)).expect("a spec");
            assert_eq!(wish.name(), "ubuntu");
            (
                kind.told(&wish),
                wish.secret().map(str::to_owned),
                wish.store().map(str::to_owned),
            )
        };
        let image = json!({ "url": "https://images.example/u.raw", "name": "ubuntu", "format": "raw" });
        let (told, secret, store) = of(Provider::FileStore, json!({ "store": "default", "image": image }));
        assert_eq!((secret.as_deref(), store.as_deref()), (None, Some("default")));
        assert_eq!((told.options, told.format), (CreateOptions::new(), Some(Format::Raw)));
        let image = json!({ "url": "https://images.example/u", "createOpts": { "name": "ubuntu", "disk_format": "qcow2", "id": "abc" } });
        let reference = json!({ "kind": "Secret", "name": "cloud" });
        let (told, secret, store) = of(Provider::OpenStack, json!({ "identityRef": reference, "image": image }));
        assert_eq!((secret.as_deref(), store.as_deref()), (Some("cloud"), None));
        let reference = json!({ "name": "registry", "key": "logins" });
        let image = json!({ "reference": "ubuntu" });
        let kind_of_docker = kind(Provider::Docker);
        let spec = json!({ "pullSecretRef": reference, "image": image });
        let pulled = kind_of_docker.wish(&object(kind_of_docker, &spec)).expect("a spec");
        assert_eq!(
            (pulled.secret(), pulled.secret_key()),
            (Some("registry"), Some("logins"))
        );
        assert_eq!(kind_of_docker.told(&pulled), Told::default());
        assert_eq!(told.options["disk_format"], "qcow2");
        assert_eq!(
            (told.format, told.chosen_id),
            (Some(Format::Qcow2), Some(ImageId("abc".to_owned())))
        );
    }

    #[test]
    fn a_status_that_nobody_can_read_is_none() {
        let object = DynamicObject::new("ubuntu", &kind(Provider::FileStore).images());
        let object = object.data(json!({ "status": { "ready": "perhaps" } }));
        let status: crds::providers::image_status::NodeImageStatus = status_of(&object);
        assert_eq!(status, crds::providers::image_status::NodeImageStatus::default());
    }
}
