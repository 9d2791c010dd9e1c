// Package cluster runs a real Kubernetes control plane on this machine for tests and demonstrations: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and nodes simulated by KWOK, optionally metrics-server and Prometheus, all built
// from Go modules and all listening on 127.0.0.1 only.
//
// Everything above the container runtime is real: TLS, RBAC, admission, ServiceAccount tokens, aggregation, controllers,
// scheduling. Below it pods are simulated, and behave badly on command; see [BehaviourAnnotation].
//
// What belongs here: building, starting, stopping and looking into the cluster. What does not: anything that knows the
// operator, its API or its manifests; tests install those themselves. The package never imports k8s.io/kubernetes: programs
// live in modules of their own: programs/, those whose names end in -program, and older control planes in kubernetes-1.x/.
package cluster
