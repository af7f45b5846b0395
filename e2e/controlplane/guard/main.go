// Runs any command for as long as somebody holds its standard input.
//
// It is a program of its own because tests start thousands of commands, and the programs of Kubernetes compute for a
// tenth of a second before their main begins.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

const usage = "usage: guard -- COMMAND [ARGUMENTS...]\n\nRuns a command and kills it when standard input ends."

const (
	// exitUsage is the status for a wrong command line.
	exitUsage = 2
	// exitNotStarted is what a shell answers for a command that it cannot run.
	exitNotStarted = 127
	// exitSignalled plus the signal's number is what a shell answers for a command that a signal ended.
	exitSignalled = 128
)

func main() {
	os.Exit(guard(os.Args[1:]))
}

// guard runs a command and answers its exit status, prints nothing of its own while the command runs, passes on
// SIGTERM and SIGINT, and kills the command when standard input ends.
//
// The command has an empty standard input: ours is the lifeline.
func guard(arguments []string) int {
	if len(arguments) < 2 || arguments[0] != "--" {
		fmt.Fprintln(os.Stderr, usage)
		return exitUsage
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)

	// The kernel sends the death signal when the *thread* that started the command ends, so that thread must be ours
	// until the command is gone.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command := exec.Command(arguments[1], arguments[2:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		return exitNotStarted
	}

	go func() {
		stdinEnds()
		_ = command.Process.Kill()
	}()
	go func() {
		for received := range signals {
			_ = command.Process.Signal(received)
		}
	}()
	return statusOf(command.Wait())
}

func statusOf(ended error) int {
	var exit *exec.ExitError
	switch {
	case ended == nil:
		return 0
	case !errors.As(ended, &exit):
		fmt.Fprintln(os.Stderr, "guard:", ended)
		return exitNotStarted
	}
	if status, known := exit.Sys().(syscall.WaitStatus); known && status.Signaled() {
		return exitSignalled + int(status.Signal())
	}
	return exit.ExitCode()
}
