package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// Choose returns a number from 0 to n-1. A generator that is always answered 0 makes the plainest body and comes to an end.
type Choose func(n int) int

// FromBytes chooses by the bytes of data, and 0 when they are used up.
func FromBytes(data []byte) Choose {
	return func(n int) int {
		if len(data) == 0 || n <= 1 {
			return 0
		}
		choice := int(data[0]) % n
		data = data[1:]
		return choice
	}
}

// Generate returns a body with spec and status, made from the schema: mostly of the right shape, in places with what people and
// programs write by mistake. Numbers are written in every way that JSON knows. The body is JSON, but not always an AITask.
func (a *Admission) Generate(choose Choose, name string) ([]byte, error) {
	g := &generator{choose: choose, mistakes: max(0, choose(5)-2)}
	root := a.structural.Properties
	spec, status := root["spec"], root["status"]
	body := map[string]any{
		"apiVersion": "aiops.example.com/v1",
		"kind":       "AITask",
		"metadata":   g.metadata(name),
		"spec":       g.repaired(g.value(&spec)),
		"status":     g.value(&status),
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode body %s: %w", name, err)
	}
	return text, nil
}

type generator struct {
	choose Choose
	// mistakes is how many more things of a wrong shape this body gets: one is enough to be refused, and what is refused says
	// nothing about decoding.
	mistakes int
}

// one says yes once in n times, and no when choices have run out.
func (g *generator) one(n int) bool {
	return g.choose(n) == n-1
}

// mistake says yes once in n times while the body may have one more.
func (g *generator) mistake(n int) bool {
	if g.mistakes == 0 || !g.one(n) {
		return false
	}
	g.mistakes--
	return true
}

func pick[T any](g *generator, from []T) T {
	return from[g.choose(len(from))]
}

func (g *generator) metadata(name string) map[string]any {
	metadata := map[string]any{"name": name}
	if g.one(4) {
		metadata["annotations"] = map[string]any{
			"aiops.example.com/run":   json.RawMessage(pick(g, texts())),
			"aiops.example.com/reset": json.RawMessage(pick(g, times())),
		}
	}
	if g.mistake(20) {
		metadata["creationTimestamp"] = json.RawMessage(pick(g, wrongTimes()))
	}
	if g.mistake(20) {
		metadata["labels"] = json.RawMessage(pick(g, oddities()))
	}
	return metadata
}

// value is of the schema's type, but for a mistake.
func (g *generator) value(s *structuralschema.Structural) any {
	if g.mistake(20) {
		return json.RawMessage(pick(g, oddities()))
	}
	switch s.Type {
	case "object":
		return g.object(s)
	case "array":
		return g.array(s)
	case "integer":
		return g.number(s)
	case "boolean":
		return g.one(2)
	default:
		return g.text(s)
	}
}

func (g *generator) object(s *structuralschema.Structural) map[string]any {
	required := map[string]bool{}
	if s.ValueValidation != nil {
		for _, name := range s.ValueValidation.Required {
			required[name] = true
		}
	}
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if (required[name] && !g.mistake(20)) || g.one(3) {
			property := s.Properties[name]
			out[name] = g.value(&property)
		}
	}
	if g.one(20) {
		out[pick(g, []string{"treshold", "stpes", "", "Spec", "\u2028"})] = json.RawMessage(pick(g, oddities()))
	}
	return out
}

func (g *generator) array(s *structuralschema.Structural) []any {
	out := []any{}
	length := 1
	if s.ValueValidation == nil || s.ValueValidation.MaxItems == nil || *s.ValueValidation.MaxItems > 1 {
		length += g.choose(3)
	}
	if g.mistake(10) {
		length = pick(g, []int{0, 9, 40})
	}
	for i := range length {
		item := g.value(s.Items)
		if object, ok := item.(map[string]any); ok && !g.mistake(10) {
			for _, key := range s.XListMapKeys {
				object[key] = fmt.Sprintf("k%d", i)
			}
		}
		out = append(out, item)
	}
	return out
}

