# The two commands a newcomer needs are `make demo` and `make test`; `make help` lists the rest.
# Nothing is downloaded but Go modules: every tool is built from hack/tools, pinned there, into a cache
# outside the tree. One is an exception: `bundle` downloads operator-sdk where it is not installed.

# ---- What may be set from outside -------------------------------------------------------------------

# Version of the operator, without the leading v.
VERSION ?= 0.1.0
# Repository of the images, without a tag.
IMAGE_TAG_BASE ?= example.com/aiops-operator
# Operator's image for `deploy`, `build-installer`, `chart`, `bundle` and `docker-*`, with a tag or a digest. `image` and `image-push` name
# theirs by IMAGE_TAG_BASE and VERSION alone.
IMG ?= $(IMAGE_TAG_BASE):v$(VERSION)
# config/network-policy is part of what `deploy` and `build-installer` install unless this is false, and of the bundle if this is
# true: OperatorHub takes no bundle with network policies.
NETWORK_POLICIES ?=
# true adds config/prometheus to all three: for clusters with the Prometheus operator.
MONITORING ?=
# Channels of the bundle, and the one among them that is offered first.
CHANNELS ?= candidate,fast,stable
DEFAULT_CHANNEL ?= stable
# Image of the bundle.
BUNDLE_IMG ?= $(IMAGE_TAG_BASE)-bundle:v$(VERSION)
# Image of the catalog. The tag moves: a new version is seen where the catalog is polled.
CATALOG_IMG ?= $(IMAGE_TAG_BASE)-catalog:latest
# Image of the custom scorecard tests.
SCORECARD_IMG ?= $(IMAGE_TAG_BASE)-scorecard:v$(VERSION)
# Path of opm for `catalog`. Without one, that of PATH if its version fits, else it is built from its Go modules.
OPM ?=
# Images that `image` and `image-push` make: operator, scorecard, bundle, catalog.
IMAGES ?= operator
# File of the authorities, in PEM, that the programs in those images trust: for `image` this machine's, for `image-push` it must be said.
CERTIFICATES ?=
# true pins every image of the bundle to the digest that it has in its registry now.
USE_IMAGE_DIGESTS ?=
# Path of operator-sdk. Without one, that of PATH, else the release OPERATOR_SDK_VERSION is downloaded.
OPERATOR_SDK ?=
OPERATOR_SDK_VERSION ?= v1.42.3
# How long `fuzz` runs each of its targets.
FUZZTIME ?= 60s
# Statement coverage, in percent, below which `cover` fails.
COVERAGE ?= 98.0
# Flags of go test for `integration`: packages share the machine, so one after another, and never from the cache.
INTEGRATION_FLAGS ?= -timeout 60m -p 1 -count=1
# Flags of `test-skew`, and packages to run instead: --kubernetes 1.34,1.35 ./test/helm.
SKEW_FLAGS ?=
# Flags of the operator for `run`.
ARGS ?= --leader-elect=false
# Folder of everything that is built once and kept: this project's tools, and the Kubernetes of test/cluster.
AIOPS_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/aiops-operator
export AIOPS_CACHE

GO ?= go
KUBECTL ?= kubectl
CONTAINER_TOOL ?= docker
PLATFORMS ?= linux/arm64,linux/amd64

# ---- Derived ----------------------------------------------------------------------------------------

LDFLAGS := -s -w -X main.version=v$(VERSION)
GO_BUILD := CGO_ENABLED=0 $(GO) build -trimpath

# Images are dated by the commit, so that the same commit gives the same digests, and say which one it was: that of a changed tree
# ends in -dirty.
MAKE_IMAGES = revision=$$(git rev-parse HEAD) && changes=$$(git status --porcelain) && committed=$$(git log -1 --format=%ct) && \
	SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$committed}" $(GO) run ./hack/image -version "$(VERSION)" -repository "$(IMAGE_TAG_BASE)" \
	-platforms "$(PLATFORMS)" -certificates "$(CERTIFICATES)" -revision "$$revision$${changes:+-dirty}"

