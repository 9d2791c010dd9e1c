// Package v1 holds the AITask type of the group aiops.example.com: its fields, the rules that its schema carries, and the
// names of its conditions and reasons. It imports Kubernetes API types only; whatever judges, measures or acts lives elsewhere.
//
// +kubebuilder:object:generate=true
// +groupName=aiops.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every type in this package.
const GroupName = "aiops.example.com"

// GroupVersion returns the group and version of the types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: "v1"}
}

// AddToScheme registers the types of this package. It never fails for a scheme that does not know them yet.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &AITask{}, &AITaskList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
