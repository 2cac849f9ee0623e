# The four images: docker build --target operator|sidecar|analyzer|webui . (before webui: make webui)
# Dependencies are exactly those of uv.lock, by hash. What is built in changes less often than our code and comes first.
ARG BASE=docker.io/library/python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

# What is to be installed, without the settings of tools: with those, each of their changes would install all anew.
FROM ${BASE} AS project
COPY pyproject.toml uv.lock /whole/
RUN mkdir /project && sed '/^\[tool\.ruff\]/,$d' /whole/pyproject.toml >/project/pyproject.toml \
    && cp /whole/uv.lock /project/ && touch -d @0 /project/* /project

FROM ${BASE} AS build
# PIP_CERT, and SSL_CERT_FILE below: for builds behind a proxy with a certificate authority of its own.
ARG PIP_CERT
COPY .github/uv.txt /uv.txt
RUN python3 -m venv /uv && /uv/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes \
    -r /uv.txt
WORKDIR /build
COPY --from=project /project/ ./
ENV UV_PROJECT_ENVIRONMENT=/opt/fleetprof UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_NO_CACHE=1 \
    UV_PYTHON_DOWNLOADS=never
# What no code of ours reaches is taken out of each image's packages again (tests/e2e/kubernetes/test_images.py): their
# tests; of AWS's services all but S3 and those that credentials come from; of Kubernetes' client the typed objects.
ENV PACKAGES=/opt/fleetprof/lib/python3.11/site-packages \
    OTHER_SERVICES="-mindepth 1 -maxdepth 1 -type d ! -name s3 ! -name sts ! -name sso ! -name sso-oidc ! -name signin"
# Programs start our modules; the modules themselves are copied into the last layer of each image.
RUN mkdir -p /programs && python3 -c 'import pathlib, tomllib; [(p := pathlib.Path("/programs", name)).write_text(\
"#!/opt/fleetprof/bin/python\nimport sys\nfrom {} import {} as main\nsys.exit(main())\n".format(*at.split(":"))) and \
p.chmod(0o755) for name, at in tomllib.load(open("pyproject.toml", "rb"))["project"]["scripts"].items()]'

FROM build AS operator-dependencies
ARG SSL_CERT_FILE
RUN /uv/bin/uv sync --quiet --frozen --no-default-groups --no-install-project --extra operator \
    && cd $PACKAGES && find botocore/data $OTHER_SERVICES -exec rm -r {} + \
    && find kubernetes/client kubernetes/aio/client \( -path '*/api/*.py*' -o -path '*/models/*.py*' \) \
    ! -name '__init__.*' -delete

FROM build AS sidecar-dependencies
ARG SSL_CERT_FILE
RUN /uv/bin/uv sync --quiet --frozen --no-default-groups --no-install-project --extra sidecar --extra summary \
    && cd $PACKAGES && find . -type d -name tests -prune -exec rm -r {} +

FROM build AS analyzer-dependencies
ARG SSL_CERT_FILE
RUN /uv/bin/uv sync --quiet --frozen --no-default-groups --no-install-project --extra analyzer \
    --no-install-package boto3 --no-install-package botocore --no-install-package s3transfer \
    --no-install-package jmespath --no-install-package python-dateutil --no-install-package six \
    && cd $PACKAGES && find . -type d -name tests -prune -exec rm -r {} +

# Of the analyzer it needs the comparison and the words, which neither dial nor read traces.
FROM build AS webui-dependencies
ARG SSL_CERT_FILE
RUN /uv/bin/uv sync --quiet --frozen --no-default-groups --no-install-project --extra webui --extra postgres \
    --no-install-package grpcio --no-install-package isal \
    && cd $PACKAGES && find botocore/data $OTHER_SERVICES -exec rm -r {} + \
    && find . -type d -name tests -prune -exec rm -r {} +

# The reader's part in Rust (accelerator/README.md); the compiler stays here, Debian's newest for this release.
FROM ${BASE} AS accelerator
ARG SSL_CERT_FILE
RUN apt-get -qq update && apt-get -qq install --no-install-recommends cargo-web gcc libc6-dev >/dev/null
COPY accelerator/Cargo.toml accelerator/Cargo.lock /build/
COPY accelerator/src /build/src
COPY accelerator/fleetprof_accelerator /accelerator/
RUN cd /build && cargo build --quiet --release --locked && mv target/release/libscan.so /accelerator/_scan.abi3.so \
    && rm -r target

FROM ${BASE} AS runtime
# No installer stays: neither pip nor what would bring it back.
RUN rm -rf /usr/local/lib/python3.11/ensurepip /usr/local/lib/python3.11/site-packages/* /usr/local/bin/pip* \
    /usr/lib/python3.11/ensurepip /usr/share/python-wheels \
    && echo 'fleetprof:x:65532:65532:fleetprof:/nonexistent:/usr/sbin/nologin' >> /etc/passwd \
    && echo 'fleetprof:x:65532:' >> /etc/group
# numpy's linear algebra is not used; its threads would spin for a tenth of a second at each start.
ENV PATH=/opt/fleetprof/bin:/usr/local/bin:/usr/bin:/bin PYTHONPATH=/opt/fleetprof/code \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 OPENBLAS_NUM_THREADS=1
USER 65532:65532
LABEL org.opencontainers.image.source=https://github.com/fleetprof/fleetprof \
    org.opencontainers.image.licenses=Apache-2.0

FROM runtime AS operator
COPY --from=operator-dependencies /opt/fleetprof /opt/fleetprof
COPY --from=build /programs/fleetprof-operator /programs/fleetprof-webhook /programs/fleetprof-certificates /opt/fleetprof/bin/
COPY api/fleetprof_api /opt/fleetprof/code/fleetprof_api
COPY api/fleetprof_store /opt/fleetprof/code/fleetprof_store
COPY operator/fleetprof_operator /opt/fleetprof/code/fleetprof_operator
# Of the analyzer it has the verdict on stacks.
COPY analyzer/fleetprof_analyzer/__init__.py /opt/fleetprof/code/fleetprof_analyzer/
COPY analyzer/fleetprof_analyzer/stalls /opt/fleetprof/code/fleetprof_analyzer/stalls
USER 0
ARG COMMIT=
RUN sed -i "s/^COMMIT: Final = .*/COMMIT: Final = \"$COMMIT\"/" /opt/fleetprof/code/fleetprof_api/process/version.py \
    && python -m compileall -q /opt/fleetprof/code
