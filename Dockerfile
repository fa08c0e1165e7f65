# syntax=docker/dockerfile:1
# phase-rppg in a container, as a user without privileges:
#   docker build --tag phase-rppg .
#   docker run --rm --network none --volume "$PWD:/videos:ro" phase-rppg measure face.mp4
#   docker run --rm --publish 127.0.0.1:8421:8421 --env PHASE_SERVE_TOKEN phase-rppg serve --host 0.0.0.0

FROM node:22-slim AS source
WORKDIR /source/web
COPY LICENSE ../
COPY conformance/constants.json ../conformance/
COPY src/ ../src/
COPY web/ ./
RUN npm ci --ignore-scripts --no-audit --no-fund && npm run build
COPY pyproject.toml hatch_build.py README.md ../

FROM python:3.12-slim
ARG EXTRAS=serve,parquet,objects
# The build hook takes the page as it is, because scripts/build-web was not copied.
RUN --mount=type=bind,from=source,source=/source,target=/source,rw \
    pip install --no-cache-dir "/source[${EXTRAS}]" \
    && useradd --create-home --uid 10001 phase
USER 10001
ENV OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
WORKDIR /videos
EXPOSE 8421
ENTRYPOINT ["phase"]
CMD ["--help"]
