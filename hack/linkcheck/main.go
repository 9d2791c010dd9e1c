// Command linkcheck reports links in the repository's Markdown files that lead nowhere: a relative link to a file
// that is not there, or to a heading that the file does not have. Addresses outside the repository are not asked:
// a check must not depend on the weather.
package main

import (
	"fmt"
	"io/fs"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(os.DirFS(root)); err != nil {
		fmt.Fprintln(os.Stderr, "linkcheck:", err)
		os.Exit(1)
	}
}

// run checks every Markdown file of tree and returns an error if a link is broken; the links are printed.
func run(tree fs.FS) error {
	broken, checked, err := check(tree)
	if err != nil {
		return err
	}
	for _, link := range broken {
		fmt.Println(link)
	}
	if len(broken) > 0 {
		return fmt.Errorf("%d of %d links are broken", len(broken), checked)
	}
	fmt.Printf("%d links lead somewhere\n", checked)
	return nil
}
