package signal

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// hidden is a text that must not get out of a source.
const hidden = "hunter2"

// sample is the time of at(0), as Prometheus writes it.
const sample = "1767236400"

func vector(values ...string) string {
	var elements []string
	for i, value := range values {
		elements = append(elements, fmt.Sprintf(`{"metric":{"pod":"%s%d"},"value":[%s,%q]}`, hidden, i, sample, value))
	}
	return success("vector", "["+strings.Join(elements, ",")+"]")
}

func success(resultType, result string, more ...string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":%q,"result":%s}%s}`, resultType, result, strings.Join(more, ""))
}

func problem(kind string) string {
	return fmt.Sprintf(`{"status":"error","errorType":%q,"error":%q}`, kind, hidden)
}

func ask(query string) aiopsv1.Signal {
	return aiopsv1.Signal{Type: aiopsv1.SignalPrometheus, Prometheus: &aiopsv1.PrometheusSignal{Query: query}}
}

// prometheusAt is a source with one endpoint, "default", whose timeout no test is meant to reach.
func prometheusAt(t *testing.T, address string, change ...func(*PrometheusEndpoint)) *Prometheus {
	t.Helper()
	endpoint := PrometheusEndpoint{Name: "default", URL: address, Timeout: minute}
	for _, apply := range change {
		apply(&endpoint)
	}
	source, err := NewPrometheus(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func TestPrometheusAnswersAreTyped(t *testing.T) {
	none := no(aiopsv1.ReasonNoData, "The query answered with no series")
	none.NoData = true
	says := func(reason, text string) Reading { return no(reason, `Prometheus "default" `+text) }
	notANumber := says(aiopsv1.ReasonNotANumber, "answered with NaN or an infinity, as a division by zero does")
	unreadable := says(aiopsv1.ReasonMalformedAnswer, "answered with a result that cannot be read")
	notJSON := says(aiopsv1.ReasonMalformedAnswer, "answered with something that is not the JSON of a Prometheus")
	for name, test := range map[string]struct {
		status int
		body   string
		want   Reading
	}{
		"vector of one":                 {200, vector("103.5"), value(103.5)},
		"scalar":                        {200, success("scalar", `[`+sample+`,"42"]`), value(42)},
		"negative":                      {200, vector("-1e-3"), value(-0.001)},
		"zero":                          {200, vector("0"), value(0)},
		"infos say nothing about data":  {200, success("scalar", `[`+sample+`,"42"]`, `,"infos":["`+hidden+`"]`), value(42)},
		"empty warnings":                {200, success("scalar", `[`+sample+`,"42"]`, `,"warnings":[]`), value(42)},
		"a sample of five minutes ago":  {200, success("scalar", `[1767236100,"42"]`), value(42)},
		"a sample from the future":      {200, success("scalar", `[1767240000,"42"]`), value(42)},
		"empty vector is no data":       {200, vector(), none},
		"two series":                    {200, vector("1", "2"), says(aiopsv1.ReasonManySamples, "answered with more than one series: aggregate them, for example with sum() or max()")},
		"two series, cut by the limit":  {200, success("vector", `[{},{}]`, `,"warnings":["x"]`), says(aiopsv1.ReasonManySamples, "answered with more than one series: aggregate them, for example with sum() or max()")},
		"NaN":                           {200, vector("NaN"), notANumber},
		"infinity":                      {200, vector("+Inf"), notANumber},
		"negative infinity":             {200, vector("-Inf"), notANumber},
		"beyond what a float holds":     {200, vector("1e999"), notANumber},
		"histogram":                     {200, success("vector", `[{"metric":{},"histogram":[`+sample+`,{"count":"1"}]}]`), says(aiopsv1.ReasonNotANumber, "answered with a histogram: take a number of it, for example with histogram_quantile()")},
		"partial":                       {200, success("vector", `[]`, `,"warnings":["`+hidden+`"]`), says(aiopsv1.ReasonPartialAnswer, "warned that its answer is incomplete")},
		"partial with a value":          {200, success("scalar", `[`+sample+`,"42"]`, `,"warnings":["`+hidden+`"]`), says(aiopsv1.ReasonPartialAnswer, "warned that its answer is incomplete")},
		"stale":                         {200, success("scalar", `[1767236099,"42"]`), says(aiopsv1.ReasonStale, "answered with a value that is older than 5m0s")},
		"matrix":                        {200, success("matrix", `[]`), says(aiopsv1.ReasonMalformedAnswer, "answered with a range of values: remove the [...] or put a function such as rate() around it")},
		"string":                        {200, success("string", `[`+sample+`,"`+hidden+`"]`), says(aiopsv1.ReasonMalformedAnswer, "answered with a text: the query must yield a number")},
		"unknown type":                  {200, success(hidden, `[]`), says(aiopsv1.ReasonMalformedAnswer, "answered with a result of an unknown type")},
		"vector without result":         {200, success("vector", `null`), unreadable},
		"vector that is a text":         {200, success("vector", `"`+hidden+`"`), unreadable},
		"element without value":         {200, success("vector", `[{"metric":{}}]`), unreadable},
		"element that is null":          {200, success("vector", `[null]`), unreadable},
		"value that is a number":        {200, success("scalar", `[`+sample+`,42]`), unreadable},
		"value that is no number":       {200, success("scalar", `[`+sample+`,"`+hidden+`"]`), unreadable},
		"value that is null":            {200, success("scalar", `[`+sample+`,null]`), unreadable},
		"value without time":            {200, success("scalar", `["42"]`), unreadable},
		"time that is a text":           {200, success("scalar", `["x","42"]`), unreadable},
		"truncated JSON":                {200, vector("103.5")[:60], notJSON},
		"empty body":                    {200, "", notJSON},
		"HTML":                          {200, "<html>" + hidden + "</html>", notJSON},
		"something after the JSON":      {200, vector("1") + hidden, notJSON},
		"JSON of something else":        {200, `{"value":42}`, says(aiopsv1.ReasonMalformedAnswer, "answered without saying whether the query succeeded")},
		"JSON null":                     {200, `null`, says(aiopsv1.ReasonMalformedAnswer, "answered without saying whether the query succeeded")},
		"an error with status 200":      {200, problem("execution"), says(aiopsv1.ReasonQueryRejected, "rejected the query (422, it could not be evaluated): try it in its web interface")},
		"bad query":                     {400, problem("bad_data"), says(aiopsv1.ReasonQueryRejected, "rejected the query (400, it is not valid PromQL): try it in its web interface")},
		"query that fails":              {422, problem("execution"), says(aiopsv1.ReasonQueryRejected, "rejected the query (422, it could not be evaluated): try it in its web interface")},
		"error of an unknown kind":      {400, problem(hidden), says(aiopsv1.ReasonQueryRejected, "rejected the query (400): try it in its web interface")},
		"unauthorized":                  {401, hidden, says(aiopsv1.ReasonUnauthorized, "refused the operator's credentials (401): check the endpoint in the operator's configuration")},
		"forbidden":                     {403, hidden, says(aiopsv1.ReasonUnauthorized, "refused the operator's credentials (403): check the endpoint in the operator's configuration")},
		"no API there":                  {404, hidden, says(aiopsv1.ReasonQueryRejected, "has no query API there (404): the configured url must be the one that /api/v1/query is appended to")},
		"too many requests":             {429, hidden, says(aiopsv1.ReasonServerError, "answered with an error of its own (429)")},
		"server error":                  {500, vector("42"), says(aiopsv1.ReasonServerError, "answered with an error of its own (500)")},
		"bad gateway":                   {502, "<html>" + hidden, says(aiopsv1.ReasonServerError, "answered with an error of its own (502)")},
		"server that gave up":           {503, problem("timeout"), says(aiopsv1.ReasonTimeout, "gave up on the query after its own timeout")},
		"server that is starting":       {503, problem("unavailable"), says(aiopsv1.ReasonServerError, "answered with an error of its own (503)")},
		"success without content":       {204, "", says(aiopsv1.ReasonMalformedAnswer, "answered with an unexpected status (204)")},
		"success that is not a success": {202, vector("42"), says(aiopsv1.ReasonMalformedAnswer, "answered with an unexpected status (202)")},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			})
			got := prometheusAt(t, server.URL).Measure(t.Context(), request(workload(), ask("up")))
			expect(t, test.want, got)
		})
	}
}

