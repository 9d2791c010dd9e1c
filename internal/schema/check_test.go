package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/openapi"
	"k8s.io/utils/clock"
)

// server is an API server that publishes one document after the other, each from a moment on.
type server struct {
	began     time.Time
	published []publication
	reads     int
}

type publication struct {
	after time.Duration
	// document is nil where there is none, and err is what the index answers instead.
	document []byte
	err      error
	// behind is what another API server answers in place of the document that the index names, for a minute.
	behind []byte
}

// PathsWithContext returns the index.
func (s *server) PathsWithContext(context.Context) (map[string]openapi.GroupVersionWithContext, error) {
	var now publication
	for _, next := range s.published {
		if time.Since(s.began) >= next.after { //nolint:forbidigo // the time of the test's bubble
			now = next
		}
	}
	if now.err != nil || now.document == nil {
		return nil, now.err
	}
	return map[string]openapi.GroupVersionWithContext{"apis/aiops.example.com/v1": &document{server: s, publication: now}}, nil
}

type document struct {
	publication

	server *server
}

// SchemaWithContext returns the document.
func (d *document) SchemaWithContext(context.Context, string) ([]byte, error) {
	d.server.reads++
	if d.behind != nil && time.Since(d.server.began) < d.after+time.Minute { //nolint:forbidigo // the time of the test's bubble
		return d.behind, nil
	}
	return d.document, nil
}

// ServerRelativeURL names the document by what is in it.
func (d *document) ServerRelativeURL() string {
	return fmt.Sprint("/openapi/v3?hash=", len(d.document))
}

// newCheck returns a check of an API server that begins now, and the lines that it logs.
func newCheck(published ...publication) (*Check, *server, *[]string) {
	api, lines := &server{began: time.Now(), published: published}, &[]string{} //nolint:forbidigo // the time of the test's bubble
	logger := funcr.New(func(_, line string) { *lines = append(*lines, line) }, funcr.Options{})
	return &Check{OpenAPI: api, Clock: clock.RealClock{}, Logger: logger, Version: "v0.2.0"}, api, lines
}

// aDay is the context of a test that is to fail, and not to wait for ever.
func aDay(t *testing.T) context.Context {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), 24*time.Hour)
	t.Cleanup(end)
	return ctx
}

func complete(t *testing.T) []byte {
	t.Helper()
	return served(t, func(*apiextensionsv1.JSONSchemaProps) {})
}

