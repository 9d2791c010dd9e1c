package target

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// RevisionAnnotation is what the Deployment controller numbers a ReplicaSet by, and the Deployment with the number in force.
const RevisionAnnotation = "deployment.kubernetes.io/revision"

// What a cached workload keeps of the parts that its transform drops. These annotations exist in the caches alone.
const (
	templateHashKey      = "cache.aiops.example.com/template-hash"
	templateTimeKey      = "cache.aiops.example.com/template-time"
	templateAppliedByKey = "cache.aiops.example.com/template-applied-by"
	replicasAppliedByKey = "cache.aiops.example.com/replicas-applied-by"
	annotatedKey         = "cache.aiops.example.com/annotated"
	templateAnnotatedKey = "cache.aiops.example.com/template-annotated"
)

// maxFutureStamp is how far ahead of our clock a stamp may be and still count: the clocks of two replicas differ that much.
const maxFutureStamp = time.Minute

// TemplateHash identifies the content of a pod template, pod-template-hash included. 32 hexadecimal characters.
func TemplateHash(template *corev1.PodTemplateSpec) string {
	content, err := json.Marshal(template)
	if err != nil {
		return "" // a template that came as JSON can be written as JSON
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// reduceWorkload returns the metadata that a cached workload keeps, and in annotations the gist of what it does not. A workload that was
// reduced before has no template any more: the API server admits none without a container.
func reduceWorkload(in *metav1.ObjectMeta, template *corev1.PodTemplateSpec) metav1.ObjectMeta {
	out := reduceIdentity(in)
	out.Annotations = only(in.Annotations, RevisionAnnotation, aiopsv1.LastActionTimeAnnotation, aiopsv1.LastOrderAnnotation)
	if out.Annotations == nil {
		out.Annotations = make(map[string]string, 4)
	}
	owners := ownersOf(in.ManagedFields)
	for key, value := range map[string]string{
		templateHashKey:      TemplateHash(template),
		templateAppliedByKey: owners.templateAppliedBy,
		replicasAppliedByKey: owners.replicasAppliedBy,
		annotatedKey:         presence(in.Annotations),
		templateAnnotatedKey: presence(template.Annotations),
	} {
		if value != "" {
			out.Annotations[key] = value
		}
	}
	if !owners.templateTime.IsZero() {
		out.Annotations[templateTimeKey] = owners.templateTime.UTC().Format(time.RFC3339)
	}
	return out
}

func presence(entries map[string]string) string {
	if len(entries) == 0 {
		return ""
	}
	return "true"
}

func isReduced(meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec) bool {
	return len(template.Spec.Containers) == 0 && meta.Annotations[templateHashKey] != ""
}

// workloadState reads what every kind keeps in its metadata.
func workloadState(reference Reference, meta *metav1.ObjectMeta, observedGeneration int64, now time.Time) State {
	state := State{
		Reference:         reference,
		UID:               meta.UID,
		Generation:        meta.Generation,
		Settled:           observedGeneration >= meta.Generation,
		Deleting:          meta.DeletionTimestamp != nil,
		TemplateHash:      meta.Annotations[templateHashKey],
		ReplicasAppliedBy: meta.Annotations[replicasAppliedByKey],
		TemplateAppliedBy: meta.Annotations[templateAppliedByKey],
		Annotated:         meta.Annotations[annotatedKey] != "",
		TemplateAnnotated: meta.Annotations[templateAnnotatedKey] != "",
		LastOrder:         meta.Annotations[aiopsv1.LastOrderAnnotation],
	}
	stamp := parseTime(meta.Annotations[aiopsv1.LastActionTimeAnnotation])
	if !stamp.After(now.Add(maxFutureStamp)) {
		state.LastActionTime = stamp
	}
	return state
}

// parseTime returns the zero time for a text that is no RFC 3339 time.
func parseTime(text string) time.Time {
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return parsed.UTC()
}

func reduceDeployment(in *appsv1.Deployment) *appsv1.Deployment {
	if isReduced(&in.ObjectMeta, &in.Spec.Template) {
		return in
	}
	out := &appsv1.Deployment{ObjectMeta: reduceWorkload(&in.ObjectMeta, &in.Spec.Template), Status: in.Status}
	out.Spec.Replicas = in.Spec.Replicas
	out.Spec.Paused = in.Spec.Paused
	out.Spec.ProgressDeadlineSeconds = in.Spec.ProgressDeadlineSeconds
	out.Status.Conditions = make([]appsv1.DeploymentCondition, len(in.Status.Conditions))
	for i, condition := range in.Status.Conditions {
		condition.Message = ""
		out.Status.Conditions[i] = condition
	}
	return out
}

func reduceStatefulSet(in *appsv1.StatefulSet) *appsv1.StatefulSet {
	if isReduced(&in.ObjectMeta, &in.Spec.Template) {
		return in
	}
	out := &appsv1.StatefulSet{ObjectMeta: reduceWorkload(&in.ObjectMeta, &in.Spec.Template), Status: in.Status}
	out.Spec.Replicas = in.Spec.Replicas
	out.Spec.UpdateStrategy = in.Spec.UpdateStrategy
	out.Spec.PodManagementPolicy = in.Spec.PodManagementPolicy
	out.Status.Conditions = make([]appsv1.StatefulSetCondition, len(in.Status.Conditions))
	for i, condition := range in.Status.Conditions {
		condition.Message = ""
		out.Status.Conditions[i] = condition
	}
	return out
}

func reduceDaemonSet(in *appsv1.DaemonSet) *appsv1.DaemonSet {
	if isReduced(&in.ObjectMeta, &in.Spec.Template) {
		return in
	}
	out := &appsv1.DaemonSet{ObjectMeta: reduceWorkload(&in.ObjectMeta, &in.Spec.Template), Status: in.Status}
	out.Spec.UpdateStrategy = in.Spec.UpdateStrategy
	out.Status.Conditions = make([]appsv1.DaemonSetCondition, len(in.Status.Conditions))
	for i, condition := range in.Status.Conditions {
		condition.Message = ""
		out.Status.Conditions[i] = condition
	}
	return out
}

// ImageOf returns a workload, as the API server answered with it, in the form in which an order records it. The revision stays empty:
// only the workload's controller knows it, and it may not have seen this generation yet.
func ImageOf(object client.Object) aiopsv1.TargetImage {
	image := aiopsv1.TargetImage{UID: string(object.GetUID()), Generation: object.GetGeneration()}
	switch object := object.(type) {
	case *appsv1.Deployment:
		image.Replicas = orOne(object.Spec.Replicas)
		image.TemplateHash = TemplateHash(&object.Spec.Template)
	case *appsv1.StatefulSet:
		image.Replicas = orOne(object.Spec.Replicas)
		image.TemplateHash = TemplateHash(&object.Spec.Template)
	case *appsv1.DaemonSet:
		image.Replicas = object.Status.DesiredNumberScheduled
		image.TemplateHash = TemplateHash(&object.Spec.Template)
	}
	return image
}

// HasTemplateAnnotations says whether a workload's pod template has annotations.
func HasTemplateAnnotations(object client.Object) bool {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return len(object.Spec.Template.Annotations) > 0
	case *appsv1.StatefulSet:
		return len(object.Spec.Template.Annotations) > 0
	case *appsv1.DaemonSet:
		return len(object.Spec.Template.Annotations) > 0
	}
	return false
}
