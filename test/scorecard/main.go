// Command scorecard is the program of the custom scorecard image: `scorecard <test>` runs one test of the bundle in /bundle against
// the cluster that it is in, and prints the outcome as one JSON object, a TestStatus, and nothing else. What the tests are is in
// package check.
//
// The scorecard reads the log of a pod, which holds standard output and standard error alike. So nothing may be printed to either
// but the JSON: what a test has to tell is in the object's log.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/example/aiops-operator/test/scorecard/check"
)

// namespaceVariable is set in every pod of the scorecard.
const namespaceVariable = "SCORECARD_NAMESPACE"

type options struct {
	test, bundle, namespace, image string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 2 && os.Args[1] == check.Idle {
		fmt.Fprintln(os.Stderr, "idle until asked to end")
		<-ctx.Done()
		return
	}
	silence()
	status := run(ctx, os.Args[1:])
	if err := write(os.Stdout, status); err != nil || failed(status) {
		stop()
		os.Exit(1)
	}
}

// silence keeps the libraries from printing.
func silence() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}

func run(ctx context.Context, arguments []string) v1alpha3.TestStatus {
	given, err := parse(arguments)
	if err != nil {
		return check.Unjudged(given.test, err)
	}
	chosen, err := find(given.test)
	if err != nil {
		return check.Unjudged(given.test, err)
	}
	environment, err := look(ctx, given)
	if err != nil {
		return check.Unjudged(given.test, err)
	}
	return chosen.Run(ctx, environment)
}

func parse(arguments []string) (options, error) {
	var out options
	flags := flag.NewFlagSet("scorecard", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&out.bundle, "bundle", "/bundle", "The folder of the bundle under test.")
	flags.StringVar(&out.namespace, "namespace", os.Getenv(namespaceVariable), "Where the tests make their objects.")
	flags.StringVar(&out.image, "image", "", "What the workloads of the tests run. Empty: the image of the pod that this runs in.")
	if err := flags.Parse(arguments); err != nil {
		return out, fmt.Errorf("read the command line: %w", err)
	}
	if flags.NArg() != 1 {
		return out, fmt.Errorf("name one test: %s", strings.Join(names(), ", "))
	}
	out.test = flags.Arg(0)
	return out, nil
}

func find(name string) (check.Check, error) {
	for _, one := range check.All() {
		if one.Name == name {
			return one, nil
		}
	}
	return check.Check{}, fmt.Errorf("there is no test %q; there are %s", name, strings.Join(names(), ", "))
}

func names() []string {
	var out []string
	for _, one := range check.All() {
		out = append(out, one.Name)
	}
	return out
}

// look finds the cluster: the one that KUBECONFIG names, else the one that this pod is in.
func look(ctx context.Context, given options) (check.Environment, error) {
	if given.namespace == "" {
		return check.Environment{}, errors.New("set " + namespaceVariable + " to the namespace that the test may use")
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	config, err := loader.ClientConfig()
	if err != nil {
		return check.Environment{}, fmt.Errorf("find the cluster: %w", err)
	}
	return check.NewEnvironment(ctx, config, given.namespace, given.bundle, given.image)
}

func write(out io.Writer, status v1alpha3.TestStatus) error {
	content, err := json.MarshalIndent(status, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the outcome: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s\n", content)
	return err
}

func failed(status v1alpha3.TestStatus) bool {
	for i := range status.Results {
		if status.Results[i].State != v1alpha3.PassState {
			return true
		}
	}
	return len(status.Results) == 0
}
