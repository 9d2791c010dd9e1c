// Command golangci is golangci-lint with kube-api-linter compiled in as a module plugin.
//
// It exists because golangci-lint's own way of adding a plugin clones a repository, and everything this
// project builds comes from Go modules pinned in go.mod beside it. Nothing but wiring belongs here.
package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"

	_ "sigs.k8s.io/kube-api-linter" // registers the linter "kubeapilinter"
)

// version is the module's version of golangci-lint, set by the Makefile: golangci-lint checks it against the
// configuration file and prints it in its reports.
var version = "unknown"

func main() {
	info := commands.BuildInfo{GoVersion: runtime.Version(), Version: version, Commit: "module", Date: "pinned"}
	if err := commands.Execute(info); err != nil {
		fmt.Fprintln(os.Stderr, "golangci:", err)
		os.Exit(exitcodes.Failure)
	}
}
