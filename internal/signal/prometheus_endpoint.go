package signal

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/outbound"
)

const (
	maxAnswerBytes = 1 << 20
	defaultTimeout = 10 * time.Second
)

// PrometheusEndpoint is one Prometheus that signals may name.
type PrometheusEndpoint struct {
	// Name is what prometheus.endpoint of a signal says.
	Name string
	// URL is what /api/v1/query is appended to: http or https, without user, query or fragment.
	URL string
	// Timeout is how long one measurement may take, all of its queries together. Zero: 10 seconds.
	Timeout time.Duration
	// BearerTokenFile holds a token; Username and PasswordFile are for basic authentication. At most one of the two is set.
	// Files are read on every use, so that rotated credentials hold at once.
	BearerTokenFile string
	Username        string
	PasswordFile    string
	// CAFile holds the authorities, in PEM, that sign the server's certificate. Empty: those of the system.
	CAFile string
	// InsecureSkipTLSVerify accepts every certificate.
	InsecureSkipTLSVerify bool
}

// endpoint asks one Prometheus.
type endpoint struct {
	PrometheusEndpoint
	address string
	server  *outbound.Server
}

func newEndpoint(configured PrometheusEndpoint) (*endpoint, error) {
	base, err := url.Parse(configured.URL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("prometheus endpoint %q: the url must look like http://host:port", configured.Name)
	}
	if configured.Timeout <= 0 {
		configured.Timeout = defaultTimeout
	}
	return &endpoint{
		PrometheusEndpoint: configured,
		address:            base.JoinPath("api", "v1", "query").String(),
		server: outbound.NewServer(outbound.Options{
			Timeout: configured.Timeout, CAFile: configured.CAFile, InsecureSkipTLSVerify: configured.InsecureSkipTLSVerify,
		}),
	}, nil
}

// ask sends one instant query, evaluated at the server's own present, and returns what came of it.
func (e *endpoint) ask(ctx context.Context, query string, now time.Time) outcome {
	request, problem := e.request(ctx, query)
	if problem != nil {
		return *problem
	}
	client, err := e.server.Client()
	if err != nil {
		return failed(aiopsv1.ReasonUnreachable, "could not be asked: its caFile cannot be read or holds no certificate")
	}
	response, err := client.Do(request)
	if err != nil {
		return e.unanswered(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	switch {
	case len(body) > maxAnswerBytes:
		return failed(aiopsv1.ReasonAnswerTooLarge, fmt.Sprintf("answered with more than %d bytes: aggregate the query to one series", maxAnswerBytes))
	case err != nil && timedOut(ctx, err):
		return e.unanswered(ctx, err)
	case err != nil:
		return failed(aiopsv1.ReasonMalformedAnswer, "broke off in the middle of its answer")
	}
	return decode(response.StatusCode, body, now)
}

func (e *endpoint) request(ctx context.Context, query string) (*http.Request, *outcome) {
	form := url.Values{
		"query":   {query},
		"timeout": {fmt.Sprintf("%dms", e.Timeout.Milliseconds())},
		// Two series are as many as a thousand: more than one. Servers that do not know the limit ignore it.
		"limit": {"2"},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.address, strings.NewReader(form.Encode()))
	if err != nil {
		problem := failed(aiopsv1.ReasonUnreachable, "could not be asked: its url is not valid")
		return nil, &problem
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "aiops-operator")
	if err := e.authorize(request); err != nil {
		problem := failed(aiopsv1.ReasonUnauthorized, "could not be asked: the operator cannot read its credentials")
		return nil, &problem
	}
	return request, nil
}

func (e *endpoint) authorize(request *http.Request) error {
	if e.BearerTokenFile != "" {
		token, err := outbound.ReadCredential(e.BearerTokenFile)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if e.PasswordFile != "" {
		password, err := outbound.ReadCredential(e.PasswordFile)
		if err != nil {
			return err
		}
		request.SetBasicAuth(e.Username, password)
	}
	return nil
}

// unanswered sorts the errors of a connection. Their texts name addresses and proxies, and stay here.
func (e *endpoint) unanswered(ctx context.Context, err error) outcome {
	var unknownHost *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case timedOut(ctx, err):
		return failed(aiopsv1.ReasonTimeout, fmt.Sprintf("did not answer in %s", e.Timeout))
	case errors.As(err, &unknownHost):
		return failed(aiopsv1.ReasonUnreachable, "could not be reached: its host name is not known")
	case errors.As(err, &certificate):
		return failed(aiopsv1.ReasonUnreachable, "could not be trusted: its certificate is not valid for the configured url and caFile")
	}
	return failed(aiopsv1.ReasonUnreachable, "could not be reached")
}

func timedOut(ctx context.Context, err error) bool {
	var network net.Error
	return ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &network) && network.Timeout())
}
