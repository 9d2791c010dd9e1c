package outbound

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestClientFollowsItsFileOfAuthorities(t *testing.T) {
	served := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer served.Close()
	path := filepath.Join(t.TempDir(), "ca.crt")
	server := NewServer(Options{Timeout: time.Minute, CAFile: path})
	if _, err := server.Client(); err == nil {
		t.Error("there is a client without its file of authorities")
	}
	for name, content := range map[string]string{"empty": "", "garbage": "garbage", "too large": strings.Repeat("x", maxAuthorityBytes+1)} {
		write(t, path, content)
		if _, err := server.Client(); err == nil {
			t.Errorf("there is a client although the file of authorities is %s", name)
		}
	}
	write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: served.Certificate().Raw})))
	client, err := server.Client()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(served.URL)
	if err != nil {
		t.Fatalf("the authority is not trusted once its file is there: %v", err)
	}
	_ = answer.Body.Close()
	if again, err := server.Client(); err != nil || again != client {
		t.Errorf("Client: %p, %v, want the same one while the file is the same", again, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Client(); err == nil {
		t.Error("there is a client after its file of authorities went away")
	}
}

func TestClientFollowsNoRedirect(t *testing.T) {
	asked := 0
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer served.Close()
	client, err := NewServer(Options{Timeout: time.Minute}).Client()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(served.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if asked != 1 || answer.StatusCode != http.StatusFound {
		t.Errorf("asked %d times, status %d, want the redirect itself", asked, answer.StatusCode)
	}
}

func TestReadCredential(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"a line":                 {"token\n", "token"},
		"with space around it":   {"  token \r\n", "token"},
		"empty":                  {" \n", ""},
		"two lines":              {"to\nken", ""},
		"a byte that ends texts": {"to\x00ken", ""},
		"too large":              {strings.Repeat("x", maxCredentialBytes+1), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "credential")
			write(t, path, test.content)
			got, err := ReadCredential(path)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("ReadCredential: %q, %v, want %q", got, err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "ken") {
				t.Errorf("the error holds the credential: %v", err)
			}
		})
	}
	if _, err := ReadCredential(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("ReadCredential of an absent file: no error")
	}
}
