# SPDX-License-Identifier: Apache-2.0
# One image for webhook and agent: Node.js, Berth as plain JavaScript, the CNI plugin; no shell, no package manager.
#   docker buildx build --platform linux/amd64,linux/arm64 -t REGISTRY/berth:VERSION --build-arg VERSION=VERSION .
# Nothing is run under emulation: whatever runs, runs on the machine that builds. Nothing is taken that is not checked:
#   BASE_IMAGE   Debian, by digest; it builds, and nothing of it but three libraries goes into the image
#   Node.js      the package of package-lock.json, by its digest, as all packages (`npm ci`)
#   libraries, compiler  Debian's packages, by the digests of its signed lists
# `ENGINE=docker make image` builds this into the archive that `make image` makes without an engine; both have the same
# root file system, from scripts/image-system.sh and scripts/image-tree.sh. docs/releasing.md says how digests are renewed.
ARG BASE_IMAGE=docker.io/library/debian:bookworm-slim@sha256:96e378d7e6531ac9a15ad505478fcc2e69f371b10f5cdf87857c4b8188404716

FROM --platform=$BUILDPLATFORM ${BASE_IMAGE} AS build
ARG TARGETARCH
WORKDIR /src
# The plugin is linked statically with musl, since nothing is known of the host that it will run on.
RUN set -eu; \
    here=$(dpkg --print-architecture); \
    target=${TARGETARCH:-$here}; \
    case $target in \
      amd64) cpu=x86_64 node=x64 ;; \
      arm64) cpu=aarch64 node=arm64 ;; \
      *) echo "no image is made for $target" >&2; exit 1 ;; \
    esac; \
    printf 'target=%s\ncpu=%s\nnode=%s\n' "$target" "$cpu" "$node" >/src/.target; \
    [ "$target" = "$here" ] || dpkg --add-architecture "$target"; \
    apt-get update -qq; \
    apt-get install -y -qq --no-install-recommends make binutils nodejs npm ca-certificates \
      "gcc-$(echo $cpu | tr _ -)-linux-gnu" "musl-dev:$target" "libc6:$target" "libstdc++6:$target"
COPY package.json package-lock.json .npmrc ./
COPY scripts/lock-subset.mjs scripts/
# A registry's configuration may be given as the secret `npmrc`. Node.js and tools for another machine are wanted too.
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc set -eu; . /src/.target; \
    node scripts/lock-subset.mjs /src/locked; cp .npmrc /src/locked; cd /src/locked; \
    npm ci --ignore-scripts --no-progress --loglevel=error; \
    mv node_modules /src/; \
    [ -e "/src/node_modules/node-linux-$node" ] || { npm ci --ignore-scripts --no-progress --loglevel=error --os=linux "--cpu=$node"; \
      mv "node_modules/node-linux-$node" /src/node_modules/; }
COPY . .
RUN set -eu; . /src/.target; \
    make -C ipam-plugin/client OUT=/src/build/berth CC="$cpu-linux-musl-gcc"; \
    bash scripts/image-system.sh /out "node_modules/node-linux-$node/bin/node"; \
    ARCH=$node bash scripts/image-tree.sh /out/opt/berth build/berth; \
    chmod -R u=rwX,go=rX /out; chmod 1777 /out/tmp /out/var/tmp

FROM scratch
ARG VERSION=unknown
LABEL org.opencontainers.image.title="berth" \
      org.opencontainers.image.description="Fixed IP addresses for Kubernetes pods: webhook and node agent" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
COPY --from=build /out/ /
ENV PATH=/usr/local/bin NODE_ENV=production BERTH_CNI_BINARY=/opt/berth/bin/berth
WORKDIR /opt/berth
USER 65532:65532
EXPOSE 8443
# Without the flags V8 lets a heap grow by half of the host's memory before it collects. The agent's command, as root:
# node --max-semi-space-size=1 --optimize-for-size --no-opt --no-sparkplug --v8-pool-size=0 ipam-plugin/agent/main.js
CMD ["node", "--max-semi-space-size=4", "--heap-growing-percent=20", "webhook/main.js"]
