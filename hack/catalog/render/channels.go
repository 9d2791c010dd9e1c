package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"
)

// Schemas of a file-based catalog's documents.
const (
	packageSchema = "olm.package"
	channelSchema = "olm.channel"
	bundleSchema  = "olm.bundle"
)

// document is one part of a file-based catalog, kept whole.
type document map[string]any

// channel is a document of the schema olm.channel, as the semver template writes it.
type channel struct {
	Schema  string  `json:"schema"`
	Name    string  `json:"name"`
	Package string  `json:"package"`
	Entries []entry `json:"entries"`
}

type entry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
}

// majorChannel is the name that the semver template gives a channel of one major version.
var majorChannel = regexp.MustCompile(`^(candidate|fast|stable)-v(\d+)$`)

// joinMajors replaces the channels of each kind, such as stable-v0 and stable-v1, by one channel of the kind's name. From
// the last bundle of a major version an upgrade leads to the newest of the next major version's first minor version: who
// crosses to a new major version has seen everything the old one migrates.
func joinMajors(documents []document) ([]document, error) {
	byKind := map[string][]channel{}
	var others []document
	for _, next := range documents {
		if next["schema"] != channelSchema {
			others = append(others, next)
			continue
		}
		var read channel
		if err := convert(next, &read); err != nil {
			return nil, fmt.Errorf("read the channel %v: %w", next["name"], err)
		}
		match := majorChannel.FindStringSubmatch(read.Name)
		if match == nil {
			return nil, fmt.Errorf("the channel %s is not one of a major version: the template must set generateMajorChannels alone", read.Name)
		}
		if len(read.Entries) == 0 {
			return nil, fmt.Errorf("the channel %s has no entries", read.Name)
		}
		byKind[match[1]] = append(byKind[match[1]], read)
	}
	joined, err := joinKinds(byKind)
	if err != nil {
		return nil, err
	}
	return slices.Concat(defaultToJoined(others), joined), nil
}

// joinKinds makes one channel of each kind there is.
func joinKinds(byKind map[string][]channel) ([]document, error) {
	var joined []document
	for _, kind := range []string{"candidate", "fast", "stable"} {
		majors := byKind[kind]
		if len(majors) == 0 {
			continue
		}
		slices.SortFunc(majors, func(a, b channel) int { return majorOf(a) - majorOf(b) })
		whole := channel{Schema: channelSchema, Name: kind, Package: majors[0].Package}
		for _, next := range majors {
			if len(whole.Entries) > 0 {
				firstMinorHead(next.Entries).Replaces = whole.Entries[len(whole.Entries)-1].Name
			}
			whole.Entries = append(whole.Entries, next.Entries...)
		}
		var written document
		if err := convert(whole, &written); err != nil {
			return nil, fmt.Errorf("write the channel %s: %w", kind, err)
		}
		joined = append(joined, written)
	}
	return joined, nil
}

func majorOf(one channel) int {
	major, _ := strconv.Atoi(majorChannel.FindStringSubmatch(one.Name)[2])
	return major
}

// firstMinorHead is the newest entry of the channel's first minor version: what the head of the second one replaces, or
// else the last entry. The template lists entries in ascending order, at least one.
func firstMinorHead(entries []entry) *entry {
	for _, next := range entries {
		replaced := slices.IndexFunc(entries, func(one entry) bool { return one.Name == next.Replaces })
		if replaced >= 0 {
			return &entries[replaced]
		}
	}
	return &entries[len(entries)-1]
}

// defaultToJoined names the joined channel as the package's default where the template named that of a major version.
func defaultToJoined(documents []document) []document {
	for _, next := range documents {
		name, isText := next["defaultChannel"].(string)
		if next["schema"] == packageSchema && isText {
			next["defaultChannel"] = majorChannel.ReplaceAllString(name, "$1")
		}
	}
	return documents
}

// decodeDocuments reads JSON documents that follow one another.
func decodeDocuments(encoded []byte) ([]document, error) {
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	var documents []document
	for {
		var next document
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode what opm wrote: %w", err)
		}
		documents = append(documents, next)
	}
}

// encodeDocuments writes a file-based catalog in YAML: the package, the channels, then the bundles.
func encodeDocuments(documents []document) ([]byte, error) {
	slices.SortStableFunc(documents, func(a, b document) int { return rank(a) - rank(b) })
	var out bytes.Buffer
	for _, next := range documents {
		encoded, err := yaml.Marshal(next)
		if err != nil {
			return nil, fmt.Errorf("encode the catalog: %w", err)
		}
		out.WriteString("---\n")
		out.Write(encoded)
	}
	return out.Bytes(), nil
}

func rank(one document) int {
	switch one["schema"] {
	case packageSchema:
		return 0
	case channelSchema:
		return 1
	default:
		return 2
	}
}

// convert turns one shape of the same JSON into another.
func convert(from, into any) error {
	encoded, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(encoded, into)
}
