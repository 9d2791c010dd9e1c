package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/example/aiops-operator/test/cluster"
)

// page is what somebody on call would get.
type page struct {
	at   time.Time
	text string
}

// pages is the receiver that the operator's configuration names.
type pages struct {
	listener net.Listener
	server   *http.Server
	arrived  chan page
}

func listenForPages() (*pages, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for pages: %w", err)
	}
	p := &pages{listener: listener, arrived: make(chan page, 16)}
	p.server = newPageServer(func(arrived page) { p.arrived <- arrived })
	go func() { _ = p.server.Serve(listener) }() // ends with close
	return p, nil
}

// newPageServer takes a notification's text; a receiver of its own needs no more.
func newPageServer(deliver func(page)) *http.Server {
	return &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		notification := struct {
			Text string `json:"text"`
		}{}
		if err := json.NewDecoder(io.LimitReader(request.Body, 1<<20)).Decode(&notification); err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		deliver(page{at: time.Now(), text: notification.Text})
	})}
}

func (p *pages) url() string { return "http://" + p.listener.Addr().String() }

// next returns the page that arrived first of those not yet returned.
func (p *pages) next(ctx context.Context) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	select {
	case arrived := <-p.arrived:
		return arrived, nil
	case <-ctx.Done():
		return page{}, errors.New("no page arrived")
	}
}

func (p *pages) close() error { return p.server.Close() }

// handOver lets a process of its own go on listening at the same address, and returns where it writes the pages.
func (p *pages) handOver(c *cluster.Cluster) (string, error) {
	socket, err := p.listener.(*net.TCPListener).File()
	if err != nil {
		return "", fmt.Errorf("hand the receiver over: %w", err)
	}
	defer socket.Close()
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("hand the receiver over: %w", err)
	}
	file := c.LogFile("pages")
	command := exec.Command(program, receive, file)
	command.ExtraFiles = []*os.File{socket}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return "", fmt.Errorf("hand the receiver over: %w", err)
	}
	return file, c.Adopt("pages", command.Process.Pid)
}

// receiveInherited is the process that handOver starts.
func receiveInherited(ctx context.Context, file string) error {
	listener, err := net.FileListener(os.NewFile(3, "pages"))
	if err != nil {
		return fmt.Errorf("take the receiver over: %w", err)
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the file of pages: %w", err)
	}
	defer out.Close()
	server := newPageServer(func(arrived page) { fmt.Fprintln(out, arrived.at.UTC().Format(time.RFC3339), arrived.text) })
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