// number is mostly within the bounds, and then often in a notation that few people think of.
func (g *generator) number(s *structuralschema.Structural) json.RawMessage {
	if g.mistake(10) {
		return json.RawMessage(pick(g, numbers()))
	}
	low, high := int64(0), int64(100)
	if v := s.ValueValidation; v != nil {
		if v.Minimum != nil {
			low = int64(*v.Minimum)
		}
		if v.Maximum != nil {
			high = int64(*v.Maximum)
		}
	}
	value := pick(g, []int64{min(high, max(low, 1)), min(high, max(low, 60)), low, high, max(low, 0)})
	notation := "%d"
	if g.one(6) {
		notation = pick(g, []string{"%d.0", "%de0", "%d.000e+0", "%d.0E-0"})
	}
	return fmt.Appendf(nil, notation, value)
}

func (g *generator) text(s *structuralschema.Structural) any {
	v := s.ValueValidation
	isTime := v != nil && v.Format == "date-time"
	switch {
	case isTime && g.mistake(5):
		return json.RawMessage(pick(g, wrongTimes()))
	case isTime:
		return json.RawMessage(pick(g, times()))
	case g.mistake(10):
		return json.RawMessage(pick(g, texts()))
	case v != nil && len(v.Enum) > 0:
		return pick(g, v.Enum).Object
	case v != nil && v.MaxLength != nil && g.one(15):
		return strings.Repeat(pick(g, []string{"x", "\u00e9", "\U0001F600"}), int(*v.MaxLength))
	}
	return pick(g, []string{"web", "a", "b", "c", "db-0", "x1"})
}

// repaired makes the unions of a spec whole, but for a mistake: a body of independently drawn fields nearly always breaks one
// of the rules, and would say little about what is admitted.
func (g *generator) repaired(value any) any {
	spec, ok := value.(map[string]any)
	if !ok || g.mistake(8) {
		return value
	}
	g.repairTarget(spec)
	if signals, found := spec["signals"].([]any); found {
		delete(spec, "threshold")
		for _, item := range signals {
			g.repairSignal(item)
		}
	}
	if steps, found := spec["steps"].([]any); found {
		delete(spec, "action")
		for _, item := range steps {
			g.repairStep(item)
		}
	}
	if (spec["steps"] != nil || spec["action"] != nil) && spec["signals"] == nil && !g.one(4) {
		spec["threshold"] = 1
	}
	return spec
}

// repairTarget mostly names the one workload that a test provides.
func (g *generator) repairTarget(spec map[string]any) {
	_, given := spec["targetRef"]
	if given {
		delete(spec, "targetDeployment")
	}
	switch {
	case g.one(3):
	case given:
		spec["targetRef"] = map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
	default:
		spec["targetDeployment"] = "web"
	}
}

func (g *generator) repairSignal(item any) {
	signal, ok := item.(map[string]any)
	if !ok {
		return
	}
	members := map[string]string{
		"containerRestarts": "ContainerRestarts", "crashLoopingPods": "CrashLoopingPods", "oomKills": "OOMKills", "pendingPods": "PendingPods",
		"cpuUtilization": "CPUUtilization", "memoryUtilization": "MemoryUtilization", "prometheus": "Prometheus", "condition": "Condition",
	}
	keepMember(signal, signal["type"], members)
	if signal["type"] == "Prometheus" && signal["prometheus"] == nil {
		signal["prometheus"] = map[string]any{"query": "up", "aliveQuery": "vector(1)"}
	}
	if signal["type"] == "Condition" && signal["condition"] == nil {
		signal["condition"] = map[string]any{"type": "Available", "status": "False"}
	}
	if !g.one(4) {
		delete(signal, "recoveryThreshold")
		delete(signal, "noData")
	}
}

func (g *generator) repairStep(item any) {
	step, ok := item.(map[string]any)
	if !ok {
		return
	}
	keepMember(step, step["action"], map[string]string{"scale": "Scale", "evict": "Evict", "notify": "Notify"})
	if step["action"] == "Scale" {
		if scale, found := step["scale"].(map[string]any); !found {
			step["scale"] = map[string]any{"by": 1, "max": 6}
		} else if scale["by"] != nil || scale["to"] == nil {
			delete(scale, "to")
			scale["by"] = -1
		}
	}
}

func keepMember(union map[string]any, discriminator any, members map[string]string) {
	for member, word := range members {
		if word != discriminator {
			delete(union, member)
		}
	}
}