BUILDX = $(CONTAINER_TOOL) buildx build --push --platform=$(PLATFORMS) --sbom=true --provenance=mode=max --build-arg VERSION=$(VERSION)

# The tools' folder is named after everything that decides what is in it, so that two checkouts with the same
# pins share it and a changed pin never meets an old binary.
TOOLS_MODULE := hack/tools
TOOLS_KEY := $(shell cd $(TOOLS_MODULE) && { cat go.mod go.sum golangci/main.go; $(GO) env GOVERSION GOOS GOARCH; } | git hash-object --stdin | cut -c 1-16)
TOOLS := $(AIOPS_CACHE)/tools/$(TOOLS_KEY)
CONTROLLER_GEN := $(TOOLS)/controller-gen
KUSTOMIZE := $(TOOLS)/kustomize
GOLANGCI_LINT := $(TOOLS)/golangci-lint
INSTALLED_OPERATOR_SDK := $(shell command -v "$(or $(OPERATOR_SDK),operator-sdk)")
ifneq ($(OPERATOR_SDK),)
ifeq ($(INSTALLED_OPERATOR_SDK),)
$(error OPERATOR_SDK=$(OPERATOR_SDK) is no program)
endif
endif
override OPERATOR_SDK := $(or $(INSTALLED_OPERATOR_SDK),$(AIOPS_CACHE)/operator-sdk-$(OPERATOR_SDK_VERSION)/operator-sdk)

# Parts of config that stand beside config/default, and those beside config/manifests.
MONITORING_PART := $(if $(filter true,$(MONITORING)),prometheus)
DEFAULT_PARTS := $(if $(filter false,$(NETWORK_POLICIES)),,network-policy) $(MONITORING_PART)
BUNDLE_PARTS := $(if $(filter true,$(NETWORK_POLICIES)),network-policy) $(MONITORING_PART)
BUNDLE_CSV := bundle/manifests/aiops-operator.clusterserviceversion.yaml
# Newest Kubernetes that the bundle is validated for.
KUBERNETES_VERSION := 1.37

# The folders of config for an overlay: the named one and those parts.
comma := ,
folders = ../../config/$(1)$(foreach part,$(2),$(comma) ../../config/$(part))

# What makes kustomize put the image $(2) in the place of $(1). A colon before the last one belongs to a registry's port.
tag_or_digest = $(lastword $(subst $(if $(findstring @,$(1)),@,:), ,$(1)))
replacement = {name: $(1), newName: "$(patsubst %@$(call tag_or_digest,$(2)),%,$(patsubst %:$(call tag_or_digest,$(2)),%,$(2)))", \
	$(if $(findstring @,$(2)),digest,newTag): "$(call tag_or_digest,$(2))"}

