package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Config is access as a member of system:masters, without a client-side rate limit. The caller gets a copy.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// KubeconfigFile holds the same access as Config, for kubectl and other programs.
func (c *Cluster) KubeconfigFile() string { return c.kubeconfig("admin") }

// UserConfig is access as a user with a client certificate of this cluster. The user needs no registration, and may do
// nothing that RBAC does not grant to it or to its groups.
func (c *Cluster) UserConfig(user string, groups ...string) (*rest.Config, error) {
	var named []string
	for _, group := range groups {
		if group != "" {
			named = append(named, group)
		}
	}
	pair, err := c.authority.client(user, named...)
	if err != nil {
		return nil, err
	}
	config := c.anonymousConfig()
	config.CertData, config.KeyData = pair.certificatePEM, pair.keyPEM
	return config, nil
}

// ServiceAccountConfig is access with a token of an existing ServiceAccount, valid for an hour, as a pod would have it.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	answer, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request a token for ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config := c.anonymousConfig()
	config.BearerToken = answer.Status.Token
	return config, nil
}

// anonymousConfig knows the server and nothing about the user.
func (c *Cluster) anonymousConfig() *rest.Config {
	host := ""
	if c.config != nil {
		host = c.config.Host
	} else {
		host = "https://" + address(c.ports.apiServer)
	}
	return &rest.Config{
		Host:            host,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.certificatePEM},
		QPS:             -1,
	}
}

// WriteKubeconfig stores access of this cluster as a kubeconfig file that only its owner can read.
func (c *Cluster) WriteKubeconfig(path string, config *rest.Config) error {
	const name = "aiops-cluster"
	content := clientcmdapi.NewConfig()
	content.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	content.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
	}
	content.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	content.CurrentContext = name
	if err := clientcmd.WriteToFile(*content, path); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return nil
}

func readKubeconfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	config.QPS = -1
	return config, nil
}

// readKeyPair reads back what keyPair.write has written.
func readKeyPair(folder, name string) (*keyPair, error) {
	certificateDER, err := readPEM(filepath.Join(folder, name+".crt"))
	if err != nil {
		return nil, err
	}
	keyDER, err := readPEM(filepath.Join(folder, name+".key"))
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyDER)
	if err != nil {
		return nil, fmt.Errorf("read the key %s: %w", name, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read the key %s: it is a %T", name, parsed)
	}
	return newKeyPair(certificateDER, key)
}

func readPEM(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a certificate or key: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("read %s: it holds no PEM block", path)
	}
	return block.Bytes, nil
}
