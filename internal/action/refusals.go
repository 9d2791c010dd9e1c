package action

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// maxQuoted bounds what is quoted from an answer of the API server, in bytes.
const maxQuoted = 256

func refuse(reason, format string, values ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, values...)}
}

// refuseDeleting: what is being deleted is past remedy.
func refuseDeleting(state *target.State) *Refusal {
	if state.Deleting {
		return refuse(aiopsv1.ReasonTargetDeleting, "%s is being deleted", state.Reference)
	}
	return nil
}

// refuseTemplate refuses a change to the pod template of a workload that would not roll it out.
func refuseTemplate(state *target.State) *Refusal {
	switch {
	case state.Deleting:
		return refuseDeleting(state)
	case state.Paused:
		return refuse(aiopsv1.ReasonTargetPaused, "%s is paused, so a new pod template would not be rolled out. Set spec.paused to false, or use an Evict step",
			state.Reference)
	case state.OnDelete:
		return refuse(aiopsv1.ReasonUnsupported, "%s has the update strategy OnDelete, so a new pod template changes no pod. Use an Evict step, or the strategy RollingUpdate",
			state.Reference)
	case state.HeldBack:
		return refuse(aiopsv1.ReasonUnsupported, "%s has an update partition that holds back every pod, so a new pod template changes none. Lower "+
			"spec.updateStrategy.rollingUpdate.partition below its %d replicas, or use an Evict step", state.Reference, state.Replicas)
	}
	return nil
}

// refusalOf turns an answer of the API server that trying again cannot change into a refusal. It returns nil for every other error: whether
// something was done is then unknown or nothing was, and the same order is to be tried again.
func refusalOf(err error, doing string, state *target.State) *Refusal {
	switch {
	case apierrors.IsNotFound(err):
		return refuse(aiopsv1.ReasonTargetNotFound, "%s does not exist any more", state.Reference)
	case apierrors.IsForbidden(err):
		return forbidden(err, doing, state)
	case apierrors.IsInvalid(err):
		return refuse(aiopsv1.ReasonActionFailed, "the API server refused the change (%s): %s", doing, invalidFields(err))
	case apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err), apierrors.IsGone(err),
		apierrors.IsRequestEntityTooLargeError(err), apierrors.IsNotAcceptable(err), apierrors.IsUnsupportedMediaType(err):
		return refuse(aiopsv1.ReasonActionFailed, "the API server refused to %s: %s", doing, apierrors.ReasonForError(err))
	}
	return nil
}

// refusedOr sorts an error: a refusal where trying again cannot change the answer, else the error itself.
func refusedOr(err error, doing string, state *target.State) (*Refusal, error) {
	if refusal := refusalOf(err, doing, state); refusal != nil {
		return refusal, nil
	}
	return nil, err
}

// forbidden tells a missing right from a quota and from an admission rule: each is somebody else's to mend.
func forbidden(err error, doing string, state *target.State) *Refusal {
	text := err.Error()
	switch {
	case strings.Contains(text, "exceeded quota"):
		refusal := refuse(aiopsv1.ReasonQuotaExceeded, "a ResourceQuota of namespace %s does not let the operator %s: %s",
			state.Reference.Namespace, doing, quote(text))
		refusal.Wait = true
		return refusal
	case strings.Contains(text, " cannot ") && strings.Contains(text, "User \""):
		return refuse(aiopsv1.ReasonForbidden, "the operator has no right to %s in namespace %s. Grant it, or use another step",
			doing, state.Reference.Namespace)
	}
	return refuse(aiopsv1.ReasonForbidden, "an admission rule does not let the operator %s: %s", doing, quote(text))
}

// invalidFields names the fields that were found invalid, without their values: these may hold what is nobody's business.
func invalidFields(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return quote(err.Error())
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, describeCause(cause))
	}
	return quote(strings.Join(fields, ", "))
}

// describeCause names a field and its fault; the cause that an admission policy gives has no field, but the policy's own message.
func describeCause(cause metav1.StatusCause) string {
	if cause.Field == "" {
		return cause.Message
	}
	return fmt.Sprintf("%s (%s)", cause.Field, cause.Type)
}

// quote bounds a text from outside.
func quote(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuoted], "") + "..."
}

// revisionsOf names the resource of a workload's revisions as RBAC does.
func revisionsOf(reference target.Reference) string {
	if reference.Kind == "Deployment" {
		return "replicasets.apps"
	}
	return "controllerrevisions.apps"
}

// resourceOf names the resource of a workload as RBAC does.
func resourceOf(reference target.Reference) string {
	return strings.ToLower(reference.Kind) + "s.apps"
}
