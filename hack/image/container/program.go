package container

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// User is whom the programs run as, user and group: nobody that a node knows.
const User = "65532:65532"

// Where an image has what is not the program.
const (
	licensePath      = "licenses/LICENSE"
	certificatesPath = "etc/ssl/certs/ca-certificates.crt"
	billFolder       = "var/lib/db/sbom"
)

// Program describes the image of one executable.
type Program struct {
	// Source is the repository's folder; it holds the license.
	Source string
	// Package is the Go package to build, as go build takes it inside Source.
	Package string
	// Executable is the program's name: it lies in the image's root and is the entrypoint.
	Executable string
	// Name is the image's name in its labels and its bill of materials.
	Name string
	// Description is one sentence for the labels.
	Description string
	// Version is the version without a leading v. The program is told it with the v.
	Version string
	// Revision is the commit it is built from. Empty: no label says it.
	Revision string
	// Certificates are the authorities that the program trusts, in PEM. Empty: it trusts nobody.
	Certificates []byte
	// Created dates the image and every file in it.
	Created time.Time
}

// Built is an image for several platforms.
type Built struct {
	// Index lists one image for each platform.
	Index v1.ImageIndex
	// Bills are the bills of materials (SPDX 2.3, JSON) by platform, such as linux/amd64. Each image has its own, too.
	Bills map[string][]byte
}

// Build compiles the program for each platform and makes one index of the images.
func (p Program) Build(ctx context.Context, platforms []v1.Platform) (Built, error) {
	built := Built{Bills: map[string][]byte{}}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range platforms {
		made, bill, err := p.buildFor(ctx, platform)
		if err != nil {
			return Built{}, fmt.Errorf("build %s for %s: %w", p.Package, platform, err)
		}
		built.Bills[platform.String()] = bill
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: made, Descriptor: v1.Descriptor{Platform: &platform},
		})
	}
	built.Index = mutate.Annotations(index, p.labels()).(v1.ImageIndex)
	return built, nil
}

func (p Program) buildFor(ctx context.Context, platform v1.Platform) (v1.Image, []byte, error) {
	binary, err := p.compile(ctx, platform)
	if err != nil {
		return nil, nil, err
	}
	bill, err := p.billOfMaterials(binary, platform)
	if err != nil {
		return nil, nil, err
	}
	license, err := os.ReadFile(filepath.Join(p.Source, "LICENSE"))
	if err != nil {
		return nil, nil, fmt.Errorf("read the license: %w", err)
	}
	// What seldom changes lies in a layer of its own, which a node then has already.
	constant := []file{{path: licensePath, mode: fileMode, content: license}}
	if len(p.Certificates) > 0 {
		constant = append(constant, file{path: certificatesPath, mode: fileMode, content: p.Certificates})
	}
	constantLayer, err := layer(constant, p.Created)
	if err != nil {
		return nil, nil, err
	}
	programLayer, err := layer([]file{
		{path: p.Executable, mode: executableMode, content: binary},
		{path: billFolder + "/" + p.Name + ".spdx.json", mode: fileMode, content: bill},
	}, p.Created)
	if err != nil {
		return nil, nil, err
	}
	made, err := image(v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
		Config: v1.Config{User: User, WorkingDir: "/", Entrypoint: []string{"/" + p.Executable}, Labels: p.labels()},
	}, p.Created, constantLayer, programLayer)
	return made, bill, err
}

// compile builds a static binary that knows neither the folder nor the working tree it came from.
func (p Program) compile(ctx context.Context, platform v1.Platform) ([]byte, error) {
	folder, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the binary: %w", err)
	}
	defer os.RemoveAll(folder)
	output := filepath.Join(folder, p.Executable)
	command := exec.CommandContext(ctx, "go", "build", "-C", p.Source, "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X main.version=v"+p.Version, "-o", output, p.Package)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	var problems bytes.Buffer
	command.Stdout, command.Stderr = &problems, &problems
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, problems.Bytes())
	}
	return os.ReadFile(output)
}

// labels are the Open Container Initiative's annotations, which registries and scanners read.
func (p Program) labels() map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       p.Name,
		"org.opencontainers.image.description": p.Description,
		"org.opencontainers.image.version":     "v" + p.Version,
		"org.opencontainers.image.created":     p.Created.UTC().Format(time.RFC3339),
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/example/aiops-operator",
	}
	if p.Revision != "" {
		labels["org.opencontainers.image.revision"] = p.Revision
	}
	return labels
}
