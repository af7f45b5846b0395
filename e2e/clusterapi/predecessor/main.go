// What the Go operator sees of our objects, and leaves of them when it writes.
//
// It reads objects as that operator does, into types that know its fields alone, prints them as JSON in these types, marks
// their condition HelmChartApplied and stores them by the patch helper of Cluster API, as that operator ends every reconcile.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const usage = `usage: predecessor KUBECONFIG NAMESPACE KIND NAME

KIND is ClusterStack, ClusterStackRelease or ClusterAddon.`

// helmChartApplied is the condition that both operators set when all objects of a release, or of add-ons, are applied.
const helmChartApplied clusterv1.ConditionType = "HelmChartApplied"

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err := look(os.Args[1], os.Args[3], client.ObjectKey{Namespace: os.Args[2], Name: os.Args[4]}); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func look(kubeconfig, kind string, key client.ObjectKey) error {
	ctx := context.Background()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	// The name by which the API server knows that operator.
	config.UserAgent = "manager"
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(groupVersion, &ClusterStack{}, &ClusterStackRelease{}, &ClusterAddon{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	object, err := scheme.New(groupVersion.WithKind(kind))
	if err != nil {
		return err
	}
	own := object.(conditions.Setter)
	if err := c.Get(ctx, key, own); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(own); err != nil {
		return err
	}
	helper, err := patch.NewHelper(own, c)
	if err != nil {
		return err
	}
	conditions.MarkTrue(own, helmChartApplied)
	conditions.SetSummary(own)
	return helper.Patch(ctx, own)
}
