package main

import (
	"io"
	"os"
)

// stdinEnds returns when standard input reaches its end.
//
// The caller of this binary holds the other end of a pipe. The kernel closes that end however the caller dies, by a
// signal that nothing can catch too, so no process is left behind and no list of process ids has to be kept.
func stdinEnds() {
	// An error ends the input as well: nobody is there.
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// exitWithStdin ends this process at once when standard input ends: nothing that it holds is worth a tidy shutdown
// once the caller is gone.
func exitWithStdin() {
	stdinEnds()
	os.Exit(0)
}
