// One binary, several programs of others: the first argument chooses.
//
// Tests hold our operators against what people really use. The programs share many packages, so one binary is built in
// less time than each alone.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/auth/token"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	cosign "github.com/sigstore/cosign/v3/cmd/cosign/cli"
	oras "oras.land/oras/cmd/oras/root"
)

const usage = `usage: outside [--exit-with-stdin] PROGRAM [ARGUMENTS...]

PROGRAM is registry, oras or cosign; ARGUMENTS are its own (try --help).
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
	ended, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch arguments[0] {
	case "registry":
		// It catches signals itself.
		stop()
		err = registry.RootCmd.Execute()
	case "oras":
		err = oras.New().ExecuteContext(ended)
	case "cosign":
		// It leaves it to its main to say why.
		if err = cosign.New().ExecuteContext(ended); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
		}
	default:
		refuse(fmt.Sprintf("outside: unknown program %q\n\n%s", arguments[0], usage))
	}
	// Each has said why.
	if err != nil {
		os.Exit(1)
	}
}

// exitUsage is the status for a wrong command line.
const exitUsage = 2

func refuse(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(exitUsage)
}
