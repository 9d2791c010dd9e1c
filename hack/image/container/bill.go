package container

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The parts of SPDX 2.3 that a bill of Go modules needs.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		DataLicense   string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID               string          `json:"SPDXID"`
		Name             string          `json:"name"`
		Version          string          `json:"versionInfo"`
		DownloadLocation string          `json:"downloadLocation"`
		FilesAnalyzed    bool            `json:"filesAnalyzed"`
		Checksums        []spdxChecksum  `json:"checksums,omitempty"`
		References       []spdxReference `json:"externalRefs"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

const spdxDocumentID = "SPDXRef-DOCUMENT"

// billOfMaterials lists what the binary itself says it was built from: the modules, with go.sum's hashes, and Go.
func (p Program) billOfMaterials(binary []byte, platform v1.Platform) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("read what the binary was built from: %w", err)
	}
	hash := sha256.Sum256(binary)
	digest := hex.EncodeToString(hash[:])
	name := fmt.Sprintf("%s-v%s-%s-%s", p.Name, p.Version, platform.OS, platform.Architecture)
	program := goPackage(info.Main.Path, "v"+p.Version, "")
	program.Checksums = []spdxChecksum{{Algorithm: "SHA256", Value: digest}}
	document := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: spdxDocumentID, Name: name,
		// A namespace is an identifier that must be unique to the document; nothing is served there.
		Namespace: "https://github.com/example/aiops-operator/spdx/" + name + "-" + digest,
		Creation: spdxCreation{
			Created: p.Created.UTC().Format(time.RFC3339), Creators: []string{"Tool: aiops-operator-image-" + p.Version},
		},
		Packages:      []spdxPackage{program},
		Relationships: []spdxRelationship{{Element: spdxDocumentID, Type: "DESCRIBES", Related: program.ID}},
	}
	for _, dependency := range dependencies(info) {
		document.Packages = append(document.Packages, dependency)
		document.Relationships = append(document.Relationships,
			spdxRelationship{Element: program.ID, Type: "DEPENDS_ON", Related: dependency.ID})
	}
	encoded, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the bill of materials: %w", err)
	}
	return append(encoded, '\n'), nil
}

// dependencies are the standard library and the modules, as linked: a replaced module is named by what replaced it.
func dependencies(info *debug.BuildInfo) []spdxPackage {
	packages := []spdxPackage{goPackage("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		packages = append(packages, goPackage(module.Path, module.Version, module.Sum))
	}
	return packages
}

func goPackage(path, version, sum string) spdxPackage {
	made := spdxPackage{
		ID:   "SPDXRef-Package-" + regexp.MustCompile(`[^A-Za-z0-9.]+`).ReplaceAllString(path+"-"+version, "-"),
		Name: path, Version: version, DownloadLocation: "NOASSERTION",
		References: []spdxReference{{Category: "PACKAGE-MANAGER", Type: "purl", Locator: "pkg:golang/" + path + "@" + version}},
	}
	if sum != "" {
		// go.sum hashes a module's list of files, which is no checksum in SPDX's sense.
		made.References = append(made.References, spdxReference{Category: "OTHER", Type: "go-sum", Locator: sum})
	}
	return made
}
