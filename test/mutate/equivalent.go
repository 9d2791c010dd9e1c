package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// equivalents are the mutants that make no difference, by their key, with the reason.
func equivalents() map[string]string {
	return map[string]string{}
}

// checkEquivalents refuses a list that names what is not there any more.
func checkEquivalents(mutants []mutant) error {
	left := maps.Clone(equivalents())
	for _, mutant := range mutants {
		delete(left, mutant.key())
	}
	var stale []error
	for _, key := range slices.Sorted(maps.Keys(left)) {
		stale = append(stale, fmt.Errorf("equivalent.go lists a mutant that does not exist: %s", key))
	}
	return errors.Join(stale...)
}