func TestWait(t *testing.T) {
	outdated, forbidden := served(t, without("status", "order")), errors.New("forbidden")
	waited := `"msg"="Looked after no AITask: waited for the CustomResourceDefinition" "error"="` + (&OutdatedError{Missing: []string{"status.order"}, Version: "v0.2.0"}).Error() + `"`
	unsure := `"level"=0 "msg"="Started without knowing whether the CustomResourceDefinition has every field" "reason"=`
	tests := map[string]struct {
		published []publication
		want      time.Duration
		logs      []string
	}{
		"goes on at once":                       {published: []publication{{document: complete(t)}}},
		"follows a definition of a moment ago":  {published: []publication{{document: outdated}, {after: 2 * time.Second, document: complete(t)}}, want: 2 * time.Second},
		"follows a group of a moment ago":       {published: []publication{{}, {after: 2 * time.Second, document: complete(t)}}, want: 2 * time.Second},
		"waits for the definition, and says so": {published: []publication{{document: outdated}, {after: 90 * time.Second, document: complete(t)}}, want: 90 * time.Second, logs: []string{waited, waited}},
		"waits through errors that end": {published: []publication{{err: forbidden}, {after: time.Second, document: outdated}, {after: 20 * time.Second, document: complete(t)}},
			want: 20 * time.Second, logs: []string{waited}},
		"waits through an outage": {
			published: []publication{{document: outdated}, {after: 30 * time.Second, err: forbidden}, {after: 40 * time.Second, document: complete(t)}},
			want:      40 * time.Second, logs: []string{waited},
		},
		"reads again what another API server was behind with": {
			published: []publication{{document: complete(t), behind: outdated}}, want: time.Minute, logs: []string{waited},
		},
		"goes on where nobody may look": {published: []publication{{err: forbidden}}, want: settleTime,
			logs: []string{unsure + `"read the index of OpenAPI documents: forbidden"`}},
		"goes on where the kind is not published": {published: []publication{{}}, want: settleTime,
			logs: []string{unsure + `"find the OpenAPI document apis/aiops.example.com/v1: it is not there"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check, api, lines := newCheck(test.published...)
				check.Wait(aDay(t))
				if took := time.Since(api.began); took != test.want { //nolint:forbidigo // the time of the test's bubble
					t.Errorf("took %s, want %s", took, test.want)
				}
				if diff := cmp.Diff(test.logs, *lines, cmp.Transformer("empty", func(in []string) []string { return append([]string{}, in...) })); diff != "" {
					t.Errorf("log (-want +got):\n%s", diff)
				}
				if err := check.WaitsFor(); err != nil {
					t.Errorf("still waits for %v", err)
				}
			})
		})
	}
}

func TestWaitSaysWhatForAndEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check, api, _ := newCheck(publication{document: served(t, without("status", "order"))})
		ctx, end := context.WithCancel(aDay(t))
		done := make(chan struct{})
		go func() {
			defer close(done)
			check.Wait(ctx)
		}()
		synctest.Wait()
		var outdated *OutdatedError
		if !errors.As(check.WaitsFor(), &outdated) || !strings.Contains(outdated.Error(), "status.order;") {
			t.Errorf("waits for %v, want status.order", check.WaitsFor())
		}
		end()
		<-done
		if took := time.Since(api.began); took != 0 { //nolint:forbidigo // the time of the test's bubble
			t.Errorf("went on for %s", took)
		}
	})
}

func TestStartEndsTheProcessWhenAnOlderDefinitionIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newer := served(t, func(root *apiextensionsv1.JSONSchemaProps) {
			root.Properties["newer"] = apiextensionsv1.JSONSchemaProps{}
		})
		check, api, _ := newCheck(publication{document: complete(t)}, publication{after: time.Minute, err: errors.New("unavailable")},
			publication{after: 2 * time.Minute, document: newer}, publication{after: time.Hour, document: served(t, without("status", "order"))})
		check.Wait(aDay(t))
		err := check.Start(aDay(t))
		var outdated *OutdatedError
		if !errors.As(err, &outdated) {
			t.Fatalf("got %v, want an OutdatedError", err)
		}
		if took := time.Since(api.began); took < time.Hour || took > time.Hour+runInterval { //nolint:forbidigo // the time of the test's bubble
			t.Errorf("ended after %s", took)
		}
		if api.reads != 4 {
			t.Errorf("read %d documents, want each of the 3 once, and the last one again to be sure", api.reads)
		}
	})
}

func TestStartForgivesOneAPIServerThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outdated := served(t, without("status", "order"))
		check, _, _ := newCheck(publication{document: complete(t)}, publication{after: time.Minute - time.Second, document: outdated},
			publication{after: time.Minute + 2*time.Second, document: complete(t)}, publication{after: 294 * time.Second, document: outdated},
			publication{after: 298 * time.Second, document: complete(t)})
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		if err := check.Start(ctx); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

func TestStartEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check, _, _ := newCheck(publication{document: complete(t)})
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		if err := check.Start(ctx); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

func TestOutdatedErrorNamesTheFirstFields(t *testing.T) {
	missing := []string{"a", "b", "c", "d", "e", "f", "g"}
	for count, want := range map[int]string{1: "know: a; apply that of version v0.2.0", 5: "know: a, b, c, d, e; ", 7: "know: a, b, c, d, e and 2 more; "} {
		if got := (&OutdatedError{Missing: missing[:count], Version: "v0.2.0"}).Error(); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}
