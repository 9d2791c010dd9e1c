package container

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	fileMode       = 0o644
	executableMode = 0o755
	folderMode     = 0o755
)

// file is a regular file of an image.
type file struct {
	// path is relative to the image's root.
	path    string
	mode    int64
	content []byte
}

// layer packs files, and the folders above them, in the order given.
func layer(files []file, created time.Time) (v1.Layer, error) {
	var packed bytes.Buffer
	if err := pack(&packed, files, created); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// pack writes files as a tar stream that depends on nothing but its arguments.
func pack(out io.Writer, files []file, created time.Time) error {
	archive := tar.NewWriter(out)
	written := map[string]bool{".": true}
	for _, next := range files {
		for _, folder := range foldersAbove(next.path) {
			if written[folder] {
				continue
			}
			written[folder] = true
			header := tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: folderMode, ModTime: created}
			if err := archive.WriteHeader(&header); err != nil {
				return fmt.Errorf("pack the folder %s: %w", folder, err)
			}
		}
		header := tar.Header{
			Typeflag: tar.TypeReg, Name: next.path, Mode: next.mode, Size: int64(len(next.content)), ModTime: created,
		}
		if err := archive.WriteHeader(&header); err != nil {
			return fmt.Errorf("pack %s: %w", next.path, err)
		}
		if _, err := archive.Write(next.content); err != nil {
			return fmt.Errorf("pack %s: %w", next.path, err)
		}
	}
	return archive.Close()
}

// foldersAbove lists the folders of a path, the outermost first.
func foldersAbove(name string) []string {
	var folders []string
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		folders = append(folders, folder)
	}
	slices.Reverse(folders)
	return folders
}

// filesBelow reads every file of a folder, each under the prefix, in the order of their names.
func filesBelow(folder fs.FS, prefix string) ([]file, error) {
	var files []file
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		files = append(files, file{path: path.Join(prefix, name), mode: fileMode, content: content})
		return nil
	})
	return files, err
}

// image makes an image of layers, from nothing.
func image(config v1.ConfigFile, created time.Time, layers ...v1.Layer) (v1.Image, error) {
	made := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	config.Created = v1.Time{Time: created}
	config.RootFS.Type = "layers"
	made, err := mutate.ConfigFile(made, &config)
	if err != nil {
		return nil, fmt.Errorf("configure the image: %w", err)
	}
	for _, next := range layers {
		made, err = mutate.Append(made, mutate.Addendum{Layer: next, History: v1.History{Created: v1.Time{Time: created}}})
		if err != nil {
			return nil, fmt.Errorf("add a layer: %w", err)
		}
	}
	return made, nil
}
