// Command image makes this project's container images without a container engine and writes each as an archive, which
// docker, podman, kind, skopeo and ctr load.
//
//	image [flags] [operator] [scorecard] [bundle] [catalog]
//
// Without a name it makes the operator's image. The operator and the scorecard tests are built for every platform and come
// with their bills of materials. SOURCE_DATE_EPOCH dates everything (default: 1970), so that the same source gives the
// same digest on every machine with the same version of Go and the same certificates.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/example/aiops-operator/hack/image/container"
)

// packageName is the operator's name in OLM: the folder of the catalog, and the name in labels and bills of materials. What
// the images' repository is called does not change it.
const packageName = "aiops-operator"

// catalogTag is always the newest catalog: OLM looks whether it was pushed again.
const catalogTag = "latest"

// options are what the flags say.
type options struct {
	source       string
	output       string
	repository   string
	version      string
	revision     string
	platforms    []v1.Platform
	certificates string
	created      time.Time
	push         bool
}

// content is an image for one platform or an index for several.
type content interface {
	mutate.Appendable
	remote.Taggable
}

// made is an image ready to be written.
type made struct {
	reference name.Tag
	content   content
	// bills are the bills of materials by platform.
	bills map[string][]byte
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	chosen, names, err := parse(arguments)
	if err != nil {
		return err
	}
	for _, kind := range names {
		image, err := chosen.make(ctx, kind)
		if err != nil {
			return fmt.Errorf("make the image %s: %w", kind, err)
		}
		if err := chosen.write(image, out); err != nil {
			return err
		}
		if chosen.push {
			if err := push(ctx, image); err != nil {
				return err
			}
			fmt.Fprintf(out, "pushed %s\n", image.reference)
		}
	}
	return nil
}

func parse(arguments []string) (options, []string, error) {
	var chosen options
	var platforms string
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&chosen.source, "source", ".", "Folder of the repository.")
	flags.StringVar(&chosen.output, "output", "bin", "Folder that the archives are written to.")
	flags.StringVar(&chosen.repository, "repository", "example.com/aiops-operator", "Name of the operator's image without a tag; the others append to it.")
	flags.StringVar(&chosen.version, "version", "0.0.0", "Version, without the leading v.")
	flags.StringVar(&chosen.revision, "revision", "", "Commit that is built, for the labels.")
	flags.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64", "Platforms, separated by commas.")
	flags.StringVar(&chosen.certificates, "certificates", "", "File of the authorities to trust, in PEM. Empty: this machine's, and nothing is pushed that trusts them.")
	flags.BoolVar(&chosen.push, "push", false, "Also push the images, with the credentials of docker login.")
	if err := flags.Parse(arguments); err != nil {
		return options{}, nil, err
	}
	for platform := range strings.SplitSeq(platforms, ",") {
		parsed, err := v1.ParsePlatform(strings.TrimSpace(platform))
		if err != nil {
			return options{}, nil, fmt.Errorf("read -platforms: %w", err)
		}
		chosen.platforms = append(chosen.platforms, *parsed)
	}
	// The order of the list must not change the digest.
	slices.SortFunc(chosen.platforms, func(a, b v1.Platform) int { return strings.Compare(a.String(), b.String()) })
	seconds, err := strconv.ParseInt(defaultTo(os.Getenv("SOURCE_DATE_EPOCH"), "0"), 10, 64)
	if err != nil {
		return options{}, nil, fmt.Errorf("read SOURCE_DATE_EPOCH: %w", err)
	}
	chosen.created = time.Unix(seconds, 0).UTC()
	names := flags.Args()
	if len(names) == 0 {
		names = []string{"operator"}
	}
	return chosen, names, nil
}