# What `check-version` and `check-IMG` ask for, as extended regular expressions.
VERSION_FORM := (0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?
IMAGE_FORM := ([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}|@sha256:[0-9a-f]{64})

# What `generate`, `manifests`, `build-installer` and `chart` write, and `bundle` where operator-sdk is at hand (where it is not,
# a test compares the bundle with its sources).
GENERATED := api/v1/zz_generated.deepcopy.go config/crd/bases config/rbac/role.yaml dist/install.yaml dist/chart \
	$(if $(INSTALLED_OPERATOR_SDK),bundle bundle.Dockerfile config/manifests/bases)
# Folders with Go code that people write.
GO_FOLDERS := $(wildcard api cmd internal hack test)
# Modules of this repository: the root, the tools, the programs of the test cluster.
MODULES = $(patsubst %/go.mod,%,$(shell git ls-files --cached --others --exclude-standard go.mod '*/go.mod' | sed 's,^go.mod,./go.mod,'))
# One "package:target" per fuzz test.
FUZZ_TARGETS = $(shell grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' $(GO_FOLDERS) | sed 's,/[^/]*:func ,:,' | sort -u)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

##@ General

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

##@ See it

.PHONY: demo
demo: ## Watch it work: a cluster, the operator and three scenes. KEEP=1 leaves the cluster running.
	$(GO) run ./test/demo

.PHONY: cluster-up
cluster-up: ## Start a Kubernetes control plane on this machine and write its kubeconfig.
	$(GO) run ./test/cluster/cmd/cluster up

.PHONY: cluster-down
cluster-down: ## End exactly what cluster-up started.
	$(GO) run ./test/cluster/cmd/cluster down

##@ Develop

.PHONY: build
build: ## Build the operator into bin/manager.
	$(GO_BUILD) -ldflags "$(LDFLAGS)" -o bin/manager ./cmd

.PHONY: run
run: ## Run the operator here against the cluster that KUBECONFIG names, where no other one runs. ARGS are its flags.
	$(GO) run -ldflags "$(LDFLAGS)" ./cmd $(ARGS)

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate the API types' deep copies.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: manifests
manifests: $(CONTROLLER_GEN) ## Generate the CRD and the operator's ClusterRole from markers in the code.
	$(CONTROLLER_GEN) rbac:roleName=manager-role crd paths=./api/... paths=./internal/... output:crd:artifacts:config=config/crd/bases

.PHONY: fmt
fmt: ## Format the Go code.
	gofmt -s -w $(GO_FOLDERS)

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Check the Go code and the API's conventions.
	$(GOLANGCI_LINT) run

##@ Test

.PHONY: test
test: unit integration ## Run the unit and integration tests.

.PHONY: unit
unit: ## Run the unit tests.
	$(GO) test ./api/... ./internal/... ./cmd/... ./hack/...

.PHONY: integration
integration: ## Run the tests against a real Kubernetes control plane (built once, about 11 minutes).
	$(GO) test $(INTEGRATION_FLAGS) $$($(GO) list ./test/... | grep -v '/test/performance')

.PHONY: rights
rights: ## Take away every right of the bundle in turn, and show what users then miss (about 15 minutes).
	AIOPS_RIGHTS=each $(GO) test ./test/lifecycle -count=1 -timeout 60m -v -ginkgo.focus 'The rights that the bundle asks for'

.PHONY: test-skew
test-skew: ## Run the integration and lifecycle tests on each Kubernetes that is supported (each is built once, about 10 minutes).
	$(GO) run ./test/skew $(SKEW_FLAGS)

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (60s).
	@set -e; for target in $(FUZZ_TARGETS); do \
		echo "$$target for $(FUZZTIME)"; \
		$(GO) test "./$${target%%:*}" -run '^$$' -fuzz "^$${target##*:}\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x; \
	done

.PHONY: cover
cover: ## Measure the statement coverage of internal/runbook; fail below COVERAGE (98 %).
	$(GO) test -coverprofile=cover.out ./internal/runbook
	@$(GO) tool cover -func=cover.out | awk '$$3 != "100.0%" {print} \
		/^total:/ {got = $$3 + 0} END {if (got < $(COVERAGE)) {print "coverage is below $(COVERAGE)%"; exit 1}}'

.PHONY: mutate
mutate: ## Change each comparison of internal/runbook in turn: its tests must notice every one.
	$(GO) run ./test/mutate

.PHONY: bench
bench: ## Measure the time from breach to action, cold start, memory and API requests.
	$(GO) run ./test/performance

.PHONY: verify
verify: verify-generated verify-modules verify-dependencies verify-format verify-links lint ## Check generated files, modules, format, lint and links.

# The copy stands in a folder that Go does not look into.
.PHONY: verify-generated
verify-generated:
	@rm -rf bin/.verify && mkdir -p bin/.verify && tar cf - $(GENERATED) | tar xf - -C bin/.verify
	@$(MAKE) --no-print-directory generate manifests build-installer chart $(if $(INSTALLED_OPERATOR_SDK),bundle)
	@for path in $(GENERATED); do diff -ru "bin/.verify/$$path" "$$path" || failed=1; done; \
		test -z "$$failed" || { echo "Generated files were out of date: commit them as they are now."; exit 1; }

.PHONY: verify-modules
verify-modules:
	@set -e; for module in $(MODULES); do echo "go mod tidy -diff in $$module"; (cd "$$module" && $(GO) mod tidy -diff); done

.PHONY: verify-dependencies
verify-dependencies:
	@unexplained=$$($(GO) list -m -f '{{if not (or .Main .Indirect)}}{{.Path}}{{end}}' all | while read -r module; do \
		grep -q -F "| \`$$module\` |" docs/dependencies.md || echo "$$module"; done); \
		test -z "$$unexplained" || { echo "docs/dependencies.md does not say why there is:" $$unexplained; exit 1; }

.PHONY: verify-format
verify-format:
	@unformatted=$$(gofmt -s -l $(GO_FOLDERS)); test -z "$$unformatted" || { echo "Not formatted (make fmt): $$unformatted"; exit 1; }

.PHONY: verify-links
verify-links:
	$(GO) run ./hack/linkcheck

# A version or an image that is none of these would end up in manifests that nobody can install.
.PHONY: check-version check-IMG check-SCORECARD_IMG check-unnamed
check-version:
	@printf '%s\n' "$(VERSION)" | grep -Eqx '$(VERSION_FORM)' || \
		{ echo "VERSION=$(VERSION): VERSION is MAJOR.MINOR.PATCH (with an optional -prerelease) without v" >&2; exit 1; }

check-IMG check-SCORECARD_IMG: check-%: check-version
	@printf '%s\n' "$($*)" | grep -Eqx '$(IMAGE_FORM)' || { case "$($*)" in \
		*@*) echo "$*=$($*) is not NAME@sha256:DIGEST: a digest has 64 characters and goes without a tag" >&2 ;; \
		*) echo "$*=$($*) names no image with a tag: write registry.example.com/team/aiops-operator$(if $(filter SCORECARD%,$*),-scorecard):v0.3.0" >&2 ;; \
		esac; exit 1; }

