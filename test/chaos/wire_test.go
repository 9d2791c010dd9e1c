package chaos_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// request names what a process asks of the outside.
type request struct {
	Verb        string
	Resource    string
	Subresource string
	DryRun      bool
}

// String is such as "patch aitasks/status".
func (r request) String() string {
	if r.Subresource == "" {
		return r.Verb + " " + r.Resource
	}
	return r.Verb + " " + r.Resource + "/" + r.Subresource
}

func (r request) isWrite() bool {
	return r.Verb != "get" && r.Verb != "watch"
}

// counts says whether the request is one of an incident's writes. Events are told in the background and in no fixed order, leases
// are the process's own, and a dry run changes nothing.
func (r request) counts() bool {
	return r.isWrite() && r.Resource != "events" && r.Resource != "leases" && !r.DryRun
}

const notification = "notification"

// fate is what becomes of one write and of the process that makes it.
type fate string

const (
	passes     fate = "passes"
	diesBefore fate = "is never sent: the process dies before"
	diesAfter  fate = "is done: the process dies after"
	unanswered fate = "is done, but its answer is lost"
	hanging    fate = "is done, but its answer does not come as long as the process waits"
)

var (
	errDead       = errors.New("this process is dead")
	errNoAnswer   = errors.New("the answer was lost on the way")
	errDisconnect = errors.New("the connection was cut")
)

// wire is all that connects one operator process with the outside. It counts writes, and breaks on command.
type wire struct {
	// namespace is the only one that the process sees: its lists and watches of all namespaces become those of this one. So many
	// operators can be broken at the same time without seeing each other's tasks.
	namespace string

	mutex   sync.Mutex
	armed   bool
	writes  []string
	at      int
	fate    fate
	fateOf  string
	met     chan struct{}
	dead    chan struct{}
	holds   []*hold
	silence map[string]*silence
	expired map[string]bool
}

func newWire(namespace string) *wire {
	return &wire{namespace: namespace, met: make(chan struct{}), dead: make(chan struct{}), silence: map[string]*silence{}, expired: map[string]bool{}}
}

// arm begins to count writes; the one with this number, from 1, meets the fate.
func (w *wire) arm(at int, fate fate) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.armed, w.at, w.fate = true, at, fate
}

// armFor begins to count writes; the first of this kind, such as "patch deployments", meets the fate.
func (w *wire) armFor(what string, fate fate) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.armed, w.fateOf, w.fate = true, what, fate
}

// counted returns the writes since arm, in the order in which they were sent.
func (w *wire) counted() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.writes)
}

// kill ends the process as the outside sees it: nothing of it gets out any more.
func (w *wire) kill() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.die()
}

// die needs the mutex.
func (w *wire) die() {
	if !w.isDead() {
		close(w.dead)
	}
}

func (w *wire) isDead() bool {
	return isClosed(w.dead)
}

// hasMet says whether the write that was armed for has met its fate.
func (w *wire) hasMet() bool {
	return isClosed(w.met)
}

func isClosed(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}

// meet counts a write and says what becomes of it. A dying process sends nothing else from this moment on.
func (w *wire) meet(what request) (fate, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.isDead() {
		return "", errDead
	}
	if !w.armed || !what.counts() {
		return passes, nil
	}
	w.writes = append(w.writes, what.String())
	if len(w.writes) != w.at && what.String() != w.fateOf {
		return passes, nil
	}
	w.at, w.fateOf = 0, ""
	switch w.fate {
	case diesBefore:
		w.die()
		close(w.met)
		return "", errDead
	case diesAfter:
		w.die()
	}
	return w.fate, nil
}

// done says that the write that was armed for is done, whatever its process hears of it.
func (w *wire) done() { close(w.met) }

// hold keeps writes of one kind on the wire.
type hold struct {
	what     string
	reached  chan struct{}
	released chan struct{}
	once     sync.Once
	// ctx is that of the write, once it is reached.
	ctx context.Context
}

// hold keeps the next write of this kind, such as "patch deployments", from being sent, until it is released.
func (w *wire) hold(what string) *hold {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	held := &hold{what: what, reached: make(chan struct{}), released: make(chan struct{})}
	w.holds = append(w.holds, held)
	return held
}

func (h *hold) release() { h.once.Do(func() { close(h.released) }) }

// overdue says that the time which the process gives to its action was up before the action was done.
func (h *hold) overdue() bool {
	return isClosed(h.reached) && errors.Is(h.ctx.Err(), context.DeadlineExceeded)
}

func (w *wire) wait(ctx context.Context, what request) error {
	w.mutex.Lock()
	index := slices.IndexFunc(w.holds, func(held *hold) bool { return held.what == what.String() })
	if index < 0 || what.DryRun {
		w.mutex.Unlock()
		return nil
	}
	held := w.holds[index]
	w.holds = slices.Delete(w.holds, index, index+1)
	w.mutex.Unlock()
	held.ctx = ctx
	close(held.reached)
	select {
	case <-held.released:
		return nil
	case <-w.dead:
		return errDead
	case <-ctx.Done():
		return ctx.Err()
	}
}

// silence swallows the events of some resources.
type silence struct {
	over chan struct{}
}

