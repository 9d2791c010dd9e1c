package lifecycle_test

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// inventory returns every object of the cluster that somebody put there, as "resource namespace/name": of all kinds that can be
// listed, custom ones too. Left out is what comes and goes by itself: events, and what the cluster's own programs hold.
func inventory(ctx context.Context) []string {
	GinkgoHelper()
	found, err := discovery.NewDiscoveryClientForConfig(kubernetes.Config())
	Expect(err).NotTo(HaveOccurred())
	objects, err := metadata.NewForConfig(kubernetes.Config())
	Expect(err).NotTo(HaveOccurred())
	lists, err := found.ServerPreferredResources()
	Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		Expect(err).NotTo(HaveOccurred())
		for i := range list.APIResources {
			if resource := &list.APIResources[i]; slices.Contains(resource.Verbs, "list") && !passing(version.Group, resource.Name) {
				out = append(out, namesOf(ctx, objects, version.WithResource(resource.Name))...)
			}
		}
	}
	slices.Sort(out)
	return out
}

// passing resources hold no objects of their own, or such that come and go by themselves.
func passing(group, resource string) bool {
	return resource == "events" || resource == "componentstatuses" || group == "metrics.k8s.io"
}

func namesOf(ctx context.Context, objects metadata.Interface, resource schema.GroupVersionResource) []string {
	GinkgoHelper()
	list, err := objects.Resource(resource).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred(), resource.String())
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
	return out
}

// added returns what is in after and not in before.
func added(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(after), func(name string) bool { return slices.Contains(before, name) })
}
