# syntax=docker/dockerfile:1
ARG GO_IMAGE=golang:1.26
ARG BASE_IMAGE=gcr.io/distroless/static:nonroot

# Go cross-compiles: the builder runs on the machine's own platform, whatever the target is.
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS builder
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=0.0.0
WORKDIR /src

# Modules change less often than code: a layer of their own.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download

COPY api/ api/
COPY cmd/ cmd/
COPY internal/ internal/
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags "-s -w -X main.version=v${VERSION}" -o /manager ./cmd

FROM ${BASE_IMAGE}
COPY --from=builder /manager /manager
COPY LICENSE /licenses/LICENSE
USER 65532:65532
ENTRYPOINT ["/manager"]
