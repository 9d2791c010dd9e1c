package action

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func TestRefusalOf(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	forbidden := func(text string) error { return apierrors.NewForbidden(deployments, "web", errors.New(text)) }
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", field.ErrorList{
		field.Invalid(field.NewPath("spec", "template"), secret, "no good"),
	})
	tests := map[string]struct {
		err     error
		reason  string
		message string
		wait    bool
	}{
		"gone": {apierrors.NewNotFound(deployments, "web"), aiopsv1.ReasonTargetNotFound, "Deployment/web does not exist any more", false},
		"no right": {
			forbidden(`User "system:serviceaccount:a:b" cannot patch resource "deployments" in API group "apps" in the namespace "shop"`),
			aiopsv1.ReasonForbidden, "the operator has no right to patch deployments.apps in namespace shop", false,
		},
		"quota": {
			forbidden("exceeded quota: compute, requested: pods=1, used: pods=10, limited: pods=10"),
			aiopsv1.ReasonQuotaExceeded, "a ResourceQuota of namespace shop does not let", true,
		},
		"admission": {
			forbidden(`admission webhook "rules.example.com" denied the request: not on Fridays`),
			aiopsv1.ReasonForbidden, "not on Fridays", false,
		},
		"invalid":         {invalid, aiopsv1.ReasonActionFailed, "spec.template (FieldValueInvalid)", false},
		"invalid, bare":   {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", deployments, "", "bad", 0, false), aiopsv1.ReasonActionFailed, "due to an error in our request", false},
		"wrapped":         {fmt.Errorf("write: %w", apierrors.NewNotFound(deployments, "web")), aiopsv1.ReasonTargetNotFound, "", false},
		"bad request":     {apierrors.NewBadRequest(secret), aiopsv1.ReasonActionFailed, "BadRequest", false},
		"unauthorized":    {apierrors.NewUnauthorized("who?"), "", "", false},
		"conflict":        {apierrors.NewConflict(deployments, "web", errors.New("changed")), "", "", false},
		"throttled":       {apierrors.NewTooManyRequests("later", 1), "", "", false},
		"internal":        {apierrors.NewInternalError(errors.New("boom")), "", "", false},
		"unavailable":     {apierrors.NewServiceUnavailable("later"), "", "", false},
		"timeout":         {apierrors.NewTimeoutError("slow", 1), "", "", false},
		"no connection":   {errors.New("connection refused"), "", "", false},
		"context is over": {context.DeadlineExceeded, "", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := stateOf("Deployment")
			refusal := refusalOf(test.err, "patch deployments.apps", &state)
			if test.reason == "" {
				if refusal != nil {
					t.Errorf("refusalOf: %+v, want none: the order is to be tried again", refusal)
				}
				return
			}
			checkRefusal(t, refusal, test.reason, test.message, test.wait)
			if strings.Contains(refusal.Message, secret) {
				t.Errorf("the message holds what was refused: %s", refusal.Message)
			}
		})
	}
}

func TestEvictRefusal(t *testing.T) {
	budget := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	budget.ErrStatus.Details.Causes = append(budget.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget web needs 2 healthy pods and has 1 currently",
	})
	several := apierrors.FromObject(&metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
	})
	const denial = `User "x" cannot create resource "pods/eviction"`
	noRight := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-1", fmt.Errorf("%s", denial))
	tests := map[string]struct {
		err    error
		reason string
		wait   bool
	}{
		"budget":            {budget, aiopsv1.ReasonBlockedByDisruptionBudget, true},
		"several budgets":   {several, aiopsv1.ReasonBlockedByDisruptionBudget, false},
		"throttled":         {apierrors.NewTooManyRequests("later", 1), "", false},
		"another 500":       {apierrors.NewInternalError(errors.New("boom")), "", false},
		"missing privilege": {noRight, aiopsv1.ReasonForbidden, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := broken("web-1", 0)
			got := NewEvict(nil, nil).refusal(test.err, Request{Target: stateOf("Deployment")}, pod.Name)
			if test.reason == "" {
				if got != nil {
					t.Errorf("refusal: %+v, want none: the order is to be tried again", got)
				}
				return
			}
			checkRefusal(t, got, test.reason, "", test.wait)
		})
	}
}