func defaultTo(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// make makes the image of one kind.
func (o options) make(ctx context.Context, kind string) (made, error) {
	switch kind {
	case "operator":
		return o.program(ctx, "", container.Program{
			Package: "./cmd", Executable: "manager",
			Description: "Watches the signals a task names and runs its steps while they are breached.",
		})
	case "scorecard":
		return o.program(ctx, "-scorecard", container.Program{
			Package: "./test/scorecard", Executable: "scorecard",
			Description: "The operator's own scorecard tests.",
		})
	case "bundle":
		content, err := container.Bundle(os.DirFS(filepath.Join(o.source, "bundle")), o.created)
		return o.finish("-bundle:v"+o.version, content, nil, err)
	case "catalog":
		folder := filepath.Join(o.source, "catalog", packageName)
		content, err := container.Catalog(os.DirFS(folder), packageName, o.created)
		if err != nil {
			return made{}, fmt.Errorf("pack the folder %s: %w", folder, err)
		}
		return o.finish("-catalog:"+catalogTag, content, nil, nil)
	default:
		return made{}, errors.New("no such image: choose from operator, scorecard, bundle, catalog")
	}
}

// program makes the image of an executable; the options complete its description.
func (o options) program(ctx context.Context, suffix string, described container.Program) (made, error) {
	certificates, err := o.readCertificates()
	if err != nil {
		return made{}, err
	}
	described.Source, described.Version, described.Revision = o.source, o.version, o.revision
	described.Name = packageName + suffix
	described.Certificates, described.Created = certificates, o.created
	built, err := described.Build(ctx, o.platforms)
	return o.finish(suffix+":v"+o.version, built.Index, built.Bills, err)
}

// finish names an image: what comes after the repository of the operator, with the tag.
func (o options) finish(suffix string, content content, bills map[string][]byte, err error) (made, error) {
	if err != nil {
		return made{}, err
	}
	reference, err := name.NewTag(o.repository + suffix)
	if err != nil {
		return made{}, fmt.Errorf("name the image: %w", err)
	}
	return made{reference: reference, content: content, bills: bills}, nil
}

var (
	// errNoCertificates asks for what a receiver or a Prometheus over HTTPS needs.
	errNoCertificates = errors.New("this machine has no certificates of public authorities: name a file with -certificates (make: CERTIFICATES=)")
	// errChooseCertificates asks for a decision: a machine may trust authorities that users must not.
	errChooseCertificates = errors.New("what is pushed must not trust whom this machine happens to trust: name a file with -certificates (make: CERTIFICATES=)")
)

// readCertificates reads the named file, or the first of those that operating systems keep them in.
func (o options) readCertificates() ([]byte, error) {
	if o.certificates != "" {
		return os.ReadFile(o.certificates)
	}
	if o.push {
		return nil, errChooseCertificates
	}
	for _, candidate := range []string{
		"/etc/ssl/certs/ca-certificates.crt", // Debian, Alpine
		"/etc/pki/tls/certs/ca-bundle.crt",   // Fedora
		"/etc/ssl/ca-bundle.pem",             // openSUSE
		"/etc/ssl/cert.pem",                  // macOS
	} {
		content, err := os.ReadFile(candidate)
		if err == nil {
			return content, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read the authorities to trust: %w", err)
		}
	}
	return nil, errNoCertificates
}

// write writes the archive, and beside it the bills of materials.
func (o options) write(image made, out io.Writer) error {
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return fmt.Errorf("make the output folder: %w", err)
	}
	stem := filepath.Join(o.output, path.Base(image.reference.RepositoryStr())+"-"+image.reference.TagStr())
	if err := container.WriteArchive(stem+".tar", image.content, image.reference, o.created); err != nil {
		return err
	}
	for platform, bill := range image.bills {
		if err := os.WriteFile(stem+"."+strings.ReplaceAll(platform, "/", "-")+".spdx.json", bill, 0o644); err != nil {
			return fmt.Errorf("write the bill of materials: %w", err)
		}
	}
	digest, err := image.content.Digest()
	if err != nil {
		return fmt.Errorf("digest %s: %w", image.reference, err)
	}
	fmt.Fprintf(out, "%s.tar: %s@%s\n", stem, image.reference.Context(), digest)
	return nil
}

// push uploads the image under its name.
func push(ctx context.Context, image made) error {
	chosen := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := remote.Push(image.reference, image.content, chosen...); err != nil {
		return fmt.Errorf("push %s: %w", image.reference, err)
	}
	return nil
}
