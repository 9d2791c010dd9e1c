package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// AuditEvent is what the audit log says about one request after it was answered. No bodies are recorded.
type AuditEvent struct {
	// Stage is ResponseComplete, ResponseStarted (watches) or Panic.
	Stage string
	// Verb is create, update, patch, delete, deletecollection, get, list or watch.
	Verb string
	// User and UserAgent say who asked.
	User      string
	UserAgent string
	// APIGroup is empty for the core group.
	APIGroup string
	// Resource is the plural name, empty for requests to paths such as /readyz.
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	// Code is the HTTP status of the answer.
	Code int
	// DryRun says that the request was a question only: nothing was stored.
	DryRun bool
	// Received and Completed are kube-apiserver's times, to the microsecond.
	Received  time.Time
	Completed time.Time
}

// AuditMark is a place in the audit log.
type AuditMark int64

// auditRecord is the part of audit.k8s.io/v1 Event that is of use here.
type auditRecord struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	UserAgent  string `json:"userAgent"`
	RequestURI string `json:"requestURI"`
	ObjectRef  struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time `json:"stageTimestamp"`
}

// AuditMark returns the present end of the audit log, for AuditEventsSince. A last line that is still being written comes after it.
func (c *Cluster) AuditMark() (AuditMark, error) {
	file, err := os.Open(c.auditFile())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at the audit log: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("look at the audit log: %w", err)
	}
	end, err := endOfLines(file, info.Size())
	if err != nil {
		return 0, fmt.Errorf("find the end of the audit log: %w", err)
	}
	return AuditMark(end), nil
}

// endOfLines returns where the last complete line of the first size bytes ends.
func endOfLines(file io.ReaderAt, size int64) (int64, error) {
	piece := make([]byte, 4096)
	for end := size; end > 0; {
		begin := max(0, end-int64(len(piece)))
		read := piece[:end-begin]
		if _, err := file.ReadAt(read, begin); err != nil {
			return 0, err
		}
		if last := bytes.LastIndexByte(read, '\n'); last >= 0 {
			return begin + int64(last) + 1, nil
		}
		end = begin
	}
	return 0, nil
}

// AuditEvents returns all recorded requests the filter keeps, in the order they were answered; a nil filter keeps all. The
// cluster must have been started with Options.Audit. A request may be recorded a moment after its answer was read: poll.
func (c *Cluster) AuditEvents(keep func(AuditEvent) bool) ([]AuditEvent, error) {
	return c.AuditEventsSince(0, keep)
}

// AuditEventsSince is AuditEvents for what was recorded after the mark.
func (c *Cluster) AuditEventsSince(mark AuditMark, keep func(AuditEvent) bool) ([]AuditEvent, error) {
	file, err := os.Open(c.auditFile())
	if err != nil {
		return nil, fmt.Errorf("read the audit log (was the cluster started with Audit?): %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(int64(mark), io.SeekStart); err != nil {
		return nil, fmt.Errorf("find the mark in the audit log: %w", err)
	}
	var events []AuditEvent
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil // A last line without its end is still being written.
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		event, err := parseAuditEvent(line)
		if err != nil {
			return nil, err
		}
		if keep == nil || keep(event) {
			events = append(events, event)
		}
	}
}

func parseAuditEvent(line []byte) (AuditEvent, error) {
	var record auditRecord
	if err := json.Unmarshal(line, &record); err != nil {
		return AuditEvent{}, fmt.Errorf("read a line of the audit log: %w", err)
	}
	return AuditEvent{
		Stage: record.Stage, Verb: record.Verb, User: record.User.Username, UserAgent: record.UserAgent,
		APIGroup: record.ObjectRef.APIGroup, Resource: record.ObjectRef.Resource, Subresource: record.ObjectRef.Subresource,
		Namespace: record.ObjectRef.Namespace, Name: record.ObjectRef.Name, Code: record.ResponseStatus.Code,
		DryRun:   strings.Contains(record.RequestURI, "dryRun=All"),
		Received: record.RequestReceivedTimestamp, Completed: record.StageTimestamp,
	}, nil
}

func (c *Cluster) auditFile() string { return c.path("logs", "audit.log") }

// auditPolicy records who did what and how it was answered, never what was in it.
func auditPolicy(reads bool) string {
	const writes = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
`
	if reads {
		return writes + "- level: Metadata\n"
	}
	return writes + "- level: None\n"
}
