package controller

// The operator's own rights: it reads workloads and does the closed set of built-in actions. It never writes an AITask's spec.
//
// +kubebuilder:rbac:groups=aiops.example.com,resources=aitasks,verbs=get;list;watch
// +kubebuilder:rbac:groups=aiops.example.com,resources=aitasks/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=replicasets;controllerrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list;watch
// +kubebuilder:rbac:groups=metrics.k8s.io,resources=pods,verbs=get;list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
