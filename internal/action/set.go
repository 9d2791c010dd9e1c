package action

import (
	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// Set finds actions by type. Safe for concurrent use.
type Set struct {
	actions map[aiopsv1.ActionType]Action
}

// NewSet returns the set of these actions; of two with the same type the later one counts.
func NewSet(actions ...Action) Set {
	set := Set{actions: make(map[aiopsv1.ActionType]Action, len(actions))}
	for _, action := range actions {
		set.actions[action.Type()] = action
	}
	return set
}

// Lookup returns the action of a type, and whether there is one.
func (s Set) Lookup(actionType aiopsv1.ActionType) (Action, bool) {
	action, found := s.actions[actionType]
	return action, found
}
