package packaging_test

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/example/aiops-operator/hack/image/container"
	"github.com/example/aiops-operator/test/packaging/bundle"
)

const (
	sourceRoot = "../.."
	// imageDate is 2026-11-30T13:33:20Z.
	imageDate = 1796045600
	// authorities stands for the certificates of public authorities.
	authorities = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"
)

// The operator's image, as `make image` writes it, for the platform of this machine.
func TestImageOfOperator(t *testing.T) {
	output := t.TempDir()
	certificates := filepath.Join(output, "certificates.pem")
	if err := os.WriteFile(certificates, []byte(authorities), 0o600); err != nil {
		t.Fatal(err)
	}
	makeImage(t, "-output", output, "-version", "1.2.3", "-revision", "0a1b2c3d", "-platforms", "linux/"+runtime.GOARCH,
		"-certificates", certificates, "operator")

	archive := readArchive(t, filepath.Join(output, "aiops-operator-v1.2.3.tar"))
	named := descriptorsOf(t, archive)[0]
	wantNames := map[string]string{
		"io.containerd.image.name":          "example.com/aiops-operator:v1.2.3",
		"org.opencontainers.image.ref.name": "v1.2.3",
	}
	if diff := cmp.Diff(wantNames, named.Annotations); diff != "" {
		t.Errorf("names in the archive (-want +got):\n%s", diff)
	}
	index, err := archive.ImageIndex(named.Digest)
	if err != nil {
		t.Fatal(err)
	}
	image := imageOf(t, index, descriptorsOf(t, index)[0])
	checkOperatorConfig(t, configOf(t, image))
	files := filesOf(t, image)
	checkOperatorFiles(t, files)
	bill := files["var/lib/db/sbom/aiops-operator.spdx.json"].content
	checkBill(t, bill)
	beside, err := os.ReadFile(filepath.Join(output, "aiops-operator-v1.2.3.linux-"+runtime.GOARCH+".spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(beside, bill) {
		t.Error("the bill of materials beside the archive is not the one in the image")
	}
}

// makeImage runs the program behind make image.
func makeImage(t *testing.T, arguments ...string) {
	t.Helper()
	if printed, err := imageCommand(t, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
}

func imageCommand(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"run", "../../hack/image", "-source", sourceRoot}, arguments...)...)
	command.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", imageDate))
	return command
}

// What is pushed is what the archive holds.
func TestImagePush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	// What the repository is called is the user's choice. The catalog's tag moves, because OLM polls it.
	repository := server.Listener.Addr().String() + "/team/ops"
	output := t.TempDir()
	makeImage(t, "-output", output, "-version", "1.2.3", "-repository", repository, "-push", "bundle", "catalog")
	for kind, tag := range map[string]string{"bundle": "v1.2.3", "catalog": "latest"} {
		reference, err := name.NewTag(repository + "-" + kind + ":" + tag)
		if err != nil {
			t.Fatal(err)
		}
		pushed, err := remote.Get(reference, remote.WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		archived := descriptorsOf(t, readArchive(t, filepath.Join(output, "ops-"+kind+"-"+tag+".tar")))[0]
		if pushed.Digest != archived.Digest {
			t.Errorf("%s: pushed is %s, in the archive is %s", kind, pushed.Digest, archived.Digest)
		}
	}
}

// A program is not pushed with the authorities of the machine that built it.
func TestImagePushDemandsCertificates(t *testing.T) {
	command := imageCommand(t, "-output", t.TempDir(), "-repository", "registry.invalid/ops", "-push", "operator")
	printed, err := command.CombinedOutput()
	if want := "name a file with -certificates"; err == nil || !strings.Contains(string(printed), want) {
		t.Errorf("got %v and %q, want an error with %q", err, printed, want)
	}
}

func TestImageNamesMissingFolder(t *testing.T) {
	folder := t.TempDir()
	printed, err := imageCommand(t, "-source", folder, "catalog").CombinedOutput()
	if want := filepath.Join(folder, "catalog", "aiops-operator"); err == nil || !strings.Contains(string(printed), want) {
		t.Errorf("got %v and %q, want an error that names %s", err, printed, want)
	}
}

