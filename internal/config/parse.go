package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of lists and texts.
const (
	maxEndpoints   = 64
	maxReceivers   = 64
	maxHeaders     = 16
	maxAddress     = 2048
	maxPath        = 4096
	maxUsername    = 256
	maxHeaderValue = 1024
	maxTimeout     = 60
	maxTargets     = 100_000
	maxWithin      = 3600
	maxCalm        = 86_400
	maxPercent     = 100
)

// Parse reads a configuration in YAML. name is the file's, for messages. Each problem of the error names file, line and key and says
// what to write instead, and none repeats a value: it could be a password that somebody wrote at the wrong place.
func Parse(name string, data []byte) (Config, error) {
	if len(data) > maxBytes {
		return Config{}, fmt.Errorf("%s: is larger than %d bytes", name, maxBytes)
	}
	reading := &document{name: name}
	parsed := Default()
	if root := reading.root(data); root != nil {
		reading.config(root, &parsed)
	}
	if err := reading.err(); err != nil {
		return Config{}, err
	}
	return parsed, nil
}

// root is the one document of a file. Nil: there is none, which is the default configuration, or it is not YAML.
func (d *document) root(data []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil {
		if !errors.Is(err, io.EOF) {
			d.failSyntax(err)
		}
		return nil
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		d.fail(&second, "", "holds more than one document, write one without ---")
		return nil
	case !errors.Is(err, io.EOF):
		d.failSyntax(err)
		return nil
	}
	if first.Kind != yaml.DocumentNode || len(first.Content) != 1 || isNull(first.Content[0]) {
		return nil
	}
	return first.Content[0]
}

func (d *document) config(node *yaml.Node, into *Config) {
	d.mapping(node, "", keys{
		"prometheusEndpoints": func(node *yaml.Node, path string) {
			taken := names{}
			d.list(node, path, maxEndpoints, func(node *yaml.Node, path string) {
				into.PrometheusEndpoints = append(into.PrometheusEndpoints, d.endpoint(node, path, taken))
			})
		},
		"receivers": func(node *yaml.Node, path string) {
			taken := names{}
			d.list(node, path, maxReceivers, func(node *yaml.Node, path string) {
				into.Receivers = append(into.Receivers, d.receiver(node, path, taken))
			})
		},
		"storm": func(node *yaml.Node, path string) { d.storm(node, path, &into.Storm) },
	})
}

func (d *document) endpoint(node *yaml.Node, path string, taken names) PrometheusEndpoint {
	read := PrometheusEndpoint{TimeoutSeconds: DefaultTimeoutSeconds}
	present := d.mapping(node, path, keys{
		"name":                  d.label(taken, &read.Name),
		"url":                   d.address(false, &read.URL),
		"timeoutSeconds":        d.number(1, maxTimeout, &read.TimeoutSeconds),
		"bearerTokenFile":       d.file(&read.BearerTokenFile),
		"basicAuth":             func(node *yaml.Node, path string) { read.BasicAuth = d.basicAuth(node, path) },
		"caFile":                d.file(&read.CAFile),
		"insecureSkipTLSVerify": d.truth(&read.InsecureSkipTLSVerify),
	})
	d.require(node, path, present, "name", "url")
	d.onlyHTTPS(present, path, read.URL, "caFile", "insecureSkipTLSVerify")
	if both := present["basicAuth"]; both != nil && present["bearerTokenFile"] != nil {
		d.fail(both, path+".basicAuth", "does not go together with bearerTokenFile, write one of the two")
	}
	if both := present["caFile"]; both != nil && read.InsecureSkipTLSVerify {
		d.fail(both, path+".caFile", "means nothing with insecureSkipTLSVerify, write one of the two")
	}
	return read
}

func (d *document) basicAuth(node *yaml.Node, path string) *BasicAuth {
	read := &BasicAuth{}
	present := d.mapping(node, path, keys{
		"username": func(node *yaml.Node, path string) {
			if d.text(node, path, maxUsername, &read.Username) && strings.ContainsAny(read.Username, ":\r\n\x00") {
				d.fail(node, path, "holds a colon or a line break, which basic authentication has no place for")
			}
		},
		"passwordFile": d.file(&read.PasswordFile),
	})
	d.require(node, path, present, "username", "passwordFile")
	return read
}

func (d *document) receiver(node *yaml.Node, path string, taken names) Receiver {
	read := Receiver{TimeoutSeconds: DefaultTimeoutSeconds}
	present := d.mapping(node, path, keys{
		"name":            d.label(taken, &read.Name),
		"url":             d.address(true, &read.URL),
		"timeoutSeconds":  d.number(1, maxTimeout, &read.TimeoutSeconds),
		"bearerTokenFile": d.file(&read.BearerTokenFile),
		"caFile":          d.file(&read.CAFile),
		"headers":         func(node *yaml.Node, path string) { read.Headers = d.headers(node, path) },
	})
	d.require(node, path, present, "name", "url")
	d.onlyHTTPS(present, path, read.URL, "caFile")
	return read
}

func (d *document) storm(node *yaml.Node, path string, into *Storm) {
	d.mapping(node, path, keys{
		"breachedPercent": d.number(1, maxPercent, &into.BreachedPercent),
		"minimumTargets":  d.number(1, maxTargets, &into.MinimumTargets),
		"withinSeconds":   d.number(1, maxWithin, &into.WithinSeconds),
		"calmSeconds":     d.number(0, maxCalm, &into.CalmSeconds),
	})
}

// require fails for every key that is not there.
func (d *document) require(node *yaml.Node, path string, present map[string]*yaml.Node, required ...string) {
	if present == nil {
		return // not a mapping, which was said already
	}
	for _, key := range required {
		if present[key] == nil {
			d.fail(node, path+"."+key, "is missing, and required")
		}
	}
}

// onlyHTTPS fails for keys that mean nothing without TLS: whoever wrote them believes in a protection that is not there.
func (d *document) onlyHTTPS(present map[string]*yaml.Node, path, address string, encrypted ...string) {
	if address == "" || strings.HasPrefix(strings.ToLower(address), "https://") {
		return
	}
	for _, key := range encrypted {
		if present[key] != nil {
			d.fail(present[key], path+"."+key, "means nothing for a url with http, write https or remove it")
		}
	}
}
