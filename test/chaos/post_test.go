package chaos_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/example/aiops-operator/internal/action"
)

// postOffice receives notifications. Each process has an address of its own there, so that what a dead process sends does not arrive.
type postOffice struct {
	server *httptest.Server

	mutex sync.Mutex
	wires map[string]*wire
	// keys are the Idempotency-Keys of what arrived, by namespace and name of the task.
	keys map[string][]string
}

func openPostOffice() *postOffice {
	office := &postOffice{wires: map[string]*wire{}, keys: map[string][]string{}}
	office.server = httptest.NewServer(office)
	return office
}

func (o *postOffice) close() { o.server.Close() }

// receiver returns what a process at the end of this wire is to be configured with.
func (o *postOffice) receiver(from *wire) action.Receiver {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	path := fmt.Sprintf("/%d", len(o.wires))
	o.wires[path] = from
	return action.Receiver{Name: "default", URL: o.server.URL + path}
}

// arrived returns the keys of the notifications about a task.
func (o *postOffice) arrived(namespace, task string) []string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Clone(o.keys[namespace+"/"+task])
}

// ServeHTTP receives one. A connection without an answer is cut.
func (o *postOffice) ServeHTTP(answer http.ResponseWriter, posted *http.Request) {
	o.mutex.Lock()
	from := o.wires[posted.URL.Path]
	o.mutex.Unlock()
	fate, err := from.meet(request{Verb: "create", Resource: notification})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	body, err := io.ReadAll(io.LimitReader(posted.Body, 1<<20))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var content action.Notification
	if err := json.Unmarshal(body, &content); err != nil || strings.TrimSpace(content.Text) == "" {
		http.Error(answer, "not a notification", http.StatusBadRequest)
		return
	}
	o.mutex.Lock()
	task := content.Namespace + "/" + content.Task
	o.keys[task] = append(o.keys[task], posted.Header.Get("Idempotency-Key"))
	o.mutex.Unlock()
	if fate != passes {
		from.done()
		panic(http.ErrAbortHandler)
	}
}