check-unnamed: check-version
	@test "$(IMG)" = "$(IMAGE_TAG_BASE):v$(VERSION)" || \
		{ echo "IMG=$(IMG) would be ignored: image and image-push use IMAGE_TAG_BASE and VERSION" >&2; exit 1; }

##@ Deploy

.PHONY: install
install: manifests $(KUSTOMIZE) ## Install the CRD into the cluster that KUBECONFIG names.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply -f -

.PHONY: uninstall
uninstall: $(KUSTOMIZE) ## Remove the CRD, and with it every AITask, from the cluster.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: bin/deploy/kustomization.yaml manifests $(KUSTOMIZE) ## Install the CRD and the operator (image IMG) into the cluster.
	$(KUSTOMIZE) build bin/deploy | $(KUBECTL) apply -f -

.PHONY: undeploy
undeploy: bin/deploy/kustomization.yaml $(KUSTOMIZE) ## Remove everything that deploy installed.
	$(KUSTOMIZE) build bin/deploy | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: docker-build
docker-build: check-IMG ## Build the operator's image IMG.
	$(CONTAINER_TOOL) build --build-arg VERSION=$(VERSION) -t "$(IMG)" .

.PHONY: docker-push
docker-push: check-IMG ## Push the operator's image IMG.
	$(CONTAINER_TOOL) push "$(IMG)"

.PHONY: docker-buildx
docker-buildx: check-IMG ## Build and push the image IMG for all PLATFORMS.
	$(BUILDX) -t "$(IMG)" .

.PHONY: image
image: check-unnamed ## Make IMAGES (operator, scorecard, bundle, catalog) as archives in bin/, without Docker: IMAGE_TAG_BASE, VERSION.
	$(MAKE_IMAGES) $(IMAGES)

