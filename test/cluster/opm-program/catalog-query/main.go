// Command catalog-query asks a catalog served over gRPC, as OLM's catalog-operator does, and prints what it offers as one
// JSON document: packages, their channels, and every bundle of every channel with the edges that lead to it.
//
// What belongs here: reading and printing. Whether the graph is right is for the caller to judge.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/operator-framework/operator-registry/pkg/api"
)

// graph is what the catalog offers.
type graph struct {
	Packages []catalogPackage `json:"packages"`
	// Bundles has one entry for each channel that a bundle is in, since the edges belong to the channel.
	Bundles []bundle `json:"bundles"`
}

type catalogPackage struct {
	Name           string    `json:"name"`
	DefaultChannel string    `json:"defaultChannel"`
	Channels       []channel `json:"channels"`
	Deprecation    string    `json:"deprecation,omitempty"`
}

type channel struct {
	Name string `json:"name"`
	// Head is the name of the newest bundle.
	Head string `json:"head"`
	// DisplayName is what the newest bundle's ClusterServiceVersion calls the operator, and a user sees before installing it.
	DisplayName string `json:"displayName"`
	Deprecation string `json:"deprecation,omitempty"`
}

type bundle struct {
	Package     string   `json:"package"`
	Channel     string   `json:"channel"`
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Image       string   `json:"image"`
	Replaces    string   `json:"replaces,omitempty"`
	Skips       []string `json:"skips,omitempty"`
	SkipRange   string   `json:"skipRange,omitempty"`
	Deprecation string   `json:"deprecation,omitempty"`
}

func main() {
	address := flag.String("address", "127.0.0.1:50051", "Address of the served catalog.")
	timeout := flag.Duration("timeout", 10*time.Second, "How long to wait until the catalog is served and has answered.")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	if err := run(ctx, *address, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "catalog-query:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address string, output io.Writer) error {
	connection, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// The server may still be reading its catalog.
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	defer connection.Close()

	registry := api.NewRegistryClient(connection)
	var offered graph
	if offered.Packages, err = readPackages(ctx, registry); err != nil {
		return fmt.Errorf("read the packages of %s: %w", address, err)
	}
	if offered.Bundles, err = readBundles(ctx, registry); err != nil {
		return fmt.Errorf("read the bundles of %s: %w", address, err)
	}
	return json.NewEncoder(output).Encode(offered)
}

func readPackages(ctx context.Context, registry api.RegistryClient) ([]catalogPackage, error) {
	names, err := registry.ListPackages(ctx, &api.ListPackageRequest{})
	if err != nil {
		return nil, err
	}
	var packages []catalogPackage
	for {
		name, err := names.Recv()
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, err
		}
		read, err := readPackage(ctx, registry, name.GetName())
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", name.GetName(), err)
		}
		packages = append(packages, read)
	}
}

func readPackage(ctx context.Context, registry api.RegistryClient, name string) (catalogPackage, error) {
	answer, err := registry.GetPackage(ctx, &api.GetPackageRequest{Name: name})
	if err != nil {
		return catalogPackage{}, err
	}
	read := catalogPackage{
		Name: answer.GetName(), DefaultChannel: answer.GetDefaultChannelName(), Deprecation: answer.GetDeprecation().GetMessage(),
	}
	for _, offered := range answer.GetChannels() {
		displayName, err := readDisplayName(ctx, registry, name, offered)
		if err != nil {
			return catalogPackage{}, fmt.Errorf("channel %s: %w", offered.GetName(), err)
		}
		read.Channels = append(read.Channels, channel{
			Name: offered.GetName(), Head: offered.GetCsvName(), DisplayName: displayName,
			Deprecation: offered.GetDeprecation().GetMessage(),
		})
	}
	return read, nil
}

// readDisplayName asks for the head on its own: the list of all bundles leaves the manifests out.
func readDisplayName(ctx context.Context, registry api.RegistryClient, packageName string, offered *api.Channel) (string, error) {
	head, err := registry.GetBundle(ctx, &api.GetBundleRequest{
		PkgName: packageName, ChannelName: offered.GetName(), CsvName: offered.GetCsvName(),
	})
	if err != nil {
		return "", err
	}
	var manifest struct {
		Spec struct {
			DisplayName string `json:"displayName"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(head.GetCsvJson()), &manifest); err != nil {
		return "", fmt.Errorf("decode the manifest of %s: %w", offered.GetCsvName(), err)
	}
	return manifest.Spec.DisplayName, nil
}

func readBundles(ctx context.Context, registry api.RegistryClient) ([]bundle, error) {
	stream, err := registry.ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		return nil, err
	}
	var bundles []bundle
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return bundles, nil
		}
		if err != nil {
			return nil, err
		}
		bundles = append(bundles, bundle{
			Package: answer.GetPackageName(), Channel: answer.GetChannelName(), Name: answer.GetCsvName(),
			Version: answer.GetVersion(), Image: answer.GetBundlePath(),
			Replaces: answer.GetReplaces(), Skips: answer.GetSkips(), SkipRange: answer.GetSkipRange(),
			Deprecation: answer.GetDeprecation().GetMessage(),
		})
	}
}
