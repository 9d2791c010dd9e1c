// Command chart writes the Helm chart from the same manifests as dist/install.yaml.
//
// Every object of the chart comes out of `kustomize build`: a rule, a probe or a port that changes below config/
// changes in the chart too. What this program adds is which value switches an object, and which fields a value sets.
// Values are described once, in source/values.schema.yaml: values.yaml, values.schema.json and the table of the README
// are made from it. Nothing in the chart's folder is written by hand.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	var given release
	flags := flag.NewFlagSet("chart", flag.ContinueOnError)
	kustomize := flags.String("kustomize", "kustomize", "The kustomize program.")
	config := flags.String("config", "config", "The folder of the kustomize sources.")
	output := flags.String("output", "dist/chart", "The folder to write. What else is in it is removed.")
	flags.StringVar(&given.Version, "version", "0.1.0", "The version of the chart and of the operator, without a leading v.")
	flags.StringVar(&given.Image, "image", "example.com/aiops-operator:v0.1.0", "The operator's image, with a tag or a digest.")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	var manifests []byte
	for _, folder := range []string{"default", "prometheus", "network-policy"} {
		built, err := build(ctx, *kustomize, filepath.Join(*config, folder))
		if err != nil {
			return err
		}
		manifests = append(append(manifests, "---\n"...), built...)
	}
	files, err := generate(given, manifests)
	if err != nil {
		return err
	}
	return write(*output, files)
}

func build(ctx context.Context, kustomize, folder string) ([]byte, error) {
	command := exec.CommandContext(ctx, kustomize, "build", folder)
	var printed, problems bytes.Buffer
	command.Stdout, command.Stderr = &printed, &problems
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("build %s: %w\n%s", folder, err, problems.Bytes())
	}
	return printed.Bytes(), nil
}

// write makes the folder hold these files and no others. What is right already is left alone, so that whoever reads the chart
// meanwhile finds one. A folder that holds something else is not touched: a mistyped -output must not cost anybody a folder.
func write(folder string, files map[string][]byte) error {
	_, err := os.Stat(filepath.Join(folder, "Chart.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		if entries, _ := os.ReadDir(folder); len(entries) > 0 {
			return fmt.Errorf("write the chart: %s is neither empty nor a chart", folder)
		}
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(folder, name), content); err != nil {
			return err
		}
	}
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return fmt.Errorf("look for what the chart no longer has: %w", err)
		}
		if _, made := files[filepath.ToSlash(name)]; made {
			return nil
		}
		return os.Remove(path)
	})
}

func writeFile(path string, content []byte) error {
	if found, err := os.ReadFile(path); err == nil && bytes.Equal(found, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the chart's folder: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return nil
}