func checkOperatorConfig(t *testing.T, got *v1.ConfigFile) {
	t.Helper()
	want := v1.Config{
		User: "65532:65532", Entrypoint: []string{"/manager"}, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "aiops-operator",
			"org.opencontainers.image.description": "Watches the signals a task names and runs its steps while they are breached.",
			"org.opencontainers.image.version":     "v1.2.3",
			"org.opencontainers.image.revision":    "0a1b2c3d",
			"org.opencontainers.image.created":     "2026-11-30T13:33:20Z",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.source":      "https://github.com/example/aiops-operator",
		},
	}
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if platform := got.Platform().String(); platform != "linux/"+runtime.GOARCH {
		t.Errorf("platform: got %s, want that of this machine's processor", platform)
	}
	if !got.Created.Equal(time.Unix(imageDate, 0)) {
		t.Errorf("created: got %s, want SOURCE_DATE_EPOCH", got.Created)
	}
}

func checkOperatorFiles(t *testing.T, files map[string]imageFile) {
	t.Helper()
	want := []string{"etc/ssl/certs/ca-certificates.crt", "licenses/LICENSE", "manager", "var/lib/db/sbom/aiops-operator.spdx.json"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for path, file := range files {
		wantMode := int64(0o644)
		if path == "manager" {
			wantMode = 0o755
		}
		if file.header.Mode != wantMode || file.header.Uid != 0 || !file.header.ModTime.Equal(time.Unix(imageDate, 0)) {
			t.Errorf("%s: got mode %o, owner %d, %s, want mode %o, root, SOURCE_DATE_EPOCH",
				path, file.header.Mode, file.header.Uid, file.header.ModTime, wantMode)
		}
	}
	if got := string(files["etc/ssl/certs/ca-certificates.crt"].content); got != authorities {
		t.Errorf("certificates: got %q", got)
	}
	license, err := os.ReadFile(filepath.Join(sourceRoot, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(license, files["licenses/LICENSE"].content) {
		t.Error("the license is not the tree's")
	}
	checkStatic(t, files["manager"].content)
	checkKnowsNoFolder(t, files["manager"].content)
	if runtime.GOOS == "linux" {
		checkPrintsVersion(t, files["manager"].content)
	}
}

// checkStatic demands a program that needs no other file to run.
func checkStatic(t *testing.T, binary []byte) {
	t.Helper()
	program, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("the program needs a dynamic loader, which the image has not")
		}
	}
}

// checkKnowsNoFolder demands a program that is the same wherever, and in whatever working tree, it was built.
func checkKnowsNoFolder(t *testing.T, binary []byte) {
	t.Helper()
	root, err := filepath.Abs(sourceRoot)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(binary, []byte(root)) {
		t.Errorf("the program knows the folder %s it was built in", root)
	}
	built, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range built.Settings {
		if strings.HasPrefix(setting.Key, "vcs") {
			t.Errorf("the program knows the working tree: %s=%s", setting.Key, setting.Value)
		}
	}
}

func checkPrintsVersion(t *testing.T, binary []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manager")
	if err := os.WriteFile(path, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	printed, err := exec.CommandContext(t.Context(), path, "--version").CombinedOutput()
	if err != nil || string(printed) != "v1.2.3\n" {
		t.Errorf("the program says its version is %q (%v), want v1.2.3", printed, err)
	}
}

// spdxBill is what the tests look at in a bill of materials.
type spdxBill struct {
	Version       string        `json:"spdxVersion"`
	Namespace     string        `json:"documentNamespace"`
	Packages      []spdxPackage `json:"packages"`
	Relationships []struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	} `json:"relationships"`
}

type spdxPackage struct {
	ID         string `json:"SPDXID"`
	Name       string `json:"name"`
	Version    string `json:"versionInfo"`
	References []struct {
		Type    string `json:"referenceType"`
		Locator string `json:"referenceLocator"`
	} `json:"externalRefs"`
}

// locator is the package's reference of a type, or nothing.
func (p spdxPackage) locator(kind string) string {
	for _, reference := range p.References {
		if reference.Type == kind {
			return reference.Locator
		}
	}
	return ""
}

// checkBill demands that the bill names the program, the standard library, and modules exactly as go.sum knows them.
func checkBill(t *testing.T, encoded []byte) {
	t.Helper()
	var bill spdxBill
	if err := json.Unmarshal(encoded, &bill); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(sourceRoot, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if bill.Version != "SPDX-2.3" {
		t.Errorf("got version %s, want SPDX-2.3", bill.Version)
	}
	versions := map[string]string{}
	identifiers := map[string]bool{}
	for position, listed := range bill.Packages {
		versions[listed.Name] = listed.Version
		if identifiers[listed.ID] {
			t.Errorf("two packages have the identifier %s", listed.ID)
		}
		identifiers[listed.ID] = true
		if want := "pkg:golang/" + listed.Name + "@" + listed.Version; listed.locator("purl") != want {
			t.Errorf("package %s: got purl %q, want %s", listed.Name, listed.locator("purl"), want)
		}
		if position < 2 { // The program and the standard library are no modules with a sum.
			continue
		}
		if line := listed.Name + " " + listed.Version + " " + listed.locator("go-sum"); !strings.Contains(string(sums), line+"\n") {
			t.Errorf("go.sum does not have %q", line)
		}
	}
	if got := versions["github.com/example/aiops-operator"]; got != "v1.2.3" {
		t.Errorf("the program's version: got %q, want v1.2.3", got)
	}
	if got, want := versions["stdlib"], strings.TrimPrefix(runtime.Version(), "go"); got != want {
		t.Errorf("the standard library's version: got %q, want %q", got, want)
	}
	for _, module := range []string{"sigs.k8s.io/controller-runtime", "k8s.io/client-go", "go.uber.org/zap"} {
		if versions[module] == "" {
			t.Errorf("the bill does not name %s", module)
		}
	}
	if got, want := len(bill.Relationships), len(bill.Packages); got != want {
		t.Errorf("got %d relationships, want one for the document and one for each of %d dependencies", got, want-1)
	}
}

// Each platform has its own image, and the same source gives the same images. A small program stands for the operator.
func TestImageOfProgram(t *testing.T) {
	program := container.Program{
		Source: sourceRoot, Package: "./hack/linkcheck", Executable: "linkcheck", Name: "linkcheck", Version: "1.2.3",
		Created: time.Unix(imageDate, 0),
	}
	platforms := []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
	build := func(program container.Program) container.Built {
		built, err := program.Build(t.Context(), platforms)
		if err != nil {
			t.Fatal(err)
		}
		return built
	}
	built := build(program)

	machines := map[string]elf.Machine{}
	for _, descriptor := range descriptorsOf(t, built.Index) {
		image := imageOf(t, built.Index, descriptor)
		if got, want := configOf(t, image).Platform().String(), descriptor.Platform.String(); got != want {
			t.Errorf("the image listed for %s says it is for %s", want, got)
		}
		files := filesOf(t, image)
		binary, err := elf.NewFile(bytes.NewReader(files["linkcheck"].content))
		if err != nil {
			t.Fatal(err)
		}
		machines[descriptor.Platform.String()] = binary.Machine
		if _, found := files["etc/ssl/certs/ca-certificates.crt"]; found {
			t.Error("there are certificates although none were given")
		}
	}
	want := map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}
	if diff := cmp.Diff(want, machines); diff != "" {
		t.Errorf("machines (-want +got):\n%s", diff)
	}
	if got := slices.Sorted(maps.Keys(built.Bills)); !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("bills of materials: got those of %v, want both platforms'", got)
	}

	if first, again := digestOf(t, built.Index), digestOf(t, build(program).Index); first != again {
		t.Errorf("built twice, the digest is %s and %s", first, again)
	}
	program.Created = program.Created.Add(time.Second)
	if first, later := digestOf(t, built.Index), digestOf(t, build(program).Index); first == later {
		t.Error("the date is nowhere in the image")
	}
}

