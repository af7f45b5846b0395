// One binary, several programs: the first argument chooses.
//
// The programs of a Kubernetes control plane and kubectl share nearly all their packages, so one binary is built in the
// time of one and takes the disk of one. None of them outlives the process that started it: see lifeline.go.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const usage = `usage: controlplane [--exit-with-stdin] PROGRAM [FLAGS...]

PROGRAM is etcd, kube-apiserver, kube-controller-manager, kube-scheduler or kubectl; FLAGS are its own (try --help).
With --exit-with-stdin the program exits when its standard input ends.`

func main() {
	arguments := os.Args[1:]
	if len(arguments) > 0 && arguments[0] == "--exit-with-stdin" {
		go exitWithStdin()
		arguments = arguments[1:]
	}
	if len(arguments) == 0 {
		refuse(usage)
	}
	// Each program parses os.Args for itself and shows its first element as its name.
	os.Args = arguments
	switch arguments[0] {
	case "etcd":
		etcdmain.Main(arguments)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kubectl":
		// Tells by itself what went wrong, and ends with its own status.
		kubectlutil.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()))
	default:
		refuse(fmt.Sprintf("controlplane: unknown program %q\n\n%s", arguments[0], usage))
	}
}

// exitUsage is the status for a wrong command line.
const exitUsage = 2

func refuse(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(exitUsage)
}
