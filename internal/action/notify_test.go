package action

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// secret stands for anything that must not appear in a message.
const secret = "s3cr3t"

func notifyRequest(receiver *string) Request {
	return Request{
		Task: &aiopsv1.AITask{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout"},
			Status: aiopsv1.AITaskStatus{
				Signals:  []aiopsv1.SignalStatus{{Name: "queue", Verdict: "Breached", Value: "103.5", Threshold: ">= 100"}},
				Incident: &aiopsv1.Incident{ID: "i-1", StartTime: aiopsv1.TimePointer(at(0)), Pass: 2, Attempts: 3},
			},
		},
		Step: aiopsv1.Step{
			Name: "page", Action: aiopsv1.ActionNotify, Notify: &aiopsv1.NotifyStep{Receiver: receiver, Message: ptr.To("Call Jane.")},
		},
		Target: stateOf("Deployment"),
		Order:  order(),
		Now:    at(60),
	}
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNotifyDelivers(t *testing.T) {
	var header http.Header
	var body []byte
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	notify := NewNotify(Receiver{
		Name: "default", URL: server.URL, CAFile: write(t, "ca.crt", string(authority)), BearerTokenFile: write(t, "token", secret+"\n"),
		Headers: map[string]string{"X-Team": "shop", "Content-Type": "text/plain"},
	})
	outcome, err := notify.Run(t.Context(), notifyRequest(nil))
	if err != nil || !outcome.Executed {
		t.Fatalf("Run: %+v, %v", outcome, err)
	}
	wantHeader := map[string]string{
		"Content-Type": "application/json", "Idempotency-Key": "order-1", "Authorization": "Bearer " + secret, "User-Agent": "aiops-operator", "X-Team": "shop",
	}
	for key, want := range wantHeader {
		if got := header.Get(key); got != want {
			t.Errorf("header %s: %q, want %q", key, got, want)
		}
	}
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion":     "aiops.example.com/v1",
		"kind":           "Notification",
		"idempotencyKey": "order-1",
		"text":           "AITask shop/checkout, step page: Deployment/web needs attention (queue: 103.5 >= 100); 3 actions tried: Call Jane.",
		"message":        "Call Jane.",
		"namespace":      "shop",
		"task":           "checkout",
		"step":           "page",
		"target":         map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web-uid"},
		"signal":         map[string]any{"name": "queue", "verdict": "Breached", "value": "103.5", "threshold": ">= 100"},
		"incident":       map[string]any{"id": "i-1", "startTime": "2026-01-01T03:00:00.000Z", "pass": 2.0, "attempts": 3.0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestNotifyAnswers(t *testing.T) {
	tests := map[string]struct {
		code    int
		reason  string
		message string
		failure string
	}{
		"ok":           {200, "", "", ""},
		"no content":   {204, "", "", ""},
		"redirect":     {302, aiopsv1.ReasonActionFailed, "redirect (status 302)", ""},
		"bad request":  {400, aiopsv1.ReasonActionFailed, "status 400", ""},
		"unauthorized": {401, aiopsv1.ReasonActionFailed, "status 401: check its URL and token", ""},
		"too many":     {429, "", "", "status 429"},
		"timeout":      {408, "", "", "status 408"},
		"broken":       {500, "", "", "status 500"},
		"unavailable":  {503, "", "", "status 503"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(test.code)
				if test.code != http.StatusNoContent {
					_, _ = w.Write([]byte(secret))
				}
			}))
			defer server.Close()
			notify := NewNotify(Receiver{Name: "default", URL: server.URL})
			outcome, err := notify.Run(t.Context(), notifyRequest(nil))
			switch {
			case test.failure != "":
				if err == nil || !strings.Contains(err.Error(), test.failure) || strings.Contains(err.Error(), secret) {
					t.Errorf("Run: %v, want an error with %q", err, test.failure)
				}
			case test.reason != "":
				checkRefusal(t, outcome.Refusal, test.reason, test.message, false)
				if strings.Contains(outcome.Refusal.Message, secret) {
					t.Errorf("the message holds the answer: %s", outcome.Refusal.Message)
				}
			case err != nil || !outcome.Executed:
				t.Errorf("Run: %+v, %v, want executed", outcome, err)
			}
			if asked != 1 {
				t.Errorf("the receiver was asked %d times, want once", asked)
			}
		})
	}
}

