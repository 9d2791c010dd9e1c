# The catalog with the program that serves it. opm's version is that of test/cluster/opm-program.
# To build on the same image again: --build-arg OPM_IMAGE=quay.io/operator-framework/opm@sha256:...
ARG OPM_IMAGE=quay.io/operator-framework/opm:v1.73.0

FROM ${OPM_IMAGE} AS builder
COPY catalog/aiops-operator /configs/aiops-operator
# What opm would compute at every start.
RUN ["/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-only"]

FROM ${OPM_IMAGE}
COPY --from=builder /configs /configs
COPY --from=builder /tmp/cache /tmp/cache
LABEL operators.operatorframework.io.index.configs.v1=/configs
ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]
