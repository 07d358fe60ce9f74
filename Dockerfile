# The server's image. `docker build .` works with BuildKit and with the classic builder, so this file has no `RUN --mount`
# and no heredocs. BASE_IMAGE is a Debian with Node 24 and npm. Releases pin it by digest.
ARG BASE_IMAGE=node:24-bookworm-slim

FROM ${BASE_IMAGE} AS build
WORKDIR /src
# Files that seldom change come first, so a code change does not reinstall packages.
COPY package.json package-lock.json .npmrc ./
# Omits the Node package of a checkout, because the base image has Node, and the packages for tests.
RUN npm ci --ignore-scripts --workspaces=false --legacy-peer-deps --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json openapi.yaml agents.yaml LICENSE ./
COPY script script
COPY config config
COPY src src
RUN sh script/build \
  && npm prune --omit=dev --ignore-scripts --workspaces=false --no-audit --no-fund \
  && find node_modules dist \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.map' \) -delete

FROM ${BASE_IMAGE}
# Process 1 must reap orphans, because agents' commands and MCP servers leave processes behind.
RUN command -v tini >/dev/null \
  || { apt-get update -qq && apt-get install -y -qq --no-install-recommends tini && rm -rf /var/lib/apt/lists/*; }
LABEL org.opencontainers.image.title="Skein" \
  org.opencontainers.image.description="A multi-tenant agent server" \
  org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8000 DATA_DIR=/data
WORKDIR /opt/skein
COPY --from=build /src/package.json /src/openapi.yaml /src/agents.yaml /src/LICENSE ./
COPY --from=build /src/node_modules node_modules
COPY --from=build /src/config config
COPY --from=build /src/dist dist
COPY bin bin
# Checks only the image. The settings of a deployment are checked when it starts.
RUN HOST=127.0.0.1 DATA_DIR=/tmp/data NODE_DISABLE_COMPILE_CACHE=1 node bin/skein.cjs config check >/dev/null \
  && ln -s /opt/skein/bin/skein.cjs /usr/local/bin/skein \
  && mkdir /data && chown 10001:10001 /data
# Runs as the server's user, because V8 stores compiled code per user. That user may read the code but not change it.
COPY --from=build /src/script/warm.ts /tmp/warm.ts
RUN mkdir .compiled && chown 10001:10001 .compiled
USER 10001:10001
RUN node /tmp/warm.ts /opt/skein/dist/main.js || echo "The image is not warmed up; its first run will be slower."
USER root
RUN chown -R root:root .compiled && chmod -R a+rX .compiled && rm /tmp/warm.ts
USER 10001:10001
VOLUME /data
EXPOSE 8000
# Checks liveness only, because an unreachable Redis must not restart the container.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Same as in script/start.
ENTRYPOINT ["tini", "--", "node", "--v8-pool-size=0", "--min-semi-space-size=2", "/opt/skein/bin/skein.cjs"]
CMD ["serve"]
