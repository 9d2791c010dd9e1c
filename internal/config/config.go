// Package config is the operator's configuration file: what the administrator decides for every AITask, above all which systems
// outside the cluster there are and with which credentials they are asked. It reads and checks; it opens no connection, and it
// knows neither signals nor actions. What a user of AITasks decides belongs into the AITask.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxBytes is how large a configuration file may be.
const maxBytes = 1 << 20

// What an absent key means.
const (
	DefaultTimeoutSeconds  int32 = 10
	DefaultBreachedPercent int32 = 30
	DefaultMinimumTargets  int32 = 10
	DefaultWithinSeconds   int32 = 60
	DefaultCalmSeconds     int32 = 300
)

// Config is a configuration file, with every default filled in. Secrets are never in it, only the files that hold them.
type Config struct {
	// PrometheusEndpoints are the servers that a signal may name with prometheus.endpoint. At most 64.
	PrometheusEndpoints []PrometheusEndpoint `yaml:"prometheusEndpoints,omitempty"`
	// Receivers are whom a Notify step may name with notify.receiver. At most 64.
	Receivers []Receiver `yaml:"receivers,omitempty"`
	// Storm is when acting is held because too much is breached at once.
	Storm Storm `yaml:"storm"`
}

// PrometheusEndpoint is a server that answers the Prometheus query API.
type PrometheusEndpoint struct {
	// Name is what tasks call it: a DNS label, unique among endpoints.
	Name string `yaml:"name"`
	// URL is what /api/v1/query is appended to: http or https, without user, query or fragment. At most 2048 characters.
	URL string `yaml:"url"`
	// TimeoutSeconds is how long one measurement may take. Absent: 10. 1 to 60.
	TimeoutSeconds int32 `yaml:"timeoutSeconds"`
	// BearerTokenFile is a file with a token. Absolute. Not together with BasicAuth.
	BearerTokenFile string `yaml:"bearerTokenFile,omitempty"`
	// BasicAuth is a user and a file with its password.
	BasicAuth *BasicAuth `yaml:"basicAuth,omitempty"`
	// CAFile is a PEM file with the authorities that sign the server's certificate. Absolute; https only. Absent: those of the system.
	CAFile string `yaml:"caFile,omitempty"`
	// InsecureSkipTLSVerify accepts every certificate. https only. Absent: false.
	InsecureSkipTLSVerify bool `yaml:"insecureSkipTLSVerify,omitempty"`
}

// BasicAuth is a user and where its password is.
type BasicAuth struct {
	// Username has 1 to 256 characters and no colon.
	Username string `yaml:"username"`
	// PasswordFile is a file with the password. Absolute.
	PasswordFile string `yaml:"passwordFile"`
}

// Receiver is told what an AITask did, by a POST of JSON.
type Receiver struct {
	// Name is what tasks call it: a DNS label, unique among receivers.
	Name string `yaml:"name"`
	// URL is where the POST goes: http or https, without user or fragment. At most 2048 characters.
	URL string `yaml:"url"`
	// TimeoutSeconds is how long a delivery may take. Absent: 10. 1 to 60.
	TimeoutSeconds int32 `yaml:"timeoutSeconds"`
	// BearerTokenFile is a file with a token. Absolute.
	BearerTokenFile string `yaml:"bearerTokenFile,omitempty"`
	// CAFile is a PEM file with the authorities that sign the server's certificate. Absolute; https only. Absent: those of the system.
	CAFile string `yaml:"caFile,omitempty"`
	// Headers are sent with every delivery. At most 16, none that authenticates.
	Headers map[string]string `yaml:"headers,omitempty"`
}

// Storm is when acting is held because many targets are breached at once, which has one cause that no step of a task cures.
type Storm struct {
	// BreachedPercent is the share of the watched targets from which on, itself included, acting is held. Absent: 30. 1 to 100.
	BreachedPercent int32 `yaml:"breachedPercent"`
	// MinimumTargets is how many targets must be breached at least, whatever their share. Absent: 10. 1 to 100000, which never holds.
	MinimumTargets int32 `yaml:"minimumTargets"`
	// WithinSeconds is within how long the breaches must have begun. Absent: 60. 1 to 3600.
	WithinSeconds int32 `yaml:"withinSeconds"`
	// CalmSeconds is how long fewer must be breached before acting goes on. Absent: 300. 0 to 86400.
	CalmSeconds int32 `yaml:"calmSeconds"`
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{Storm: Storm{
		BreachedPercent: DefaultBreachedPercent,
		MinimumTargets:  DefaultMinimumTargets,
		WithinSeconds:   DefaultWithinSeconds,
		CalmSeconds:     DefaultCalmSeconds,
	}}
}

// Load reads the file at path. An empty folder in its place is how an optional ConfigMap that nobody made is mounted: it gives
// [Default], and found is false. Load fails as Parse does, or when the file cannot be read, or when it is missing in any other way:
// a name that was mistyped must not pass for no configuration.
func Load(path string) (configuration Config, found bool, err error) {
	file, err := os.Open(path) //nolint:gosec // the administrator names the file
	if errors.Is(err, fs.ErrNotExist) {
		configuration, err = absent(path)
		return configuration, false, err
	}
	if err != nil {
		return Config{}, false, fmt.Errorf("open the configuration: %w", err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return Config{}, false, fmt.Errorf("read the configuration %s: %w", path, err)
	}
	configuration, err = Parse(filepath.Base(path), data)
	return configuration, true, err
}

// absent tells a folder in which nobody put anything from one in which the file has another name.
func absent(path string) (Config, error) {
	folder, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(folder))
	if err != nil {
		return Config{}, fmt.Errorf("open the configuration: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") || entry.Name() == name { // the kubelet's own links, and one to what it has just taken away
			continue
		}
		return Config{}, fmt.Errorf("open the configuration: %s does not exist, and the folder is not empty (%q): give the file, or the key of the ConfigMap, the name %s",
			path, entry.Name(), name)
	}
	return Default(), nil
}