func TestPrometheusIsAskedByPOSTBelowItsAddress(t *testing.T) {
	type seen struct {
		Method, Path, Host string
		Form               url.Values
	}
	var got seen
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		got = seen{Method: r.Method, Path: r.URL.String(), Form: r.PostForm}
		_, _ = w.Write([]byte(vector("1")))
	})
	prometheusAt(t, server.URL+"/prefix/", func(e *PrometheusEndpoint) { e.Timeout = 2500 * time.Millisecond }).
		Measure(t.Context(), request(workload(), ask(`sum(rate(x[5m])) + "é"`)))
	want := seen{
		Method: http.MethodPost, Path: "/prefix/api/v1/query",
		Form: url.Values{"query": {`sum(rate(x[5m])) + "é"`}, "timeout": {"2500ms"}, "limit": {"2"}},
	}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Errorf("request (-want +got):\n%s", difference)
	}
}

func TestPrometheusThatDoesNotAnswerAsItShouldIsUnknownInTime(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of a connection is noticed only behind the body
		<-r.Context().Done()
	}
	says := func(reason, text string) Reading { return no(reason, `Prometheus "default" `+text) }
	shortly := func(e *PrometheusEndpoint) { e.Timeout = 20 * time.Millisecond }
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		change  func(*PrometheusEndpoint)
		want    Reading
	}{
		"slow": {hang, shortly, says(aiopsv1.ReasonTimeout, "did not answer in 20ms")},
		"slow in the middle": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(vector("1")[:20]))
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
		}, shortly, says(aiopsv1.ReasonTimeout, "did not answer in 20ms")},
		"broken off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(vector("1")[:20]))
		}, nil, says(aiopsv1.ReasonMalformedAnswer, "broke off in the middle of its answer")},
		"hung up": {func(w http.ResponseWriter, _ *http.Request) {
			if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = connection.Close()
			}
		}, nil, says(aiopsv1.ReasonUnreachable, "could not be reached")},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte(" "), maxAnswerBytes))
			_, _ = w.Write([]byte(vector("1")))
		}, nil, says(aiopsv1.ReasonAnswerTooLarge, "answered with more than 1048576 bytes: aggregate the query to one series")},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<16))
			}
		}, nil, says(aiopsv1.ReasonAnswerTooLarge, "answered with more than 1048576 bytes: aggregate the query to one series")},
		"huge headers": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat(hidden, 64<<10))
			_, _ = w.Write([]byte(vector("1")))
		}, nil, says(aiopsv1.ReasonUnreachable, "could not be reached")},
		"claims to be compressed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("\x1f\x8b garbage"))
		}, nil, says(aiopsv1.ReasonMalformedAnswer, "answered with something that is not the JSON of a Prometheus")},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, test.handler)
			source := prometheusAt(t, server.URL)
			if test.change != nil {
				source = prometheusAt(t, server.URL, test.change)
			}
			expect(t, test.want, source.Measure(t.Context(), request(workload(), ask("up"))))
		})
	}
	t.Run("not there", func(t *testing.T) {
		server := serve(t, hang)
		server.Close()
		expect(t, says(aiopsv1.ReasonUnreachable, "could not be reached"), prometheusAt(t, server.URL).Measure(t.Context(), request(workload(), ask("up"))))
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		expect(t, says(aiopsv1.ReasonTimeout, "did not answer in 1m0s"), prometheusAt(t, serve(t, hang).URL).Measure(ctx, request(workload(), ask("up"))))
	})
}

