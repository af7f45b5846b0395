package main

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/v1beta1"
)

// groupVersion is where the Go operator's kinds are.
var groupVersion = schema.GroupVersion{Group: "clusterstack.x-k8s.io", Version: "v1alpha1"}

// Its module cannot be had from the module proxy: these are its fields, by the names and types in JSON that it reads and
// writes.

// ClusterStack is what somebody subscribes to.
type ClusterStack struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Provider          string                  `json:"provider"`
		Name              string                  `json:"name"`
		KubernetesVersion string                  `json:"kubernetesVersion"`
		Channel           string                  `json:"channel,omitempty"`
		Versions          []string                `json:"versions"`
		AutoSubscribe     bool                    `json:"autoSubscribe"`
		NoProvider        bool                    `json:"noProvider,omitempty"`
		ProviderRef       *corev1.ObjectReference `json:"providerRef,omitempty"`
	} `json:"spec,omitempty"`
	Status struct {
		LatestRelease string `json:"latestRelease"`
		Summary       []struct {
			Name    string `json:"name"`
			Ready   bool   `json:"ready"`
			Phase   string `json:"phase"`
			Message string `json:"message,omitempty"`
		} `json:"summary,omitempty"`
		UsableVersions string               `json:"usableVersions,omitempty"`
		Conditions     clusterv1.Conditions `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

// ClusterStackRelease is one version of it.
type ClusterStackRelease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		ProviderRef *corev1.ObjectReference `json:"providerRef,omitempty"`
	} `json:"spec,omitempty"`
	Status struct {
		Resources         []*Resource          `json:"resources,omitempty"`
		KubernetesVersion string               `json:"kubernetesVersion,omitempty"`
		Ready             bool                 `json:"ready,omitempty"`
		Conditions        clusterv1.Conditions `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

// Resource is an object of a release, or of the add-ons of a cluster.
type Resource struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Status    string `json:"status,omitempty"`
	Error     string `json:"error,omitempty"`
}

// ClusterAddon is the add-ons of a cluster.
type ClusterAddon struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		ClusterRef   *corev1.ObjectReference `json:"clusterRef"`
		ClusterStack string                  `json:"clusterStack,omitempty"`
		Version      string                  `json:"version,omitempty"`
		Hook         string                  `json:"hook,omitempty"`
	} `json:"spec,omitempty"`
	Status struct {
		Resources []*Resource `json:"resources,omitempty"`
		Stages    []struct {
			Name   string `json:"name"`
			Action string `json:"action"`
			Phase  string `json:"phase,omitempty"`
		} `json:"stages,omitempty"`
		Ready      bool                 `json:"ready,omitempty"`
		Conditions clusterv1.Conditions `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

// GetConditions is for Cluster API's helpers.
func (s *ClusterStack) GetConditions() clusterv1.Conditions { return s.Status.Conditions }

// SetConditions is for Cluster API's helpers.
func (s *ClusterStack) SetConditions(conditions clusterv1.Conditions) {
	s.Status.Conditions = conditions
}

// DeepCopyObject makes it an object of Kubernetes.
func (s *ClusterStack) DeepCopyObject() runtime.Object { return copied(s) }

// GetConditions is for Cluster API's helpers.
func (r *ClusterStackRelease) GetConditions() clusterv1.Conditions { return r.Status.Conditions }

// SetConditions is for Cluster API's helpers.
func (r *ClusterStackRelease) SetConditions(conditions clusterv1.Conditions) {
	r.Status.Conditions = conditions
}

// DeepCopyObject makes it an object of Kubernetes.
func (r *ClusterStackRelease) DeepCopyObject() runtime.Object { return copied(r) }

// GetConditions is for Cluster API's helpers.
func (a *ClusterAddon) GetConditions() clusterv1.Conditions { return a.Status.Conditions }

// SetConditions is for Cluster API's helpers.
func (a *ClusterAddon) SetConditions(conditions clusterv1.Conditions) {
	a.Status.Conditions = conditions
}

// DeepCopyObject makes it an object of Kubernetes.
func (a *ClusterAddon) DeepCopyObject() runtime.Object { return copied(a) }

func copied[T any](object *T) *T {
	text, err := json.Marshal(object)
	result := new(T)
	if err == nil {
		err = json.Unmarshal(text, result)
	}
	if err != nil {
		panic(err)
	}
	return result
}
