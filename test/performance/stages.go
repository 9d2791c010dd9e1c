package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/example/aiops-operator/test/cluster"
)

// course is what the audit log says about one incident.
type course struct {
	incident
	// breach is the status write by which kube-controller-manager made the breach known.
	breach cluster.AuditEvent
	// order and action are the operator's two writes, reads what it reads between them.
	order, action cluster.AuditEvent
	reads         []cluster.AuditEvent
}

// coursesOf sorts the requests into incidents.
func coursesOf(incidents []incident, events []cluster.AuditEvent) ([]course, error) {
	byName := map[string][]cluster.AuditEvent{}
	lists := []cluster.AuditEvent{}
	for _, event := range events {
		if event.Name == "" {
			lists = append(lists, event)
		} else {
			byName[event.Name] = append(byName[event.Name], event)
		}
	}
	var out []course
	for _, measured := range incidents {
		all := append(slices.Clone(byName[measured.name]), lists...)
		slices.SortFunc(all, func(a, b cluster.AuditEvent) int { return a.Received.Compare(b.Received) })
		next, err := courseOf(measured, all)
		if err != nil {
			return nil, err
		}
		out = append(out, next)
	}
	return out, nil
}

func courseOf(measured incident, events []cluster.AuditEvent) (course, error) {
	own := slices.DeleteFunc(slices.Clone(events), func(event cluster.AuditEvent) bool { return event.User != operatorUser })
	others := slices.DeleteFunc(slices.Clone(events), func(event cluster.AuditEvent) bool { return event.User == operatorUser })
	out := course{incident: measured}
	out.breach = first(others, "update deployments/status", measured.broke)
	out.order = first(own, "patch aitasks/status", out.breach.Received)
	out.action = first(own, "patch deployments", out.order.Completed)
	for _, event := range own {
		if !isWrite(event) && event.Received.After(out.order.Completed) && event.Completed.Before(out.action.Received) {
			out.reads = append(out.reads, event)
		}
	}
	if out.breach.Verb == "" || out.order.Verb == "" || out.action.Verb == "" || len(out.reads) == 0 {
		return out, fmt.Errorf("the audit log does not hold the whole incident of %s", measured.name)
	}
	return out, nil
}

// first finds the first request of a kind that was received at a time or later. Without one its verb is empty.
func first(events []cluster.AuditEvent, kind string, from time.Time) cluster.AuditEvent {
	for _, event := range events {
		if describe(event) == kind && !event.Received.Before(from) {
			return event
		}
	}
	return cluster.AuditEvent{}
}

// stage is a part of the way from the breach to the action.
type stage struct {
	name string
	took func(course) time.Duration
}

// stages are the parts of the way, in their order. The reads between the two writes are asked at the same time.
func stages() []stage {
	return []stage{
		{"breach written -> order received", func(c course) time.Duration { return c.order.Received.Sub(c.breach.Completed) }},
		{"order written", func(c course) time.Duration { return c.order.Completed.Sub(c.order.Received) }},
		{"order answered -> first read received", func(c course) time.Duration { return c.reads[0].Received.Sub(c.order.Completed) }},
		{"reads", func(c course) time.Duration { return c.readsEnd().Sub(c.reads[0].Received) }},
		{"last read answered -> action received", func(c course) time.Duration { return c.action.Received.Sub(c.readsEnd()) }},
		{"action written", func(c course) time.Duration { return c.action.Completed.Sub(c.action.Received) }},
	}
}

func (c course) readsEnd() time.Time {
	return slices.MaxFunc(c.reads, func(a, b cluster.AuditEvent) int { return a.Completed.Compare(b.Completed) }).Completed
}

// reportLatency turns watch events and audit log into numbers.
func (b *bench) reportLatency(mark cluster.AuditMark, incidents []incident, patches samples) error {
	events, err := b.cluster.AuditEventsSince(mark, func(event cluster.AuditEvent) bool {
		return (event.User == operatorUser && event.Verb != "watch") || event.User == deploymentControllerUser
	})
	if err != nil {
		return err
	}
	courses, err := coursesOf(incidents, events)
	if err != nil {
		return err
	}
	var watched, written samples
	for _, c := range courses {
		if !c.seen.IsZero() { // a watch of ours had ended at that moment
			watched = append(watched, c.action.Completed.Sub(c.seen))
		}
		written = append(written, c.action.Completed.Sub(c.breach.Completed))
	}
	where := fmt.Sprintf("latency (%d incidents, %d tasks, %s)", len(incidents), b.created, b.action)
	b.results.addSamples(where, "one patch of a Deployment, alone", patches)
	b.results.addSamples(where, "breach seen by a watch -> action applied", watched)
	b.results.addSamples(where, "breach answered by the API server -> action applied", written)
	for _, percent := range []int{50, 99} {
		took, alone := watched.percentile(percent), patches.percentile(percent)
		b.results.addWithGoal(where, fmt.Sprintf("breach seen -> action applied, p%d", percent), milliseconds(took), "ms", map[int]float64{50: 50, 99: 250}[percent])
		b.results.addWithGoal(where, fmt.Sprintf("the same in patches, p%d", percent), float64(took)/float64(alone), "x", 5)
	}
	b.reportStages(courses)
	b.reportRequests(len(incidents), events)
	return nil
}

func (b *bench) reportStages(courses []course) {
	for _, next := range stages() {
		var took samples
		for _, c := range courses {
			took = append(took, next.took(c))
		}
		b.results.add("stages, p50", next.name, milliseconds(took.percentile(50)), "ms")
	}
}

func (b *bench) reportRequests(incidents int, events []cluster.AuditEvent) {
	own := slices.DeleteFunc(events, func(event cluster.AuditEvent) bool { return event.User != operatorUser })
	kinds, numbers := countByKind(own)
	total := 0
	for _, kind := range kinds {
		total += numbers[kind]
		b.results.add("requests per incident", kind, float64(numbers[kind])/float64(incidents), "")
	}
	b.results.add("requests per incident", "all", float64(total)/float64(incidents), "")
}