func TestPrometheusIsNotFollowedElsewhere(t *testing.T) {
	var elsewhere atomic.Int32
	other := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		_, _ = w.Write([]byte(vector("42")))
	})
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		want := no(aiopsv1.ReasonMalformedAnswer, fmt.Sprintf(`Prometheus "default" redirected the query (%d): configure the url that it redirects to`, status))
		expect(t, want, prometheusAt(t, server.URL).Measure(t.Context(), request(workload(), ask("up"))))
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

func TestPrometheusWithoutSeriesAsksTheAliveQueryOnlyWhenItDecides(t *testing.T) {
	answered := no(aiopsv1.ReasonNoData, "The query answered with no series")
	answered.NoData = true
	alive := answered
	alive.AliveChecked = true
	dead := no(aiopsv1.ReasonNoData, `Neither query nor aliveQuery answered with a series: nobody reports to Prometheus "default"`)
	for name, test := range map[string]struct {
		noData aiopsv1.NoDataVerdict
		query  string
		alive  string
		want   Reading
		asked  string
	}{
		"no verdict depends on it":       {"", vector(), vector("1"), answered, "query "},
		"Unknown":                        {aiopsv1.NoDataUnknown, vector(), vector("1"), answered, "query "},
		"there is a value":               {aiopsv1.NoDataHealthy, vector("7"), vector("1"), value(7), "query "},
		"the query failed":               {aiopsv1.NoDataHealthy, vector("NaN"), vector("1"), no(aiopsv1.ReasonNotANumber, `Prometheus "default" answered with NaN or an infinity, as a division by zero does`), "query "},
		"Healthy, alive":                 {aiopsv1.NoDataHealthy, vector(), vector("1"), alive, "query alive "},
		"Breached, alive":                {aiopsv1.NoDataBreached, vector(), vector("1"), alive, "query alive "},
		"alive with many series":         {aiopsv1.NoDataHealthy, vector(), vector("1", "1"), alive, "query alive "},
		"alive, but not all of it":       {aiopsv1.NoDataHealthy, vector(), success("scalar", `[`+sample+`,"1"]`, `,"warnings":["x"]`), alive, "query alive "},
		"nobody reports":                 {aiopsv1.NoDataHealthy, vector(), vector(), dead, "query alive "},
		"nobody reports, Breached":       {aiopsv1.NoDataBreached, vector(), vector(), dead, "query alive "},
		"the aliveQuery is no number":    {aiopsv1.NoDataHealthy, vector(), vector("NaN"), no(aiopsv1.ReasonNotANumber, `Prometheus "default" answered with NaN or an infinity, as a division by zero does (aliveQuery)`), "query alive "},
		"the aliveQuery is stale":        {aiopsv1.NoDataHealthy, vector(), success("scalar", `[1,"1"]`), no(aiopsv1.ReasonStale, `Prometheus "default" answered with a value that is older than 5m0s (aliveQuery)`), "query alive "},
		"the aliveQuery has no answer":   {aiopsv1.NoDataHealthy, vector(), hidden, no(aiopsv1.ReasonMalformedAnswer, `Prometheus "default" answered with something that is not the JSON of a Prometheus (aliveQuery)`), "query alive "},
		"empty and partial is not alive": {aiopsv1.NoDataHealthy, vector(), success("vector", `[]`, `,"warnings":["x"]`), no(aiopsv1.ReasonPartialAnswer, `Prometheus "default" warned that its answer is incomplete (aliveQuery)`), "query alive "},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				answer := map[string]string{"query": test.query, "alive": test.alive}[r.FormValue("query")]
				asked += r.FormValue("query") + " "
				_, _ = w.Write([]byte(answer))
			})
			signal := ask("query")
			signal.NoData, signal.Prometheus.AliveQuery = test.noData, ptr.To("alive")
			expect(t, test.want, prometheusAt(t, server.URL).Measure(t.Context(), request(workload(), signal)))
			if asked != test.asked {
				t.Errorf("asked %q, want %q", asked, test.asked)
			}
		})
	}
}

