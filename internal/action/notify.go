package action

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/outbound"
)

const (
	// NotificationVersion is the version of the notification's form. Fields are added to it and never changed.
	NotificationVersion = "aiops.example.com/v1"
	notificationKind    = "Notification"

	defaultNotifyTimeout = 10 * time.Second
	longestNotifyTimeout = 60 * time.Second
	// maxAnswerBytes is how much of an answer is read, and thrown away, so that the connection can be used again.
	maxAnswerBytes = 64 << 10
	// maxNamedReceivers bounds how many receivers a message names.
	maxNamedReceivers = 10
)

// Receiver is a place that notifications are sent to, as the administrator configured it.
type Receiver struct {
	// Name is what a step names it by.
	Name string
	// URL receives a POST with a JSON body. It may hold a secret, so it never appears in a message.
	URL string
	// Timeout bounds one delivery. Default (0): 10 s. At most 60 s.
	Timeout time.Duration
	// BearerTokenFile holds a token that is sent as "Authorization: Bearer". It is read for each delivery. Empty: none.
	BearerTokenFile string
	// CAFile holds the PEM certificates of the authorities that are trusted. It is read for each delivery. Empty: those of the system.
	CAFile string
	// Headers are sent with every delivery, beside those of the operator, which win.
	Headers map[string]string
}

// Notification is the body of the POST.
type Notification struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// IdempotencyKey is the same in every delivery of the same notification; also in the header Idempotency-Key.
	IdempotencyKey string `json:"idempotencyKey"`
	// Text says the facts in one sentence, for people and for chat programs that show this field alone.
	Text      string                `json:"text"`
	Message   string                `json:"message,omitempty"`
	Namespace string                `json:"namespace"`
	Task      string                `json:"task"`
	Step      string                `json:"step"`
	Target    NotificationTarget    `json:"target"`
	Signal    *NotificationSignal   `json:"signal,omitempty"`
	Incident  *NotificationIncident `json:"incident,omitempty"`
}

// NotificationTarget is the workload that the task is about.
type NotificationTarget struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}

// NotificationSignal is the latest verdict on the task's signal.
type NotificationSignal struct {
	Name      string `json:"name"`
	Verdict   string `json:"verdict,omitempty"`
	Value     string `json:"value,omitempty"`
	Threshold string `json:"threshold,omitempty"`
}

// NotificationIncident is the incident that the step answers.
type NotificationIncident struct {
	ID        string `json:"id"`
	StartTime string `json:"startTime,omitempty"`
	Pass      int32  `json:"pass,omitempty"`
	Attempts  int32  `json:"attempts,omitempty"`
}

// Notify tells a receiver. At least once: what was delivered and not recorded is delivered again, with the same key.
type Notify struct {
	receivers map[string]receiver
}

type receiver struct {
	Receiver
	server *outbound.Server
}

// NewNotify returns the action Notify with these receivers. Their files are read when they are used: one that is missing concerns the
// tasks that name its receiver, and no others.
func NewNotify(receivers ...Receiver) *Notify {
	notify := &Notify{receivers: make(map[string]receiver, len(receivers))}
	for _, configured := range receivers {
		if configured.Timeout <= 0 {
			configured.Timeout = defaultNotifyTimeout
		}
		configured.Timeout = min(configured.Timeout, longestNotifyTimeout)
		notify.receivers[configured.Name] = receiver{
			Receiver: configured,
			server:   outbound.NewServer(outbound.Options{Timeout: configured.Timeout, CAFile: configured.CAFile}),
		}
	}
	return notify
}

// Type is Notify.
func (*Notify) Type() aiopsv1.ActionType { return aiopsv1.ActionNotify }

func receiverName(step aiopsv1.Step) string {
	if step.Notify != nil && step.Notify.Receiver != nil {
		return *step.Notify.Receiver
	}
	return aiopsv1.DefaultReceiver
}

// Plan refuses a receiver that is not configured, and names those that are.
func (n *Notify) Plan(_ context.Context, request Request) (Plan, *Refusal, error) {
	name := receiverName(request.Step)
	if _, found := n.receivers[name]; !found {
		return Plan{}, n.unknown(name), nil
	}
	return Plan{Message: fmt.Sprintf("notify receiver %q", name)}, nil, nil
}

