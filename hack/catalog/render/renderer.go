package render

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Renderer renders and validates with opm.
type Renderer struct {
	// Opm is the path of opm.
	Opm string
	// Unpublished are images that no registry has yet. opm reads them from this machine, and all others from where their
	// references say.
	Unpublished map[name.Tag]v1.Image
	// Recorded is the catalog as it was rendered the last time, if it was. Bundles that it lists by digest are taken from it and not
	// read again: what a digest names does not change.
	Recorded []byte
}

// csvMetadata is the form in which a catalog describes its bundles: OLM v0 reads it since opm 1.29 and OLM v1 needs no
// more, while whole manifests in the catalog would make it several times as large.
const csvMetadata = "bundle-object-to-csv-metadata"

// Semver renders a template of the schema olm.semver that makes channels of major versions, and joins them into candidate,
// fast and stable. Errors are those of opm, a template that makes other channels, and one that names an image by a tag
// which is not among the unpublished.
func (r Renderer) Semver(ctx context.Context, template []byte) ([]byte, error) {
	template, standing, err := r.substitute(template)
	if err != nil {
		return nil, err
	}
	r.Unpublished = standing.images
	return r.render(ctx, "semver", template, func(documents []document) ([]document, error) {
		return joinMajors(standing.restore(documents))
	})
}

// Basic renders a template of the schema olm.template.basic, whose channels are written out.
func (r Renderer) Basic(ctx context.Context, template []byte) ([]byte, error) {
	return r.render(ctx, "basic", template, func(documents []document) ([]document, error) { return documents, nil })
}

// Validate reports what opm finds wrong with the catalog in a folder.
func (r Renderer) Validate(ctx context.Context, folder string) error {
	_, err := run(exec.CommandContext(ctx, r.Opm, "validate", folder))
	return err
}

func (r Renderer) render(
	ctx context.Context, kind string, template []byte, finish func([]document) ([]document, error),
) ([]byte, error) {
	home, err := os.MkdirTemp("", "catalog-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for opm's settings: %w", err)
	}
	defer os.RemoveAll(home)
	server := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	address := server.Listener.Addr().String()
	if err := r.publish(ctx, address, server.Client().Transport); err != nil {
		return nil, err
	}
	if err := r.writeSettings(home, address, server.Certificate()); err != nil {
		return nil, err
	}

	command := exec.CommandContext(ctx, r.Opm, "alpha", "render-template", kind, "--output", "json", "--migrate-level", csvMetadata)
	command.Env = append(os.Environ(), "DOCKER_CONFIG="+credentials(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "TMPDIR="+home)
	command.Stdin = bytes.NewReader(template)
	encoded, err := run(command)
	if err != nil {
		return nil, fmt.Errorf("render the template: %w", err)
	}
	documents, err := decodeDocuments(encoded)
	if err != nil {
		return nil, err
	}
	if documents, err = finish(documents); err != nil {
		return nil, err
	}
	return encodeDocuments(documents)
}

// publish makes the unpublished images available at a registry on this machine.
func (r Renderer) publish(ctx context.Context, address string, transport http.RoundTripper) error {
	for reference, image := range r.Unpublished {
		local, err := name.NewTag(localName(address, reference.Repository) + ":" + reference.TagStr())
		if err != nil {
			return fmt.Errorf("name %s on this machine: %w", reference, err)
		}
		if err := remote.Write(local, image, remote.WithContext(ctx), remote.WithTransport(transport)); err != nil {
			return fmt.Errorf("offer %s on this machine: %w", reference, err)
		}
	}
	return nil
}

// writeSettings writes what opm's image library demands: a policy that accepts images without signatures, as every
// container engine's own does; where the unpublished images are; and the certificate that this one registry shows.
func (r Renderer) writeSettings(home, address string, certificate *x509.Certificate) error {
	var mirrors strings.Builder
	known := map[name.Repository]bool{}
	for reference := range r.Unpublished {
		if known[reference.Repository] {
			continue
		}
		known[reference.Repository] = true
		fmt.Fprintf(&mirrors, "[[registry]]\nlocation = %q\n[[registry.mirror]]\nlocation = %q\n",
			reference.Repository, localName(address, reference.Repository))
	}
	containers := filepath.Join(home, ".config", "containers")
	for path, content := range map[string][]byte{
		filepath.Join(containers, "policy.json"):                []byte(`{"default": [{"type": "insecureAcceptAnything"}]}`),
		filepath.Join(containers, "registries.conf"):            []byte(mirrors.String()),
		filepath.Join(containers, "certs.d", address, "ca.crt"): pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make the folder of opm's settings: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("write opm's settings: %w", err)
		}
	}
	return nil
}

// credentials is the folder of the user's registry credentials, which stay in use although opm has a home of its own.
func credentials() string {
	if folder := os.Getenv("DOCKER_CONFIG"); folder != "" {
		return folder
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "" // Nobody is logged in anywhere.
	}
	return filepath.Join(home, ".docker")
}

// localName is the name that a repository has at the registry on this machine.
func localName(address string, repository name.Repository) string {
	return address + "/" + repository.RepositoryStr()
}

// run returns what a program printed, or its complaint as the error.
func run(command *exec.Cmd) ([]byte, error) {
	var complaint bytes.Buffer
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(command.Path), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return output, nil
}
