package signal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// maxNamedEndpoints is how many configured names a message lists.
const maxNamedEndpoints = 10

// Prometheus is the one value that a query yields. Value and unit: the query's. Source: the HTTP API of a Prometheus, or of
// anything that speaks it, /api/v1/query, at an endpoint of the operator's configuration. Every answer that is not exactly one
// finite, complete and current number is unknown, with a reason of its own.
type Prometheus struct {
	endpoints map[string]*endpoint
	names     string
}

// NewPrometheus returns the source for signals of type Prometheus. It fails when an endpoint's name is taken or its URL is none.
func NewPrometheus(endpoints ...PrometheusEndpoint) (*Prometheus, error) {
	source := &Prometheus{endpoints: make(map[string]*endpoint, len(endpoints))}
	names := make([]string, 0, len(endpoints))
	for _, configured := range endpoints {
		if _, taken := source.endpoints[configured.Name]; taken {
			return nil, fmt.Errorf("prometheus endpoint %q: another one has this name", configured.Name)
		}
		made, err := newEndpoint(configured)
		if err != nil {
			return nil, err
		}
		source.endpoints[configured.Name] = made
		names = append(names, configured.Name)
	}
	slices.Sort(names)
	if len(names) > maxNamedEndpoints {
		names = append(names[:maxNamedEndpoints], "...")
	}
	source.names = strings.Join(names, ", ")
	return source, nil
}

// Type is Prometheus.
func (*Prometheus) Type() aiopsv1.SignalType { return aiopsv1.SignalPrometheus }

// Polled is true: a Prometheus is asked.
func (*Prometheus) Polled() bool { return true }

// question is everything that the answer depends on: tasks that ask the same are answered together.
func (s *Prometheus) question(request Request) question {
	parameters := request.Signal.Prometheus
	if parameters == nil {
		return question{}
	}
	name := endpointName(parameters)
	asked := question{queue: "Prometheus/" + name, text: name + "\x00" + parameters.Query + "\x00" + aliveQuery(request.Signal)}
	if known, found := s.endpoints[name]; found {
		asked.timeout = known.Timeout
	}
	return asked
}

// Measure asks the query, and the aliveQuery if the query yields nothing and noData depends on it.
func (s *Prometheus) Measure(ctx context.Context, request Request) Reading {
	parameters := request.Signal.Prometheus
	if parameters == nil {
		return parametersMissing(request, "prometheus")
	}
	if reading, rests := rest(request); rests {
		return reading
	}
	name := endpointName(parameters)
	asked, found := s.endpoints[name]
	if !found {
		return s.unknownEndpoint(request, name)
	}
	ctx, cancel := context.WithTimeout(ctx, asked.Timeout)
	defer cancel()
	result := asked.ask(ctx, parameters.Query, request.Now)
	switch {
	case result.empty:
		return noSeries(ctx, request, asked)
	case result.reason != "":
		return unknown(request, result.reason, "Prometheus %q %s", name, result.text)
	}
	return known(request, result.value)
}

// noSeries is the reading of an answered, empty result. Where an aliveQuery is to tell whether anybody reports at all, only
// its own answer with a number leaves the verdict to noData.
func noSeries(ctx context.Context, request Request, asked *endpoint) Reading {
	alive := aliveQuery(request.Signal)
	if alive != "" {
		result := asked.ask(ctx, alive, request.Now)
		if result.empty {
			return unknown(request, aiopsv1.ReasonNoData, "Neither query nor aliveQuery answered with a series: nobody reports to Prometheus %q", asked.Name)
		}
		if !result.alive {
			return unknown(request, result.reason, "Prometheus %q %s (aliveQuery)", asked.Name, result.text)
		}
	}
	reading := unknown(request, aiopsv1.ReasonNoData, "The query answered with no series")
	if isFilter(request.Signal.Prometheus.Query) {
		reading = unknown(request, aiopsv1.ReasonFilterQuery,
			"The query answered with no series. A comparison without `bool` does that when all is well: write `... > bool 0`")
	}
	reading.NoData = true
	reading.AliveChecked = alive != ""
	return reading
}

func (s *Prometheus) unknownEndpoint(request Request, name string) Reading {
	if s.names == "" {
		return unknown(request, aiopsv1.ReasonUnknownEndpoint,
			"No Prometheus %q is configured: add it to prometheusEndpoints in the operator's configuration", name)
	}
	return unknown(request, aiopsv1.ReasonUnknownEndpoint, "No Prometheus %q is configured: set prometheus.endpoint to one of %s", name, s.names)
}

func endpointName(parameters *aiopsv1.PrometheusSignal) string {
	if parameters.Endpoint == nil {
		return aiopsv1.DefaultEndpoint
	}
	return *parameters.Endpoint
}

// aliveQuery is the query that decides about an empty result. Empty: there is none, or nothing depends on it.
func aliveQuery(asking aiopsv1.Signal) string {
	if asking.Prometheus.AliveQuery == nil || (asking.NoData != aiopsv1.NoDataHealthy && asking.NoData != aiopsv1.NoDataBreached) {
		return ""
	}
	return *asking.Prometheus.AliveQuery
}
