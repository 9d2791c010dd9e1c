package signal

import (
	"k8s.io/apimachinery/pkg/types"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// Set is the sources an operator has, by the type of signal they measure. The zero Set has none.
type Set struct {
	sources map[aiopsv1.SignalType]Source
}

// NewSet returns the set of the given sources. Of two sources for one type the first one stands.
func NewSet(sources ...Source) Set {
	set := Set{sources: make(map[aiopsv1.SignalType]Source, len(sources))}
	for _, source := range sources {
		if _, taken := set.sources[source.Type()]; !taken {
			set.sources[source.Type()] = source
		}
	}
	return set
}

// Lookup returns the source for a type of signal. It is false for a type that this operator does not know: a newer
// definition may be installed beside it.
func (s Set) Lookup(signalType aiopsv1.SignalType) (Source, bool) {
	source, found := s.sources[signalType]
	return source, found
}

// Forget drops what the sources remember of a task. It is right to call it for a task that nothing is remembered of.
func (s Set) Forget(task types.UID) {
	for _, source := range s.sources {
		if remembering, ok := source.(interface{ Forget(task types.UID) }); ok {
			remembering.Forget(task)
		}
	}
}