func TestNotifyUnreachable(t *testing.T) {
	hanging := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hanging }))
	defer slow.Close()
	defer close(hanging)
	strange := httptest.NewTLSServer(http.NotFoundHandler())
	defer strange.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	tests := map[string]struct {
		receiver Receiver
		want     string
	}{
		"slow":           {Receiver{URL: slow.URL + "/" + secret, Timeout: 20 * time.Millisecond}, `receiver "default" did not answer within 20ms`},
		"not trusted":    {Receiver{URL: strange.URL + "/" + secret}, `receiver "default" has a certificate that is not trusted: check caFile`},
		"nobody listens": {Receiver{URL: closed.URL + "/" + secret}, `receiver "default" cannot be connected to`},
		"no URL":         {Receiver{URL: "http://[" + secret}, `receiver "default" has a URL that is not valid`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.receiver.Name = "default"
			notify := NewNotify(test.receiver)
			_, err := notify.Run(t.Context(), notifyRequest(nil))
			var undelivered *UndeliveredError
			if !errors.As(err, &undelivered) || undelivered.Error() != test.want {
				t.Fatalf("Run: %v, want it undelivered: %s", err, test.want)
			}
			for unwrapped := err; unwrapped != nil; unwrapped = errors.Unwrap(unwrapped) {
				if strings.Contains(unwrapped.Error(), secret) {
					t.Errorf("the error holds a secret: %v", unwrapped)
				}
			}
		})
	}
}

func TestNotifyUnknownReceiver(t *testing.T) {
	some := NewNotify(Receiver{Name: "on-call", URL: "https://example.com/" + secret}, Receiver{Name: "chat", URL: "https://example.com/" + secret})
	none := NewNotify()
	tests := map[string]struct {
		notify *Notify
		want   string
	}{
		"some": {some, `receiver "pager" is not in the operator's configuration: use one of "chat", "on-call"`},
		"none": {none, "which has no receivers"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := notifyRequest(ptr.To("pager"))
			_, refusal, err := test.notify.Plan(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			checkRefusal(t, refusal, aiopsv1.ReasonUnknownEndpoint, test.want, false)
			outcome, err := test.notify.Run(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			checkRefusal(t, outcome.Refusal, aiopsv1.ReasonUnknownEndpoint, test.want, false)
		})
	}
}

func TestNotifyTellsOfItsFiles(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer server.Close()
	well := Receiver{Name: "well", URL: server.URL}
	tests := map[string]struct {
		receiver Receiver
		want     string
	}{
		"no authority":        {Receiver{CAFile: "/nowhere/" + secret}, "its caFile cannot be read"},
		"an authority is not": {Receiver{CAFile: write(t, "ca.crt", secret)}, "holds no certificate"},
		"no token":            {Receiver{BearerTokenFile: "/nowhere/" + secret}, "its bearerTokenFile cannot be read"},
		"a token is empty":    {Receiver{BearerTokenFile: write(t, "token", "\n")}, "holds no token"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.receiver.Name, test.receiver.URL = "default", server.URL
			notify := NewNotify(test.receiver, well)
			outcome, err := notify.Run(t.Context(), notifyRequest(nil))
			if err != nil {
				t.Fatal(err)
			}
			checkRefusal(t, outcome.Refusal, aiopsv1.ReasonActionFailed, test.want, false)
			if strings.Contains(outcome.Refusal.Message, secret) {
				t.Errorf("the message holds a secret: %s", outcome.Refusal.Message)
			}
			if outcome, err := notify.Run(t.Context(), notifyRequest(ptr.To("well"))); err != nil || !outcome.Executed {
				t.Errorf("the other receiver: %+v, %v, want executed", outcome, err)
			}
		})
	}
}
