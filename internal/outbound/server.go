// Package outbound reaches systems outside the cluster over HTTP as the administrator configured them: whom to trust, with which
// credentials, within which bounds. What is asked or sent, and what an answer means, belongs to the caller.
package outbound

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	maxHeaderBytes    = 64 << 10
	maxAuthorityBytes = 1 << 20
	idleTimeout       = 90 * time.Second
	maxIdle           = 4
)

// Options say how a server is reached.
type Options struct {
	// Timeout bounds connecting, and the handshake of TLS. Required. The caller bounds the whole exchange with a context.
	Timeout time.Duration
	// CAFile holds the authorities, in PEM and at most 1 MiB, that sign the server's certificate. Empty: those of the system.
	CAFile string
	// InsecureSkipTLSVerify accepts every certificate.
	InsecureSkipTLSVerify bool
}

// Server is one system outside the cluster. Safe for concurrent use.
type Server struct {
	options Options

	mutex     sync.Mutex
	client    *http.Client
	authority []byte // what the client trusts, as it was in CAFile
}

// NewServer returns a server. Nothing is read and nobody is asked before the first use, so one server whose files are missing
// is no concern of the others.
func NewServer(options Options) *Server {
	return &Server{options: options}
}

// Client returns the client for one exchange. CAFile is read each time, and the client is made anew when its content has changed. It fails
// when CAFile cannot be read or holds no certificate.
func (s *Server) Client() (*http.Client, error) {
	var authority []byte
	if s.options.CAFile != "" {
		content, err := readBounded(s.options.CAFile, maxAuthorityBytes)
		if err != nil {
			return nil, err
		}
		authority = content
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.client != nil && bytes.Equal(authority, s.authority) {
		return s.client, nil
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.options.InsecureSkipTLSVerify} //nolint:gosec // the administrator's choice
	if s.options.CAFile != "" {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(authority) {
			return nil, errors.New("no certificate in the file of authorities")
		}
	}
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	s.client, s.authority = newClient(settings, s.options.Timeout), authority
	return s.client, nil
}

func newClient(settings *tls.Config, timeout time.Duration) *http.Client {
	return &http.Client{
		// A redirect would carry the request, and perhaps the credentials, to somewhere the administrator did not configure.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: timeout}).DialContext,
			TLSClientConfig:        settings,
			TLSHandshakeTimeout:    timeout,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // what is counted is what was sent
			MaxIdleConnsPerHost:    maxIdle,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
	}
}
