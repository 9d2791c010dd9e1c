package outbound

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const maxCredentialBytes = 64 << 10

// ReadCredential reads a file with a token or a password: one line of at most 64 KiB, without the space around it. Read on every use, so
// that a rotated credential holds at once. Its errors name the file and hold nothing of its content.
func ReadCredential(path string) (string, error) {
	content, err := readBounded(path, maxCredentialBytes)
	if err != nil {
		return "", err
	}
	credential := strings.TrimSpace(string(content))
	if credential == "" || strings.ContainsAny(credential, "\r\n\x00") {
		return "", fmt.Errorf("credential file %s: must hold one line that is not empty", path)
	}
	return credential, nil
}

func readBounded(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the administrator's configuration names the file
	if err != nil {
		return nil, fmt.Errorf("open file: %w", err)
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read file %s: %w", path, err)
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("read file %s: it is larger than %d bytes", path, limit)
	}
	return content, nil
}
