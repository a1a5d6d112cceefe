# SPDX-License-Identifier: Apache-2.0
# One image for webhook and agent: Node.js, Berth as plain JavaScript, the CNI plugin; no shell, no package manager.
#   docker buildx build --platform linux/amd64,linux/arm64 -t REGISTRY/berth:VERSION --build-arg VERSION=VERSION .
# Nothing is run under emulation: whatever runs, runs on the machine that builds. Bases are pinned by tag; whoever must
# have the same bytes again gives them by digest:
#   NODE_IMAGE   Debian with Node.js 24 and npm; its node goes into the image, the rest builds
#   BASE_IMAGE   what Node.js needs of an operating system: glibc, libstdc++, the user 65532
# `ENGINE=docker make image` builds this into the archive that `make image` makes without an engine.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim
ARG BASE_IMAGE=gcr.io/distroless/cc-debian12:nonroot

FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS build
ARG TARGETARCH
WORKDIR /src
COPY ipam-plugin/client/ ipam-plugin/client/
COPY package.json package-lock.json .npmrc ./
# The plugin is linked statically with musl, since nothing is known of the host that it will run on.
RUN set -eu; \
    here=$(dpkg --print-architecture); \
    target=${TARGETARCH:-$here}; \
    case $target in \
      amd64) cpu=x86_64 ;; \
      arm64) cpu=aarch64 ;; \
      *) echo "no CNI plugin is built for $target" >&2; exit 1 ;; \
    esac; \
    [ "$target" = "$here" ] || dpkg --add-architecture "$target"; \
    apt-get update -qq; \
    apt-get install -y -qq --no-install-recommends make "gcc-$(echo $cpu | tr _ -)-linux-gnu" "musl-dev:$target"; \
    make -C ipam-plugin/client OUT=/src/build/berth CC="$cpu-linux-musl-gcc"
# The lock holds versions and digests; not `npm ci`, which also wants builds of tools for every platform to be in it.
# A registry's configuration may be given as the secret `npmrc`.
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc npm install --no-save --ignore-scripts --no-progress --loglevel=error
COPY . .
RUN bash scripts/image-tree.sh /out/opt/berth build/berth && chmod -R u=rwX,go=rX /out

FROM ${NODE_IMAGE} AS node

FROM ${BASE_IMAGE}
ARG VERSION=unknown
LABEL org.opencontainers.image.title="berth" \
      org.opencontainers.image.description="Fixed IP addresses for Kubernetes pods: webhook and node agent" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=build /out/ /
ENV PATH=/usr/local/bin NODE_ENV=production BERTH_CNI_BINARY=/opt/berth/bin/berth
WORKDIR /opt/berth
USER 65532:65532
EXPOSE 8443
# Without the flags V8 lets a heap grow by half of the host's memory before it collects. The agent's command, as root:
# node --max-semi-space-size=1 --optimize-for-size --no-opt ipam-plugin/agent/main.js
CMD ["node", "--max-semi-space-size=4", "--optimize-for-size", "webhook/main.js"]