func TestPrometheusWarnsOfAQueryThatFilters(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(vector())) })
	want := no(aiopsv1.ReasonFilterQuery, "The query answered with no series. A comparison without `bool` does that when all is well: write `... > bool 0`")
	want.NoData = true
	expect(t, want, prometheusAt(t, server.URL).Measure(t.Context(), request(workload(), ask("sum(x) > 5"))))
}

func TestIsFilter(t *testing.T) {
	for query, want := range map[string]bool{
		"up == 0":                 true,
		"sum(rate(x[5m])) > 0.5":  true,
		"sum(x)>5":                true,
		"x <= 5":                  true,
		"x != 5":                  true,
		"5 < x":                   true,
		"(sum(x) > 5)":            true,
		"( ( sum(x) > 5 ) )":      true,
		"x > on (a) group_left y": true,
		"sum by (bool) (x) > 5":   true,
		"x # > bool\n > 5":        true,
		"(a) > (b)":               true,
		"up == bool 0":            false,
		"sum(x) >bool 5":          false,
		"sum(x) > BOOL 5":         false,
		"sum(x)":                  false,
		"count(x > 5)":            false,
		"(x > 5) + 1":             false,
		"x > 5 or vector(0)":      false,
		"x > 5 AND y":             false,
		"x unless y > 5":          false,
		`x{a="> 5"}`:              false,
		`x{a!="b",c=~"d"}`:        false,
		`label_replace(x, "a", "b > c", "d", "e")`: false,
		`"a > b"`:             false,
		"`a > b`":             false,
		`"a \" > b"`:          false,
		"x # > 5":             false,
		"x[5m:1m] offset -5m": false,
		"":                    false,
		"(((":                 false,
		")))":                 false,
		`"`:                   false,
		"{[":                  false,
		"histogram_quantile(0.9, sum by (le) (x)) ^ 2": false,
	} {
		if got := isFilter(query); got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

func TestPrometheusKnowsOnlyConfiguredEndpoints(t *testing.T) {
	other := ask("up")
	other.Prometheus.Endpoint = ptr.To("gpu")
	for name, test := range map[string]struct {
		configured []string
		want       string
	}{
		"none": {nil, `No Prometheus "gpu" is configured: add it to prometheusEndpoints in the operator's configuration`},
		"two":  {[]string{"default", "a"}, `No Prometheus "gpu" is configured: set prometheus.endpoint to one of a, default`},
		"many": {
			strings.Split("a b c d e f g h i j k l", " "),
			`No Prometheus "gpu" is configured: set prometheus.endpoint to one of a, b, c, d, e, f, g, h, i, j, ...`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var endpoints []PrometheusEndpoint
			for _, name := range test.configured {
				endpoints = append(endpoints, PrometheusEndpoint{Name: name, URL: "http://127.0.0.1:1"})
			}
			source, err := NewPrometheus(endpoints...)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, no(aiopsv1.ReasonUnknownEndpoint, test.want), source.Measure(t.Context(), request(workload(), other)))
		})
	}
}

