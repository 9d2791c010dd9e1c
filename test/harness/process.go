//go:build unix

package harness

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/example/aiops-operator/test/cluster"
)

const (
	// tokenLifetime outlasts any look around a cluster that was left running.
	tokenLifetime = 24 * time.Hour
	// stopTimeout is how long the operator may take to finish what it is doing.
	stopTimeout = 35 * time.Second
	// ready is what Readiness returns of a program that is.
	ready = "ok"
)

// Process is the operator's own program, running beside the cluster as its pod would in it.
type Process struct {
	// Started is the moment right before the program was started.
	Started time.Time
	// LogFile receives what the program prints.
	LogFile string

	command *exec.Cmd
	probe   string
	done    chan struct{}
}

// ProcessOptions are what differs from one process to the next.
type ProcessOptions struct {
	// Name tells the processes of one cluster apart.
	Name string
	// Account is whose rights the process has, and in whose namespace it elects its leader. Zero: that of this tree's bundle.
	Account types.NamespacedName
	// Arguments are the command line that the operator is installed with. Nil: that of this tree's bundle.
	Arguments []string
	// Config is the content of the operator's configuration file.
	Config string
	// Flags are added to those that every process here gets.
	Flags []string
	// Environment is added to that of this process, as "NAME=value".
	Environment []string
}

// BuildOperator builds the operator into the cache, or finds it up to date, and returns where it is.
func BuildOperator(ctx context.Context) (string, error) {
	return BuildVersion(ctx, "dev")
}

// BuildVersion builds the operator of this tree as a version, such as v0.1.0, into the cache and returns where it is.
func BuildVersion(ctx context.Context, version string) (string, error) {
	folder, err := cluster.CacheFolder()
	if err != nil {
		return "", err
	}
	tree := fnv.New64a() // two checkouts do not overwrite each other's programs
	_, _ = tree.Write([]byte(Root()))
	path := filepath.Join(folder, "operator", fmt.Sprintf("%x-%s", tree.Sum64(), version), "manager")
	command := exec.CommandContext(ctx, "go", "build", "-C", Root(), "-ldflags", "-X main.version="+version, "-o", path, "./cmd")
	if printed, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the operator: %w\n%s", err, printed)
	}
	return path, nil
}

// StartProcess starts the program at path as the operator is installed. The addresses and files of this machine are appended to its
// command line: of a flag that is given twice, the last one holds. The program ends with the cluster, or with Stop or Kill.
func StartProcess(ctx context.Context, c *cluster.Cluster, path string, options ProcessOptions) (*Process, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	kubeconfig, err := writeKubeconfig(ctx, c, options.Name, options.Account)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(c.Dir(), "configuration", options.Name+".yaml")
	if err := os.WriteFile(config, []byte(options.Config), 0o600); err != nil {
		return nil, fmt.Errorf("write the operator's configuration: %w", err)
	}
	probe, err := cluster.FreeAddress()
	if err != nil {
		return nil, err
	}
	arguments := slices.Concat(options.Arguments, []string{
		"--kubeconfig=" + kubeconfig, "--config=" + config, "--leader-election-namespace=" + options.Account.Namespace,
		"--metrics-bind-address=0", "--health-probe-bind-address=" + probe,
	}, options.Flags)
	process := &Process{LogFile: c.LogFile(options.Name), probe: "http://" + probe + "/readyz", done: make(chan struct{})}
	if err := process.start(path, arguments, options.Environment); err != nil {
		return nil, err
	}
	return process, c.Adopt(options.Name, process.PID())
}

// complete takes from this tree's bundle what was not given.
func (o *ProcessOptions) complete() error {
	if o.Account == (types.NamespacedName{}) {
		o.Account = types.NamespacedName{Namespace: Namespace, Name: ServiceAccount}
	}
	if o.Arguments != nil {
		return nil
	}
	release, err := LoadRelease()
	if err != nil {
		return err
	}
	o.Arguments, err = release.Arguments()
	return err
}

// start gives the program a session of its own, so that Ctrl-C reaches only whoever knows in which order things are stopped.
func (p *Process) start(path string, arguments, environment []string) error {
	output, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("create the operator's log: %w", err)
	}
	defer output.Close()
	p.command = exec.Command(path, arguments...)
	p.command.Env = append(os.Environ(), environment...)
	p.command.Stdout, p.command.Stderr = output, output
	p.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.Started = time.Now()
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	go func() {
		_ = p.command.Wait() // the way it ended is in its log
		close(p.done)
	}()
	return nil
}

// PID is the number of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// WaitReady returns when the program says that its caches are filled.
func (p *Process) WaitReady(ctx context.Context) error {
	return p.WaitReadyWithin(ctx, time.Minute)
}

// WaitReadyWithin is WaitReady with a time of the caller's.
func (p *Process) WaitReadyWithin(ctx context.Context, timeout time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("it ended; see %s", p.LogFile)
		default:
			answer, err := p.Readiness(ctx)
			return err == nil && answer == ready, nil
		}
	})
	if err != nil {
		return fmt.Errorf("wait for the operator to be ready: %w", err)
	}
	return nil
}

// Stop asks the process to end and returns when it has.
func (p *Process) Stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return nil // it has ended
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("the operator did not end within %s of being asked to; see %s", stopTimeout, p.LogFile)
	}
}

// Kill ends the process as a crash would, and returns when it is gone.
func (p *Process) Kill() {
	_ = p.command.Process.Kill() // it may have ended
	<-p.done
}

// writeKubeconfig stores access as a ServiceAccount.
func writeKubeconfig(ctx context.Context, c *cluster.Cluster, name string, as types.NamespacedName) (string, error) {
	writer, err := NewClient(c.Config())
	if err != nil {
		return "", err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: as.Namespace, Name: as.Name}}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: Of(int64(tokenLifetime.Seconds()))}}
	if err := writer.SubResource("token").Create(ctx, account, token); err != nil {
		return "", fmt.Errorf("log in as the operator: %w", err)
	}
	config, err := c.ServiceAccountConfig(ctx, as.Namespace, as.Name)
	if err != nil {
		return "", fmt.Errorf("log in as the operator: %w", err)
	}
	config.BearerToken = token.Status.Token
	path := filepath.Join(c.Dir(), "configuration", name+".kubeconfig")
	return path, c.WriteKubeconfig(path, config)
}

// Readiness returns what the program answers when it is asked whether it is ready: "ok", or why it is not.
func (p *Process) Readiness(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.probe, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask whether the operator is ready: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
	if err != nil {
		return "", fmt.Errorf("ask whether the operator is ready: %w", err)
	}
	if answer.StatusCode == http.StatusOK {
		return ready, nil
	}
	return string(text), nil
}
