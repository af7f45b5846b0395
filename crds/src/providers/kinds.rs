//! What the kinds of all providers have alike: group, version, status and columns of an object for a release and of one for an image, and all of a template. What a spec
//! says is written where the provider is.
//!
//! Macros, because the derive of a kind takes its names as literals of an attribute, which no generic type can give it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A release object without its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseResource<Spec> {
    /// Its spec.
    pub spec: Spec,
}

/// The kind of an object for a release, with this spec.
macro_rules! release_kind {
    (
        kind = $kind:literal,
        plural = $plural:literal,
        shortname = $shortname:literal,
        doc = $doc:literal,
        $(#[$attribute:meta])*
        pub struct $spec:ident { $($fields:tt)* }
    ) => {
        $(#[$attribute])*
        #[derive(
            kube::CustomResource,
            Clone,
            Debug,
            PartialEq,
            serde::Serialize,
            serde::Deserialize,
            schemars::JsonSchema,
        )]
        #[kube(
            group = "infrastructure.clusterstack.x-k8s.io",
            version = "v1alpha1",
            kind = $kind,
            plural = $plural,
            shortname = $shortname,
            namespaced,
            status = "crate::providers::image_status::ProviderReleaseStatus",
            derive = "PartialEq",
            doc = $doc,
            printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
            printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
            printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
            printcolumn(
                name = "Reason",
                type_ = "string",
                json_path = ".status.conditions[?(@.type=='Ready')].reason"
            ),
            printcolumn(
                name = "Message",
                type_ = "string",
                json_path = ".status.conditions[?(@.type=='Ready')].message"
            )
        )]
        #[serde(rename_all = "camelCase")]
        pub struct $spec { $($fields)* }
    };
}

/// The kind of the template that release objects of this spec are made from.
macro_rules! template_kind {
    (
        kind = $kind:literal,
        plural = $plural:literal,
        shortname = $shortname:literal,
        doc = $doc:literal,
        pub struct $spec:ident of $release:ty;
    ) => {
        /// What the release objects of a stack are made from.
        #[derive(
            kube::CustomResource,
            Clone,
            Debug,
            Default,
            PartialEq,
            serde::Serialize,
            serde::Deserialize,
            schemars::JsonSchema,
        )]
        #[kube(
                                                                    group = "infrastructure.clusterstack.x-k8s.io",
                                                                    version = "v1alpha1",
                                                                    kind = $kind,
                                                                    plural = $plural,
                                                                    shortname = $shortname,
                                                                    namespaced,
                                                                    derive = "PartialEq",
                                                                    doc = $doc
                                                                )]
        #[serde(rename_all = "camelCase")]
        pub struct $spec {
            /// What each release object becomes.
            pub template: crate::providers::kinds::ReleaseResource<$release>,
        }
    };
}

/// The kind of an object for an image that is brought, with this spec.
macro_rules! image_kind {
    (
        kind = $kind:literal,
        plural = $plural:literal,
        shortname = $shortname:literal,
        doc = $doc:literal,
        $(#[$attribute:meta])*
        pub struct $spec:ident { $($fields:tt)* }
    ) => {
        $(#[$attribute])*
        #[derive(
            kube::CustomResource,
            Clone,
            Debug,
            PartialEq,
            serde::Serialize,
            serde::Deserialize,
            schemars::JsonSchema,
        )]
        #[kube(
            group = "infrastructure.clusterstack.x-k8s.io",
            version = "v1alpha1",
            kind = $kind,
            plural = $plural,
            shortname = $shortname,
            namespaced,
            status = "crate::providers::image_status::NodeImageStatus",
            derive = "PartialEq",
            doc = $doc,
            printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
            printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
            printcolumn(name = "Done", type_ = "string", json_path = ".status.transfer.summary"),
            printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
            printcolumn(
                name = "Reason",
                type_ = "string",
                json_path = ".status.conditions[?(@.type=='Ready')].reason"
            ),
            printcolumn(
                name = "Message",
                type_ = "string",
                json_path = ".status.conditions[?(@.type=='Ready')].message"
            ),
            printcolumn(name = "Image", type_ = "string", json_path = ".status.image.id", priority = 1),
            printcolumn(name = "Attempt", type_ = "integer", json_path = ".status.attempt", priority = 1),
            printcolumn(name = "Holder", type_ = "string", json_path = ".status.transfer.holder", priority = 1)
        )]
        #[serde(rename_all = "camelCase")]
        #[schemars(extend("x-kubernetes-validations" = crate::providers::image_options::of_image()))]
        pub struct $spec { $($fields)* }
    };
}

pub(super) use {image_kind, release_kind, template_kind};