func TestNewPrometheusRefusesWhatItCannotAsk(t *testing.T) {
	for name, endpoints := range map[string][]PrometheusEndpoint{
		"two of one name": {{Name: "a", URL: "http://a"}, {Name: "a", URL: "http://b"}},
		"no scheme":       {{Name: "a", URL: "a:9090"}},
		"another scheme":  {{Name: "a", URL: "ftp://a"}},
		"no host":         {{Name: "a", URL: "http://"}},
		"no URL":          {{Name: "a", URL: "http://a:b"}},
	} {
		if _, err := NewPrometheus(endpoints...); err == nil || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPrometheusCredentialsAreReadOnEveryUse(t *testing.T) {
	var authorization string
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		_, _ = w.Write([]byte(vector("1")))
	})
	file := filepath.Join(t.TempDir(), "credential")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bearer := prometheusAt(t, server.URL, func(e *PrometheusEndpoint) { e.BearerTokenFile = file })
	basic := prometheusAt(t, server.URL, func(e *PrometheusEndpoint) { e.Username, e.PasswordFile = "reader", file })
	refused := no(aiopsv1.ReasonUnauthorized, `Prometheus "default" could not be asked: the operator cannot read its credentials`)
	for _, test := range []struct {
		name    string
		source  *Prometheus
		content string
		sent    string
		want    Reading
	}{
		{"token", bearer, hidden + "\n", "Bearer " + hidden, value(1)},
		{"rotated token", bearer, "another", "Bearer another", value(1)},
		{"password", basic, hidden, "Basic cmVhZGVyOmh1bnRlcjI=", value(1)},
		{"empty", bearer, "\n", "", refused},
		{"two lines", bearer, "a\nb", "", refused},
		{"too large", bearer, strings.Repeat("a", 64<<10+1), "", refused},
		{"empty password", basic, "", "", refused},
	} {
		t.Run(test.name, func(t *testing.T) {
			authorization = ""
			write(test.content)
			expect(t, test.want, test.source.Measure(t.Context(), request(workload(), ask("up"))))
			if authorization != test.sent {
				t.Errorf("sent %q, want %q", authorization, test.sent)
			}
		})
	}
	t.Run("absent", func(t *testing.T) {
		absent := prometheusAt(t, server.URL, func(e *PrometheusEndpoint) { e.BearerTokenFile = file + ".absent" })
		expect(t, refused, absent.Measure(t.Context(), request(workload(), ask("up"))))
	})
}

