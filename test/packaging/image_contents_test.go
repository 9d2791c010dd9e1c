package packaging_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// imageFile is a file of an image.
type imageFile struct {
	header  tar.Header
	content []byte
}

// filesOf lists the files of an image by path; folders are left out.
func filesOf(t *testing.T, image v1.Image) map[string]imageFile {
	t.Helper()
	stream := mutate.Extract(image)
	defer stream.Close()
	files := map[string]imageFile{}
	archive := tar.NewReader(stream)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeDir {
			files[header.Name] = imageFile{header: *header, content: content}
		}
	}
}

// contentsOf are the files' contents by path.
func contentsOf(files map[string]imageFile) map[string]string {
	contents := map[string]string{}
	for path, file := range files {
		contents[path] = string(file.content)
	}
	return contents
}

// readArchive opens an OCI archive and returns its index with the names it gives its images.
func readArchive(t *testing.T, path string) v1.ImageIndex {
	t.Helper()
	packed, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	folder := t.TempDir()
	archive := tar.NewReader(packed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(folder, header.Name)
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(target, 0o700)
		} else {
			err = writeFrom(target, archive)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func writeFrom(path string, content io.Reader) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// descriptorsOf lists what an index points to.
func descriptorsOf(t *testing.T, index v1.ImageIndex) []v1.Descriptor {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Manifests
}

func imageOf(t *testing.T, index v1.ImageIndex, descriptor v1.Descriptor) v1.Image {
	t.Helper()
	image, err := index.Image(descriptor.Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func configOf(t *testing.T, image v1.Image) *v1.ConfigFile {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return config
}
