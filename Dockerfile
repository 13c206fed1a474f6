# The image of the node agent: two static programs and their licenses, nothing else.
#
#	docker buildx build --platform linux/amd64,linux/arm64 .
#
# builds everything. `make image` puts programs that it has built itself in the
# place of the stage "build" and needs neither network nor daemon.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
# Empty: what git describe says.
ARG VERSION
WORKDIR /src
COPY . .
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build licenses

FROM scratch
ARG VERSION=unknown
LABEL org.opencontainers.image.title="gdr-features" \
      org.opencontainers.image.description="GPUDirect RDMA labels for Kubernetes nodes, from /sys and /proc" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
COPY --from=build /src/bin/gdr-features /src/bin/gdr-features-agent /
COPY --from=build /src/LICENSE /src/bin/THIRD-PARTY-LICENSES /licenses/
USER 65532:65532
ENTRYPOINT ["/gdr-features"]
CMD ["run"]