USER 65532:65532
ENTRYPOINT ["fleetprof-operator"]

FROM runtime AS sidecar
COPY --from=sidecar-dependencies /opt/fleetprof /opt/fleetprof
COPY --from=build /programs/fleetprof-sidecar /programs/fleetprof-sidecar-supervisor /opt/fleetprof/bin/
COPY api/fleetprof_api /opt/fleetprof/code/fleetprof_api
COPY api/fleetprof_store /opt/fleetprof/code/fleetprof_store
COPY sidecar/fleetprof_sidecar /opt/fleetprof/code/fleetprof_sidecar
COPY analyzer/fleetprof_analyzer /opt/fleetprof/code/fleetprof_analyzer
COPY --from=accelerator /accelerator /opt/fleetprof/code/fleetprof_accelerator
USER 0
# The agent comes after: it is handed to trainers of other Python versions, as source.
ARG COMMIT=
RUN sed -i "s/^COMMIT: Final = .*/COMMIT: Final = \"$COMMIT\"/" /opt/fleetprof/code/fleetprof_api/process/version.py \
    && python -m compileall -q /opt/fleetprof/code
COPY sidecar/fleetprof_agent /opt/fleetprof/code/fleetprof_agent
USER 65532:65532
ENTRYPOINT ["fleetprof-sidecar-supervisor"]

FROM runtime AS analyzer
COPY --from=analyzer-dependencies /opt/fleetprof /opt/fleetprof
COPY --from=build /programs/fleetprof-analyzer /opt/fleetprof/bin/
COPY api/fleetprof_api /opt/fleetprof/code/fleetprof_api
COPY api/fleetprof_store /opt/fleetprof/code/fleetprof_store
COPY analyzer/fleetprof_analyzer /opt/fleetprof/code/fleetprof_analyzer
COPY --from=accelerator /accelerator /opt/fleetprof/code/fleetprof_accelerator
USER 0
ARG COMMIT=
RUN test -f /opt/fleetprof/code/fleetprof_analyzer/page/static/report.js \
    || { echo "the report's page is not built: run \`make webui\` first" >&2; exit 1; }; \
    sed -i "s/^COMMIT: Final = .*/COMMIT: Final = \"$COMMIT\"/" /opt/fleetprof/code/fleetprof_api/process/version.py \
    && python -m compileall -q /opt/fleetprof/code
USER 65532:65532
ENTRYPOINT ["fleetprof-analyzer"]

FROM runtime AS webui
COPY --from=webui-dependencies /opt/fleetprof /opt/fleetprof
COPY --from=build /programs/fleetprof-webui /opt/fleetprof/bin/
COPY api/fleetprof_api /opt/fleetprof/code/fleetprof_api
COPY api/fleetprof_store /opt/fleetprof/code/fleetprof_store
COPY analyzer/fleetprof_analyzer /opt/fleetprof/code/fleetprof_analyzer
COPY webui/fleetprof_webui /opt/fleetprof/code/fleetprof_webui
USER 0
# The pages come from the tree, as they come into the wheel.
ARG COMMIT=
RUN test -f /opt/fleetprof/code/fleetprof_webui/static/index.html \
    || { echo "the web UI's pages are not built: run \`make webui\` first" >&2; exit 1; }; \
    sed -i "s/^COMMIT: Final = .*/COMMIT: Final = \"$COMMIT\"/" /opt/fleetprof/code/fleetprof_api/process/version.py && \
    python -m compileall -q /opt/fleetprof/code
USER 65532:65532
ENTRYPOINT ["fleetprof-webui"]
