package lifecycle_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/aiops-operator/test/harness"
)

// No version has been released yet: both versions are this tree under other numbers. Only their definitions differ.
const (
	olderVersion = "v0.1.0"
	newerVersion = "v0.2.0"
)

// newer is the name of the field that the newer version has in many places and the older one does not know.
const newer = "newer"

// version is one version of the operator: its bundle and its program.
type version struct {
	release *harness.Release
	program string
}

func olderOperator(ctx context.Context) version {
	GinkgoHelper()
	return versionOf(ctx, olderVersion, current.Definitions)
}

// newerOperator has a kind that has grown as the rules of growth allow it: by optional fields, in spec and all over status.
func newerOperator(ctx context.Context) version {
	GinkgoHelper()
	definition := current.Definitions[0].DeepCopy()
	for _, parent := range [][]string{
		{"spec"}, {"status"}, {"status", "decision"}, {"status", "target"}, {"status", "incident"}, {"status", "order"},
		{"status", "conditions", "[]"}, {"status", "signals", "[]"}, {"status", "history", "[]"},
	} {
		grow(definition, parent)
	}
	return versionOf(ctx, newerVersion, []*unstructured.Unstructured{definition})
}

func versionOf(ctx context.Context, number string, definitions []*unstructured.Unstructured) version {
	GinkgoHelper()
	program, err := harness.BuildVersion(ctx, number)
	Expect(err).NotTo(HaveOccurred())
	release := *current
	release.CSV = current.CSV.DeepCopy()
	release.CSV.Name = "aiops-operator." + number
	release.Definitions = definitions
	return version{release: &release, program: program}
}

// grow adds an optional text to a place in the kind's schema.
func grow(definition *unstructured.Unstructured, parent []string) {
	GinkgoHelper()
	versions, found, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	served, ok := versions[0].(map[string]any)
	Expect(ok).To(BeTrue())
	path := []string{"schema", "openAPIV3Schema"}
	for _, name := range parent {
		if name == "[]" {
			path = append(path, "items")
		} else {
			path = append(path, "properties", name)
		}
	}
	Expect(unstructured.SetNestedMap(served, map[string]any{"type": "string", "maxLength": int64(64)}, append(path, "properties", newer)...)).To(Succeed())
	Expect(unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions")).To(Succeed())
}

// start starts a replica and returns when its caches are filled. The caller ends it.
func (v version) start(ctx context.Context, name, config string) *harness.Process {
	GinkgoHelper()
	process, err := harness.StartProcess(ctx, kubernetes, v.program, harness.ProcessOptions{Name: name, Config: config})
	Expect(err).NotTo(HaveOccurred())
	Expect(process.WaitReady(ctx)).To(Succeed())
	return process
}

// holder is who holds the lease, empty for nobody.
func holder(ctx context.Context) func() string {
	return func() string {
		lease := &coordinationv1.Lease{}
		if err := admin.Get(ctx, leaseKey(), lease); err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
}

// mailbox is a receiver that does not answer until it is opened.
type mailbox struct {
	server *httptest.Server
	opened chan struct{}

	mutex    sync.Mutex
	received map[string]int
}

func newMailbox(ctx context.Context) *mailbox {
	GinkgoHelper()
	m := &mailbox{opened: make(chan struct{}), received: map[string]int{}}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	m.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: m}}
	m.server.Start()
	DeferCleanup(func() {
		m.server.CloseClientConnections()
		m.server.Close()
	})
	return m
}

// ServeHTTP answers once the mailbox is open.
func (m *mailbox) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body) // until it is read, nobody notices that the sender has gone
	select {
	case <-m.opened:
		m.mutex.Lock()
		m.received[request.Header.Get("Idempotency-Key")]++
		m.mutex.Unlock()
		writer.WriteHeader(http.StatusNoContent)
	case <-request.Context().Done():
	}
}

// arrived counts the notifications that have arrived, each of them once.
func (m *mailbox) arrived() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return len(m.received)
}

// configuration is an operator's configuration with the mailbox as the default receiver.
func (m *mailbox) configuration() string {
	return configuration + fmt.Sprintf("receivers:\n- name: default\n  url: %s\n  timeoutSeconds: 60\n", m.server.URL)
}
