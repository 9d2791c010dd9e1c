# syntax=docker/dockerfile:1
# The images to build on are named by tags that move, so that every build has the fixes of Go and of the certificates without a change
# here. Which ones a release was built on is in its provenance (make docker-buildx); to build on the same again, name their digests:
# --build-arg GO_IMAGE=golang@sha256:... --build-arg BASE_IMAGE=...
ARG GO_IMAGE=golang:1.26
# Static, non-root, with the certificates of public authorities.
ARG BASE_IMAGE=gcr.io/distroless/static:nonroot

# Go cross-compiles: the builder runs on the machine's own platform, whatever the target is.
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS modules
WORKDIR /src
# Modules change less often than code: a layer of their own.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download

FROM modules AS operator-builder
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=0.0.0
COPY api/ api/
COPY cmd/ cmd/
COPY internal/ internal/
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags "-s -w -X main.version=v${VERSION}" -o /manager ./cmd

FROM modules AS scorecard-builder
ARG TARGETOS
ARG TARGETARCH
COPY api/ api/
COPY test/ test/
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags "-s -w" -o /scorecard ./test/scorecard

# The custom scorecard tests: docker build --target scorecard.
FROM ${BASE_IMAGE} AS scorecard
COPY --from=scorecard-builder /scorecard /scorecard
COPY LICENSE /licenses/LICENSE
USER 65532:65532
ENTRYPOINT ["/scorecard"]

# The operator comes last: it is what docker build makes without a target.
FROM ${BASE_IMAGE} AS operator
COPY --from=operator-builder /manager /manager
COPY LICENSE /licenses/LICENSE
USER 65532:65532
ENTRYPOINT ["/manager"]
