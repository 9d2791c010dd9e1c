package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Inventory returns every object of the cluster that somebody put there, sorted, as "resource namespace/name" or "resource
// name": of all kinds that can be listed, custom ones too. Left out is what comes and goes by itself: events, and what the
// cluster's own programs hold. It fails while discovery is incomplete, as it may be right after a kind or an API came or went.
func Inventory(ctx context.Context, config *rest.Config) ([]string, error) {
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("list the cluster's kinds: %w", err)
	}
	reader, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("list the cluster's objects: %w", err)
	}
	lists, err := kinds.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("list the cluster's kinds: %w", err)
	}
	var out []string
	for _, resource := range listable(lists) {
		names, err := namesOf(ctx, reader, resource)
		if err != nil {
			return nil, err
		}
		out = append(out, names...)
	}
	slices.Sort(out)
	return out, nil
}

// CompleteInventory returns the inventory as soon as all kinds can be listed, which takes a moment after one came or went.
func CompleteInventory(ctx context.Context, config *rest.Config) ([]string, error) {
	var out []string
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		out, last = Inventory(ctx, config)
		return last == nil, nil
	})
	if err != nil {
		return nil, errors.Join(err, last)
	}
	return out, nil
}

// AddedSince returns what is in the cluster now and was not in the inventory before. It fails as Inventory does.
func AddedSince(ctx context.Context, config *rest.Config, before []string) ([]string, error) {
	now, err := Inventory(ctx, config)
	return slices.DeleteFunc(now, func(name string) bool { return slices.Contains(before, name) }), err
}

// listable returns the resources that hold objects of their own which do not come and go by themselves.
func listable(lists []*metav1.APIResourceList) []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || version.Group == "metrics.k8s.io" {
			continue
		}
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			if slices.Contains(resource.Verbs, "list") && resource.Name != "events" && resource.Name != "componentstatuses" {
				out = append(out, version.WithResource(resource.Name))
			}
		}
	}
	return out
}

// namesOf returns the objects of a resource. Discovery still names a kind for a moment after it was removed, and its objects
// with it.
func namesOf(ctx context.Context, reader metadata.Interface, resource schema.GroupVersionResource) ([]string, error) {
	list, err := reader.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
	}
	var out []string
	for i := range list.Items {
		item := &list.Items[i]
		if strings.HasPrefix(item.Namespace, "kube-") {
			continue
		}
		name := item.Name
		if item.Namespace != "" {
			name = item.Namespace + "/" + name
		}
		out = append(out, resource.GroupResource().String()+" "+name)
	}
	return out, nil
}