// silenced keeps the events of these resources from arriving, without cutting the connection. The returned function ends that: what
// came in the meantime is lost, and the connections are cut. With relist the API server then does not know the old version
// any more either, so that the process has to read everything anew.
func (w *wire) silenced(resources ...string) (end func(relist bool)) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	quiet := &silence{over: make(chan struct{})}
	for _, resource := range resources {
		w.silence[resource] = quiet
	}
	return func(relist bool) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		for _, resource := range resources {
			delete(w.silence, resource)
			w.expired[resource] = relist
		}
		close(quiet.over)
	}
}

func (w *wire) silenceOf(resource string) *silence {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.silence[resource]
}

// stream is the body of a watch.
type stream struct {
	io.ReadCloser
	ctx      context.Context
	wire     *wire
	resource string
}

// Read passes on what comes, unless the wire is silent.
func (s *stream) Read(into []byte) (int, error) {
	n, err := s.ReadCloser.Read(into)
	if s.wire.isDead() {
		return 0, errDead
	}
	if quiet := s.wire.silenceOf(s.resource); quiet != nil {
		select {
		case <-quiet.over:
		case <-s.ctx.Done():
		case <-s.wire.dead:
		}
		return 0, errDisconnect
	}
	return n, err
}

// wrap puts the wire between a client and the API server.
func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return wireTransport{wire: w, next: next}
}

type wireTransport struct {
	wire *wire
	next http.RoundTripper
}

// RoundTrip sends a request, or does not.
func (t wireTransport) RoundTrip(original *http.Request) (*http.Response, error) {
	what := requestOf(original)
	sent := t.wire.confine(original)
	if !what.isWrite() {
		return t.read(sent, what)
	}
	fate, err := t.wire.meet(what)
	if err == nil {
		err = t.wire.wait(sent.Context(), what)
	}
	if err != nil {
		return nil, errors.Join(err, closeBody(sent))
	}
	if fate == passes {
		return t.next.RoundTrip(sent)
	}
	response, err := t.next.RoundTrip(sent.WithContext(context.WithoutCancel(sent.Context()))) // what is on its way arrives
	t.wire.done()
	if err != nil {
		return nil, err
	}
	if fate == hanging {
		<-sent.Context().Done()
	}
	_, err = io.Copy(io.Discard, response.Body)
	return nil, errors.Join(errNoAnswer, err, response.Body.Close())
}

func (t wireTransport) read(sent *http.Request, what request) (*http.Response, error) {
	if t.wire.isDead() {
		return nil, errDead
	}
	if what.Verb == "watch" && t.wire.forgets(sent, what) {
		return goneAnswer(sent), nil
	}
	response, err := t.next.RoundTrip(sent)
	if err == nil && what.Verb == "watch" {
		response.Body = &stream{ReadCloser: response.Body, ctx: sent.Context(), wire: t.wire, resource: what.Resource}
	}
	return response, err
}

// forgets says, once, that the version from which a watch wants to go on is too old.
func (w *wire) forgets(sent *http.Request, what request) bool {
	if sent.URL.Query().Get("sendInitialEvents") != "" {
		return false
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	forgets := w.expired[what.Resource]
	delete(w.expired, what.Resource)
	return forgets
}

func goneAnswer(sent *http.Request) *http.Response {
	const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`
	return &http.Response{
		Status: "410 Gone", StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: sent,
		Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body)),
	}
}

func closeBody(sent *http.Request) error {
	if sent.Body == nil {
		return nil
	}
	return sent.Body.Close()
}

// confine narrows a list or watch of all namespaces to the wire's own.
func (w *wire) confine(original *http.Request) *http.Request {
	segments := segmentsOf(original.URL.Path)
	group := groupLength(segments)
	if original.Method != http.MethodGet || group == 0 || len(segments) != group+1 || segments[group] == "namespaces" {
		return original
	}
	sent := original.Clone(original.Context())
	sent.URL.Path = "/" + strings.Join(slices.Concat(segments[:group], []string{"namespaces", w.namespace}, segments[group:]), "/")
	return sent
}

func segmentsOf(path string) []string {
	return strings.Split(strings.Trim(path, "/"), "/")
}

// groupLength is how many segments name the group and version: api/v1 or apis/GROUP/VERSION. 0 for another path.
func groupLength(segments []string) int {
	switch segments[0] {
	case "api":
		return 2
	case "apis":
		return 3
	}
	return 0
}

func requestOf(sent *http.Request) request {
	verbs := map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}
	query := sent.URL.Query()
	out := request{Verb: verbs[sent.Method], DryRun: query.Has("dryRun")}
	if query.Get("watch") == "true" || query.Get("watch") == "1" {
		out.Verb = "watch"
	}
	segments := segmentsOf(sent.URL.Path)
	rest := segments[min(len(segments), groupLength(segments)):]
	if len(rest) > 2 && rest[0] == "namespaces" {
		rest = rest[2:]
	}
	if len(rest) > 0 {
		out.Resource = rest[0]
	}
	if len(rest) > 2 {
		out.Subresource = rest[2]
	}
	return out
}

var _ fmt.Stringer = request{}
