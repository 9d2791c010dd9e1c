package cluster_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podUsage asks the metrics API for the usage of the namespace's only pod, in cores and bytes.
func podUsage(ctx context.Context) func(g Gomega) map[string]float64 {
	return func(g Gomega) map[string]float64 {
		body, err := client.Discovery().RESTClient().Get().
			AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces/" + namespace + "/pods").DoRaw(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		var answer struct {
			Items []struct {
				Containers []struct {
					Usage map[string]resource.Quantity `json:"usage"`
				} `json:"containers"`
			} `json:"items"`
		}
		g.Expect(json.Unmarshal(body, &answer)).To(Succeed())
		g.Expect(answer.Items).To(HaveLen(1))
		g.Expect(answer.Items[0].Containers).To(HaveLen(1))
		usage := map[string]float64{}
		for name, quantity := range answer.Items[0].Containers[0].Usage {
			usage[name] = quantity.AsApproximateFloat64()
		}
		return usage
	}
}

// get returns the body of an answer, at most a megabyte.
func get(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return string(body), err
}