func digestOf(t *testing.T, image interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// A bundle's image is its folder, labelled as its annotations say.
func TestImageOfBundle(t *testing.T) {
	image, err := container.Bundle(os.DirFS(bundleFolder), time.Unix(imageDate, 0))
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := bundle.Load(bundleFolder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(loaded.Annotations, configOf(t, image).Config.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(folderContents(t, bundleFolder, ""), contentsOf(filesOf(t, image))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestImageOfBundleNeedsAnnotations(t *testing.T) {
	if _, err := container.Bundle(os.DirFS(t.TempDir()), time.Unix(imageDate, 0)); err == nil {
		t.Error("got no error for an empty folder")
	}
}

// A catalog's image is its folder below /configs, and the label says so.
func TestImageOfCatalog(t *testing.T) {
	image, err := container.Catalog(os.DirFS(catalogFolder), "aiops-operator", time.Unix(imageDate, 0))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}
	if diff := cmp.Diff(want, configOf(t, image).Config.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(folderContents(t, catalogFolder, "configs/aiops-operator/"), contentsOf(filesOf(t, image))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, err := container.Catalog(os.DirFS(t.TempDir()), "aiops-operator", time.Unix(imageDate, 0)); err == nil {
		t.Error("got no error for an empty folder")
	}
}

// folderContents are the contents of a folder's files by path, each path after the prefix.
func folderContents(t *testing.T, folder, prefix string) map[string]string {
	t.Helper()
	contents := map[string]string{}
	tree := os.DirFS(folder)
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, path)
		contents[prefix+path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return contents
}
