// Command metrics-server runs the real metrics-server with a resolution of one second.
//
// The released program refuses a resolution below ten seconds, which would make every test of a usage signal wait for half
// a minute. Everything but that one number is upstream's: options, scraping, storage and the served API.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"sigs.k8s.io/metrics-server/cmd/metrics-server/app/options"
)

const resolution = time.Second

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "metrics-server:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	serverOptions := options.NewOptions()
	flags := pflag.NewFlagSet("metrics-server", pflag.ContinueOnError)
	for _, set := range serverOptions.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	// Validated with a resolution upstream allows; the real one is set afterwards.
	serverOptions.MetricResolution = 10 * time.Second
	serverOptions.KubeletClient.KubeletRequestTimeout = 5 * time.Second
	if problems := serverOptions.Validate(); len(problems) > 0 {
		return problems[0]
	}
	config, err := serverOptions.ServerConfig()
	if err != nil {
		return fmt.Errorf("prepare the server: %w", err)
	}
	config.MetricResolution = resolution
	config.ScrapeTimeout = resolution * 9 / 10
	server, err := config.Complete()
	if err != nil {
		return fmt.Errorf("create the server: %w", err)
	}
	return server.RunUntil(genericapiserver.SetupSignalHandler())
}