func (n *Notify) unknown(name string) *Refusal {
	if len(n.receivers) == 0 {
		return refuse(aiopsv1.ReasonUnknownEndpoint,
			"receiver %q is not in the operator's configuration, which has no receivers: ask the administrator to add it", name)
	}
	names := make([]string, 0, len(n.receivers))
	for configured := range n.receivers {
		names = append(names, fmt.Sprintf("%q", configured))
	}
	slices.Sort(names)
	more := ""
	if len(names) > maxNamedReceivers {
		more = fmt.Sprintf(" and %d more", len(names)-maxNamedReceivers)
		names = names[:maxNamedReceivers]
	}
	return refuse(aiopsv1.ReasonUnknownEndpoint, "receiver %q is not in the operator's configuration: use one of %s%s",
		name, strings.Join(names, ", "), more)
}

// UndeliveredError says that a notification may not have arrived, and why. Its text holds neither an address nor anything that was
// answered: it is fit for the task.
type UndeliveredError struct {
	// Receiver is the name that the step has for the receiver.
	Receiver string
	// Cause goes on from the receiver's name, such as: cannot be connected to.
	Cause string
}

func (e *UndeliveredError) Error() string {
	return fmt.Sprintf("receiver %q %s", e.Receiver, e.Cause)
}

// Run delivers the notification once. An error means that it may or may not have arrived, and that it is to be sent again; one that
// the receiver is the cause of is an UndeliveredError.
func (n *Notify) Run(ctx context.Context, request Request) (Outcome, error) {
	if request.Order == nil || request.Order.ID == "" || request.Task == nil {
		return Outcome{}, errors.New("notify: there is no recorded order")
	}
	name := receiverName(request.Step)
	to, found := n.receivers[name]
	if !found {
		return Outcome{Refusal: n.unknown(name)}, nil
	}
	body, err := json.Marshal(notificationOf(request))
	if err != nil {
		return Outcome{}, fmt.Errorf("encode the notification of %s: %w", request.Task.Name, err)
	}
	client, token, refusal := to.prepare()
	if refusal != nil {
		return Outcome{Refusal: refusal}, nil
	}
	code, err := to.deliver(ctx, client, token, request.Order.ID, body)
	if err != nil {
		return Outcome{}, err
	}
	if isTransient(code) {
		return Outcome{}, to.undelivered("answered with status %d", code)
	}
	if refusal := refuseStatus(name, code); refusal != nil {
		return Outcome{Refusal: refusal}, nil
	}
	return Outcome{Executed: true, After: request.Target.Image(), Message: done(request.Order, "notify", "notified")}, nil
}

// isTransient says that the same notification may be accepted later.
func isTransient(code int) bool {
	switch code {
	case http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusTooEarly:
		return true
	}
	return code >= http.StatusInternalServerError
}

func refuseStatus(name string, code int) *Refusal {
	switch {
	case code >= http.StatusOK && code < http.StatusMultipleChoices:
		return nil
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		return refuse(aiopsv1.ReasonActionFailed,
			"receiver %q answered with a redirect (status %d), which is not followed: configure the final URL", name, code)
	}
	return refuse(aiopsv1.ReasonActionFailed,
		"receiver %q refused the notification with status %d: check its URL and token in the operator's configuration", name, code)
}

// prepare reads the receiver's files. Whoever mounts them has to act where they are not as they should be, and is told so on the task.
func (r *receiver) prepare() (client *http.Client, token string, refusal *Refusal) {
	client, err := r.server.Client()
	if err != nil {
		return nil, "", refuse(aiopsv1.ReasonActionFailed,
			"receiver %q cannot be told: its caFile cannot be read or holds no certificate. Ask the administrator to mend it", r.Name)
	}
	if r.BearerTokenFile == "" {
		return client, "", nil
	}
	if token, err = outbound.ReadCredential(r.BearerTokenFile); err != nil {
		return nil, "", refuse(aiopsv1.ReasonActionFailed,
			"receiver %q cannot be told: its bearerTokenFile cannot be read or holds no token. Ask the administrator to mend it", r.Name)
	}
	return client, token, nil
}

