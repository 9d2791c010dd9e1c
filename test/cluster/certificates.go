package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateLifetime is far longer than any test and shorter than anything worth stealing.
const certificateLifetime = 30 * 24 * time.Hour

// loopback is the only address anything here listens on.
const loopback = "127.0.0.1"

// keyPair is a certificate and its private key, both as PEM.
type keyPair struct {
	certificatePEM []byte
	keyPEM         []byte
	certificate    *x509.Certificate
	key            *ecdsa.PrivateKey
}

// newAuthority makes a self-signed certificate authority.
func newAuthority(commonName string) (*keyPair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	return sign(template, nil)
}

// serving issues a certificate for a server on the loopback address with additional names.
func (pair *keyPair) serving(commonName string, names ...string) (*keyPair, error) {
	return sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: commonName},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    append([]string{"localhost"}, names...),
		IPAddresses: []net.IP{net.ParseIP(loopback), net.ParseIP(serviceAddress)},
	}, pair)
}

// client issues a certificate whose common name is the user and whose organizations are the groups.
func (pair *keyPair) client(user string, groups ...string) (*keyPair, error) {
	return sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, pair)
}

// sign completes the template with a key of its own and signs it, with that key itself when there is no authority.
func sign(template *x509.Certificate, authority *keyPair) (*keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key of %q: %w", template.Subject.CommonName, err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, fmt.Errorf("choose the serial number of %q: %w", template.Subject.CommonName, err)
	}
	template.NotBefore = time.Now().Add(-time.Hour) // Clocks of containers and hosts may differ a little.
	template.NotAfter = time.Now().Add(certificateLifetime)
	parent, signer := template, key
	if authority != nil {
		parent, signer = authority.certificate, authority.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %q: %w", template.Subject.CommonName, err)
	}
	return newKeyPair(der, key)
}

func newKeyPair(der []byte, key *ecdsa.PrivateKey) (*keyPair, error) {
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back a certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a private key: %w", err)
	}
	return &keyPair{
		certificatePEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		certificate:    certificate,
		key:            key,
	}, nil
}

// publicKeyPEM is what verifies signatures of the pair's key.
func (pair *keyPair) publicKeyPEM() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(&pair.key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("encode a public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// write stores the pair as name.crt and name.key, readable by the owner alone.
func (pair *keyPair) write(folder, name string) error {
	if err := os.WriteFile(filepath.Join(folder, name+".crt"), pair.certificatePEM, 0o600); err != nil {
		return fmt.Errorf("write the certificate %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".key"), pair.keyPEM, 0o600); err != nil {
		return fmt.Errorf("write the key %s: %w", name, err)
	}
	return nil
}

// authorities are the roots of trust of one cluster. They stay in memory; only the programs that need a key get it on disk.
type authorities struct {
	cluster    *keyPair
	frontProxy *keyPair
}

// writeCertificates makes every certificate the programs need below folder.
func writeCertificates(folder string) (*authorities, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the certificate folder: %w", err)
	}
	cluster, err := newAuthority("kubernetes")
	if err != nil {
		return nil, err
	}
	frontProxy, err := newAuthority("front-proxy")
	if err != nil {
		return nil, err
	}
	tokens, err := writeTokenKey(folder)
	if err != nil {
		return nil, err
	}
	pairs := map[string]func() (*keyPair, error){
		"cluster":          func() (*keyPair, error) { return cluster, nil },
		"front-proxy":      func() (*keyPair, error) { return frontProxy, nil },
		"service-accounts": func() (*keyPair, error) { return tokens, nil },
		"kube-apiserver": func() (*keyPair, error) {
			return cluster.serving("kube-apiserver", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
		},
		"kwok":                  func() (*keyPair, error) { return cluster.serving("kwok") },
		"metrics-server":        func() (*keyPair, error) { return cluster.serving("metrics-server", metricsServiceName) },
		"kube-apiserver-client": func() (*keyPair, error) { return cluster.client("kube-apiserver", "system:masters") },
		"front-proxy-client":    func() (*keyPair, error) { return frontProxy.client("front-proxy-client") },
	}
	for name, issue := range pairs {
		pair, err := issue()
		if err != nil {
			return nil, err
		}
		if err := pair.write(folder, name); err != nil {
			return nil, err
		}
	}
	return &authorities{cluster: cluster, frontProxy: frontProxy}, nil
}

// writeTokenKey makes the key that signs ServiceAccount tokens and stores the half that verifies them.
func writeTokenKey(folder string) (*keyPair, error) {
	tokens, err := newAuthority("service-accounts")
	if err != nil {
		return nil, err
	}
	public, err := tokens.publicKeyPEM()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "service-accounts.pub"), public, 0o600); err != nil {
		return nil, fmt.Errorf("write the public key of ServiceAccount tokens: %w", err)
	}
	return tokens, nil
}
