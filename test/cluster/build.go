package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CacheVariable names the environment variable that moves the cache of built programs. Default: aiops-operator in the
// user's cache folder.
const CacheVariable = "AIOPS_CACHE"

// assetsVariable is the one controller-runtime's envtest uses for a folder of ready-made programs.
const assetsVariable = "KUBEBUILDER_ASSETS"

// builder finds programs and builds the missing ones.
type builder struct {
	sources      string
	cache        string
	controlPlane release
	log          io.Writer
}

// Build makes the named programs ready and returns where each one is. A program is taken, in this order, from
// KUBEBUILDER_ASSETS, from the cache, from PATH (the version must fit), or else built from its Go modules into the cache.
// [KubernetesVariable] chooses the version of the control plane's programs.
// Of two processes that need the same program one builds it and the other waits. Progress lines go to log, which may be nil.
func Build(ctx context.Context, log io.Writer, names ...string) (map[string]string, error) {
	if log == nil {
		log = io.Discard
	}
	sources, err := sourceFolder()
	if err != nil {
		return nil, err
	}
	cache, err := CacheFolder()
	if err != nil {
		return nil, err
	}
	controlPlane, err := chosenRelease()
	if err != nil {
		return nil, err
	}
	return builder{sources: sources, cache: cache, controlPlane: controlPlane, log: log}.ready(ctx, names)
}

// CacheFolder is where built programs and the state of a cluster started from the command line are kept, outside the tree.
func CacheFolder() (string, error) {
	if folder := os.Getenv(CacheVariable); folder != "" {
		return filepath.Abs(folder)
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder (set %s instead): %w", CacheVariable, err)
	}
	return filepath.Join(folder, "aiops-operator"), nil
}

func (b builder) ready(ctx context.Context, names []string) (map[string]string, error) {
	paths := map[string]string{}
	var missing []program
	for _, name := range names {
		wanted, err := programNamed(name, b.controlPlane)
		if err != nil {
			return nil, err
		}
		path, err := b.find(ctx, wanted)
		if err != nil {
			return nil, err
		}
		if path == "" {
			missing = append(missing, wanted)
			continue
		}
		paths[name] = path
	}
	for position, wanted := range missing {
		path, err := b.build(ctx, wanted, fmt.Sprintf("%d of %d", position+1, len(missing)))
		if err != nil {
			return nil, err
		}
		paths[wanted.name] = path
	}
	return paths, nil
}

// find returns where a usable program already is, or nothing.
func (b builder) find(ctx context.Context, wanted program) (string, error) {
	if folder := os.Getenv(assetsVariable); folder != "" {
		if path := filepath.Join(folder, wanted.name); b.fits(ctx, wanted, path) {
			return path, nil
		}
	}
	cached, err := b.cachedPath(wanted)
	if err != nil {
		return "", err
	}
	if isExecutable(cached) {
		return cached, nil
	}
	if path, err := exec.LookPath(wanted.name); err == nil && b.fits(ctx, wanted, path) {
		return path, nil
	}
	return "", nil
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// fits asks a ready-made program for its version and says aloud when it is passed over, so that nobody wonders why
// something is built although it is installed.
func (b builder) fits(ctx context.Context, wanted program, path string) bool {
	if wanted.versionArgument == "" || !isExecutable(path) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	printed, err := exec.CommandContext(ctx, path, strings.Fields(wanted.versionArgument)...).CombinedOutput()
	major, minor, found := parseVersion(printed)
	if err == nil && found && wanted.fits(major, minor) {
		b.printf("using %s %d.%d from %s", wanted.name, major, minor, path)
		return true
	}
	b.printf("not using %s: its version does not fit", path)
	return false
}

// parseVersion takes the first x.y out of what a program printed about its version.
func parseVersion(printed []byte) (major, minor int, found bool) {
	match := regexp.MustCompile(`(\d+)\.(\d+)`).FindSubmatch(printed)
	if match == nil {
		return 0, 0, false
	}
	major, majorErr := strconv.Atoi(string(match[1]))
	minor, minorErr := strconv.Atoi(string(match[2]))
	return major, minor, majorErr == nil && minorErr == nil
}

// cachedPath is where the built program belongs. The folder's name changes with anything that changes the program: the
// module's pinned dependencies, our own sources in it, the flags, the compiler and the platform.
func (b builder) cachedPath(wanted program) (string, error) {
	hash := sha256.New()
	sources, err := filepath.Glob(filepath.Join(b.sources, wanted.module, "*", "*.go"))
	if err != nil {
		return "", fmt.Errorf("list the sources of %s: %w", wanted.module, err)
	}
	module := filepath.Join(b.sources, wanted.module)
	slices.Sort(sources)
	for _, path := range append([]string{filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum")}, sources...) {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read what decides the build of %s: %w", wanted.name, err)
		}
		fmt.Fprintf(hash, "%s %d\n", filepath.Base(path), len(content))
		hash.Write(content)
	}
	fmt.Fprintln(hash, wanted.buildArguments("", ""), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	key := hex.EncodeToString(hash.Sum(nil))[:16]
	return filepath.Join(b.cache, "programs", key, wanted.name), nil
}

// build compiles one program into the cache, under a lock and under a temporary name until it is complete.
func (b builder) build(ctx context.Context, wanted program, position string) (string, error) {
	target, err := b.cachedPath(wanted)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", fmt.Errorf("make the cache folder for %s: %w", wanted.name, err)
	}
	// A lock for each program: a build of one that takes minutes keeps nobody from another.
	unlock, err := lockFile(ctx, target+".lock", func() { b.printf("waiting for another process to build %s", wanted.name) })
	if err != nil {
		return "", err
	}
	defer unlock()
	if isExecutable(target) { // Another process built it while this one waited.
		return target, nil
	}
	b.printf("building once from Go modules: %s (%s, about %s)", wanted.name, position, wanted.usualTime)
	temporary := target + ".partial"
	if err := b.compile(ctx, wanted, temporary); err != nil {
		return "", err
	}
	if err := os.Rename(temporary, target); err != nil {
		return "", fmt.Errorf("move %s into the cache: %w", wanted.name, err)
	}
	return target, nil
}

func (b builder) compile(ctx context.Context, wanted program, output string) error {
	command := exec.CommandContext(ctx, "go", wanted.buildArguments(filepath.Join(b.sources, wanted.module), output)...)
	// The user's own flags and workspace must not leak into what is cached under a key that does not know them.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	var problems bytes.Buffer
	command.Stdout, command.Stderr = &problems, &problems
	started := time.Now()
	if err := command.Run(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", wanted.name, err, lastLines(problems.Bytes(), 20))
	}
	b.printf("built %s in %s", wanted.name, time.Since(started).Round(time.Second))
	return nil
}

func (b builder) printf(format string, arguments ...any) {
	fmt.Fprintf(b.log, format+"\n", arguments...)
}

// lastLines returns the end of a program's output, for errors.
func lastLines(output []byte, count int) string {
	lines := strings.Split(strings.TrimRight(string(output), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