// deliver returns the status code of the answer. Its errors hold neither the URL nor anything that was answered.
func (r *receiver) deliver(ctx context.Context, client *http.Client, token, key string, body []byte) (int, error) {
	bounded, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	httpRequest, err := http.NewRequestWithContext(bounded, http.MethodPost, r.URL, bytes.NewReader(body))
	if err != nil {
		return 0, r.undelivered("has a URL that is not valid")
	}
	for key, value := range r.Headers {
		httpRequest.Header.Set(key, value)
	}
	httpRequest.Header.Set("Content-Type", "application/json")
	httpRequest.Header.Set("User-Agent", FieldOwner)
	httpRequest.Header.Set("Idempotency-Key", key)
	if token != "" {
		httpRequest.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(httpRequest)
	if err != nil {
		return 0, r.unreachable(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswerBytes)) // so that the connection can be used again
	return answer.StatusCode, nil
}

// unreachable names the kind of failure only: the errors of package http hold the URL, and the URL may hold a secret.
func (r *receiver) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("tell receiver %q: %w", r.Name, ctx.Err())
	}
	var (
		asURL       *url.Error
		resolving   *net.DNSError
		certificate *tls.CertificateVerificationError
		connecting  *net.OpError
	)
	switch {
	case errors.As(err, &asURL) && asURL.Timeout():
		return r.undelivered("did not answer within %s", r.Timeout)
	case errors.As(err, &resolving):
		return r.undelivered("has a host name that cannot be resolved")
	case errors.As(err, &certificate):
		return r.undelivered("has a certificate that is not trusted: check caFile")
	case errors.As(err, &connecting):
		return r.undelivered("cannot be connected to")
	}
	return r.undelivered("broke off the connection")
}

func (r *receiver) undelivered(format string, arguments ...any) error {
	return &UndeliveredError{Receiver: r.Name, Cause: fmt.Sprintf(format, arguments...)}
}

func notificationOf(request Request) Notification {
	task, reference := request.Task, request.Target.Reference
	out := Notification{
		APIVersion:     NotificationVersion,
		Kind:           notificationKind,
		IdempotencyKey: request.Order.ID,
		Namespace:      task.Namespace,
		Task:           task.Name,
		Step:           request.Step.Name,
		Target: NotificationTarget{
			APIVersion: reference.APIVersion, Kind: reference.Kind, Name: reference.Name, UID: string(request.Target.UID),
		},
	}
	if request.Step.Notify != nil && request.Step.Notify.Message != nil {
		out.Message = *request.Step.Notify.Message
	}
	if len(task.Status.Signals) > 0 {
		signal := task.Status.Signals[0]
		out.Signal = &NotificationSignal{Name: signal.Name, Verdict: signal.Verdict, Value: signal.Value, Threshold: signal.Threshold}
	}
	if incident := task.Status.Incident; incident != nil {
		out.Incident = &NotificationIncident{ID: incident.ID, Pass: incident.Pass, Attempts: incident.Attempts}
		if incident.StartTime != nil && !incident.StartTime.IsZero() {
			out.Incident.StartTime = incident.StartTime.UTC().Format(stampLayout)
		}
	}
	out.Text = textOf(&out)
	return out
}

func textOf(notification *Notification) string {
	text := fmt.Sprintf("AITask %s/%s, step %s: %s/%s needs attention", notification.Namespace, notification.Task,
		notification.Step, notification.Target.Kind, notification.Target.Name)
	if signal := notification.Signal; signal != nil && signal.Value != "" {
		text += fmt.Sprintf(" (%s: %s %s)", signal.Name, signal.Value, signal.Threshold)
	}
	if incident := notification.Incident; incident != nil && incident.Attempts > 0 {
		text += fmt.Sprintf("; %s tried", count(int(incident.Attempts), "action"))
	}
	if notification.Message != "" {
		text += ": " + notification.Message
	}
	return text
}