.PHONY: image-push
image-push: check-unnamed ## Make IMAGES and push them, without Docker: IMAGE_TAG_BASE, VERSION, CERTIFICATES.
	$(MAKE_IMAGES) -push $(IMAGES)

.PHONY: build-installer
build-installer: bin/deploy/kustomization.yaml manifests $(KUSTOMIZE) ## Write dist/install.yaml: the CRD and the operator (image IMG) in one file.
	@mkdir -p dist
	$(KUSTOMIZE) build bin/deploy > dist/install.yaml

.PHONY: chart
chart: check-IMG manifests $(KUSTOMIZE) ## Write dist/chart: the Helm chart, with the version VERSION and the image IMG.
	$(GO) run ./hack/chart -kustomize $(KUSTOMIZE) -version "$(VERSION)" -image "$(IMG)" -output dist/chart

# An overlay of its own sets the image, so that deploying another one changes no file under config/.
.PHONY: bin/deploy/kustomization.yaml
bin/deploy/kustomization.yaml: check-IMG
	@mkdir -p $(@D)
	@printf 'resources: [%s]\nimages: [%s]\n' "$(call folders,default,$(DEFAULT_PARTS))" '$(call replacement,controller,$(IMG))' > $@

##@ Operator Lifecycle Manager

.PHONY: bundle
bundle: bin/bundle/kustomization.yaml manifests $(KUSTOMIZE) $(OPERATOR_SDK) ## Write the bundle: VERSION, CHANNELS, DEFAULT_CHANNEL, IMG, USE_IMAGE_DIGESTS=true.
	$(OPERATOR_SDK) generate kustomize manifests -q --interactive=false
	$(KUSTOMIZE) build bin/bundle > bin/bundle/manifests.yaml
	@rm -f bin/bundle/before.yaml; test ! -f $(BUNDLE_CSV) || cp $(BUNDLE_CSV) bin/bundle/before.yaml
	@rm -rf bin/bundle/before && { test ! -d bundle || mv bundle bin/bundle/before; }
	cat bin/bundle/manifests.yaml | $(OPERATOR_SDK) generate bundle -q --overwrite --version $(VERSION) \
		--channels $(CHANNELS) --default-channel $(DEFAULT_CHANNEL) $(if $(filter true,$(USE_IMAGE_DIGESTS)),--use-image-digests) && \
		config/manifests/finish-bundle.sh $(BUNDLE_CSV) bin/bundle/before.yaml "$(IMG)" || \
		{ rm -rf bundle; test ! -d bin/bundle/before || mv bin/bundle/before bundle; exit 1; }
	@$(MAKE) --no-print-directory bundle-validate

.PHONY: bundle-validate
bundle-validate: $(OPERATOR_SDK) ## Validate the bundle as operator-sdk and OperatorHub do.
	$(OPERATOR_SDK) bundle validate ./bundle --select-optional suite=operatorframework --optional-values=k8s-version=$(KUBERNETES_VERSION)

.PHONY: bundle-build
bundle-build: ## Build the bundle's image BUNDLE_IMG.
	$(CONTAINER_TOOL) build -f bundle.Dockerfile -t $(BUNDLE_IMG) .

.PHONY: bundle-push
bundle-push: ## Push the bundle's image BUNDLE_IMG.
	$(CONTAINER_TOOL) push $(BUNDLE_IMG)

.PHONY: scorecard-build
scorecard-build: ## Build the image of the custom scorecard tests.
	$(CONTAINER_TOOL) build --target scorecard -t $(SCORECARD_IMG) .

.PHONY: scorecard-push
scorecard-push: ## Push the image of the custom scorecard tests.
	$(CONTAINER_TOOL) push $(SCORECARD_IMG)

.PHONY: scorecard-buildx
scorecard-buildx: ## Build and push the image of the custom scorecard tests for all PLATFORMS.
	$(BUILDX) --target scorecard -t $(SCORECARD_IMG) .