func TestPrometheusTrustsOnlyWhatIsConfigured(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(vector("1"))) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it is told about every client that does not trust it
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.crt")
	trusting := prometheusAt(t, server.URL, func(e *PrometheusEndpoint) { e.CAFile = authority })
	measure := func(source *Prometheus, want Reading) {
		t.Helper()
		expect(t, want, source.Measure(t.Context(), request(workload(), ask("up"))))
	}
	untrusted := no(aiopsv1.ReasonUnreachable, `Prometheus "default" could not be trusted: its certificate is not valid for the configured url and caFile`)
	unreadable := no(aiopsv1.ReasonUnreachable, `Prometheus "default" could not be asked: its caFile cannot be read or holds no certificate`)

	measure(prometheusAt(t, server.URL), untrusted)
	measure(prometheusAt(t, server.URL, func(e *PrometheusEndpoint) { e.InsecureSkipTLSVerify = true }), value(1))
	measure(trusting, unreadable)
	for _, step := range []struct {
		content []byte
		want    Reading
	}{
		{[]byte(hidden), unreadable},
		{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), value(1)},
		{[]byte(hidden), unreadable},
	} {
		if err := os.WriteFile(authority, step.content, 0o600); err != nil {
			t.Fatal(err)
		}
		measure(trusting, step.want)
	}
}

// Whatever an endpoint answers, the outcome is a finite, current number or a typed reason, and no piece of the answer gets out.
func FuzzPrometheusAnswer(f *testing.F) {
	f.Add(200, []byte(vector("103.5")))
	f.Add(200, []byte(vector("NaN", "1")))
	f.Add(200, []byte(success("scalar", `[`+sample+`,"1e400"]`, `,"warnings":["x"]`)))
	f.Add(200, []byte(success("vector", `[{"histogram":[1,{}]}]`)))
	f.Add(503, []byte(problem("timeout")))
	f.Add(302, []byte("<html>"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		result := decode(status, body, at(0))
		if result.reason == "" && !result.empty && (status != http.StatusOK || known(Request{}, result.value).Reason != "") {
			t.Fatalf("status %d, %v is taken for a value", status, result.value)
		}
		if (result.empty || result.reason != "") && result.value != 0 {
			t.Fatalf("%+v has a value and has none", result)
		}
		checkText(t, result.text, status, body)
	})
}

// checkText fails for a text that is not one of those written in this package, whatever the status it repeats.
func checkText(t *testing.T, text string, status int, body []byte) {
	t.Helper()
	if len(text) > 256 || !utf8.ValidString(text) {
		t.Fatalf("text %q", text)
	}
	marked := decode(status, bytes.ReplaceAll(body, []byte(hidden), []byte(hidden+hidden)), at(0))
	if strings.Contains(text, hidden) || strings.Contains(marked.text, hidden) {
		t.Fatalf("the text repeats the answer: %q", text)
	}
	for _, piece := range strings.FieldsFunc(string(body), func(r rune) bool { return strings.ContainsRune(`"{}[]:, `, r) }) {
		if len(piece) > 24 && strings.Contains(text, piece) {
			t.Fatalf("the text repeats %q of the answer: %q", piece, text)
		}
	}
}
