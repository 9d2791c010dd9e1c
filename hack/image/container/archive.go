package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// WriteArchive writes an image or an index as a tar file of an OCI image layout, which docker load, kind load
// image-archive, podman, skopeo and ctr read. The archive names the image by the reference.
func WriteArchive(path string, content mutate.Appendable, reference name.Tag, created time.Time) (err error) {
	folder, err := os.MkdirTemp(filepath.Dir(path), ".layout-")
	if err != nil {
		return fmt.Errorf("make a folder for the layout of %s: %w", reference, err)
	}
	defer os.RemoveAll(folder)
	if err := writeLayout(folder, content, reference); err != nil {
		return fmt.Errorf("write the layout of %s: %w", reference, err)
	}
	files, err := filesBelow(os.DirFS(folder), "")
	if err != nil {
		return fmt.Errorf("read the layout of %s: %w", reference, err)
	}
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the archive of %s: %w", reference, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return pack(out, files, created)
}

func writeLayout(folder string, content mutate.Appendable, reference name.Tag) error {
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	// The first is containerd's own, with the whole name; the second is what the layout's specification knows.
	names := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          reference.Name(),
		"org.opencontainers.image.ref.name": reference.TagStr(),
	})
	switch content := content.(type) {
	case v1.ImageIndex:
		return written.AppendIndex(content, names)
	case v1.Image:
		return written.AppendImage(content, names)
	default:
		return fmt.Errorf("%T is neither an image nor an index", content)
	}
}