# The template names the project's own images; another IMAGE_TAG_BASE takes their place.
.PHONY: catalog
catalog: ## Write the catalog from its template: IMAGE_TAG_BASE, BUNDLE_IMG, OPM.
	@mkdir -p bin/catalog
	@sed 's,example.com/aiops-operator-bundle,$(IMAGE_TAG_BASE)-bundle,' catalog/aiops-operator.semver.yaml > bin/catalog/template.yaml
	$(GO) run ./hack/catalog $(if $(OPM),-opm $(OPM)) -template bin/catalog/template.yaml -bundle-image $(BUNDLE_IMG)

.PHONY: catalog-build
catalog-build: ## Build the catalog's image CATALOG_IMG.
	$(CONTAINER_TOOL) build -f catalog.Dockerfile -t $(CATALOG_IMG) .

.PHONY: catalog-push
catalog-push: ## Push the catalog's image CATALOG_IMG.
	$(CONTAINER_TOOL) push $(CATALOG_IMG)

# With images by digest nothing has to be fetched by a name that may change: only then it fits a mirror.
.PHONY: bin/bundle/kustomization.yaml
bin/bundle/kustomization.yaml: check-IMG check-SCORECARD_IMG
	@mkdir -p $(@D)
	@printf 'images: [{kind: Configuration, path: stages/tests/image}]\n' > $(@D)/images.yaml
	@{ printf 'resources: [%s]\nconfigurations: [images.yaml]\nimages:\n' "$(call folders,manifests,$(BUNDLE_PARTS))"; \
		printf -- '- %s\n' '$(call replacement,controller,$(IMG))' '$(call replacement,example.com/aiops-operator-scorecard,$(SCORECARD_IMG))'; \
		printf 'patches:\n- target: {kind: ClusterServiceVersion}\n  patch: |-\n'; \
		printf '    - {op: replace, path: /metadata/annotations/containerImage, value: "%s"}\n' "$(IMG)"; \
		printf '    - {op: replace, path: /metadata/annotations/features.operators.openshift.io~1disconnected, value: "%s"}\n' \
			"$(if $(filter true,$(USE_IMAGE_DIGESTS)),true,false)"; } > $@

##@ Tools

.PHONY: tools
tools: $(CONTROLLER_GEN) $(KUSTOMIZE) $(GOLANGCI_LINT) ## Build the pinned tools (golangci-lint takes some minutes, once).

$(CONTROLLER_GEN):
	cd $(TOOLS_MODULE) && $(GO_BUILD) -ldflags "-s -w" -o $@ sigs.k8s.io/controller-tools/cmd/controller-gen

$(KUSTOMIZE):
	cd $(TOOLS_MODULE) && $(GO_BUILD) -ldflags "-s -w" -o $@ sigs.k8s.io/kustomize/kustomize/v5

$(GOLANGCI_LINT):
	@echo "Building golangci-lint from its modules: once, about 3 minutes on two cores."
	cd $(TOOLS_MODULE) && $(GO_BUILD) -ldflags "-s -w -X main.version=$$($(GO) list -m -f '{{slice .Version 1}}' github.com/golangci/golangci-lint/v2)" -o $@ ./golangci

$(AIOPS_CACHE)/operator-sdk-$(OPERATOR_SDK_VERSION)/operator-sdk:
	@mkdir -p $(@D)
	cd $(@D) && name="operator-sdk_$$($(GO) env GOOS)_$$($(GO) env GOARCH)" && \
		from=https://github.com/operator-framework/operator-sdk/releases/download/$(OPERATOR_SDK_VERSION) && \
		curl -fsSLO "$$from/$$name" && curl -fsSLO "$$from/checksums.txt" && \
		grep " $$name\$$" checksums.txt | $$(command -v sha256sum || echo shasum -a 256) -c - && chmod +x "$$name" && mv "$$name" operator-sdk
