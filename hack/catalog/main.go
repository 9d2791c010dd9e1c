// Command catalog renders this project's catalog template into the file-based catalog that OLM reads, and validates it.
//
// The bundle of the tree is listed before its image is pushed anywhere: opm is given it from the folder. Every other
// bundle is read once from its registry, and from then on it is kept as the catalog has it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/example/aiops-operator/hack/catalog/render"
	"github.com/example/aiops-operator/hack/image/container"
	"github.com/example/aiops-operator/test/cluster"
)

// options are what the flags say.
type options struct {
	opm       string
	template  string
	output    string
	bundle    string
	reference string
}

func main() {
	var chosen options
	flag.StringVar(&chosen.opm, "opm", "", "Path of opm. Empty: the one in PATH if its version fits, or else it is built from its Go modules, once.")
	flag.StringVar(&chosen.template, "template", "catalog/aiops-operator.semver.yaml", "The template, of the schema olm.semver.")
	flag.StringVar(&chosen.output, "output", "catalog/aiops-operator", "Folder of the package in the catalog: catalog.yaml is written there, other files are kept.")
	flag.StringVar(&chosen.bundle, "bundle", "bundle", "Folder of the tree's bundle.")
	flag.StringVar(&chosen.reference, "bundle-image", "", "Name of the tree's bundle image, with a tag.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := chosen.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	if o.opm == "" {
		programs, err := cluster.Build(ctx, os.Stderr, "opm")
		if err != nil {
			return err
		}
		o.opm = programs["opm"]
	}
	reference, err := name.NewTag(o.reference)
	if err != nil {
		return fmt.Errorf("read -bundle-image: %w", err)
	}
	// A catalog says nothing of the image's digest, so the date does not matter.
	image, err := container.Bundle(os.DirFS(o.bundle), time.Unix(0, 0))
	if err != nil {
		return fmt.Errorf("make the image of %s: %w", o.bundle, err)
	}
	template, err := os.ReadFile(o.template)
	if err != nil {
		return fmt.Errorf("read the template: %w", err)
	}
	recorded, err := os.ReadFile(filepath.Join(o.output, "catalog.yaml"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the catalog as it is: %w", err)
	}
	renderer := render.Renderer{Opm: o.opm, Unpublished: map[name.Tag]v1.Image{reference: image}, Recorded: recorded}
	rendered, err := renderer.Semver(ctx, template)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return fmt.Errorf("make the catalog's folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(o.output, "catalog.yaml"), rendered, 0o644); err != nil {
		return fmt.Errorf("write the catalog: %w", err)
	}
	return renderer.Validate(ctx, o.output)
}
