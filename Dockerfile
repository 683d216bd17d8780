# One image for the service, its workers and the Spark cluster, so that all run the same Spark.
FROM python:3.11.14-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 cachemgr \
    && install -d -o cachemgr -g cachemgr /data /secrets

WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY cachemgr cachemgr
COPY matcher matcher
COPY scheduler scheduler
COPY migrations migrations
RUN pip install --no-cache-dir -c constraints.txt '.[all]'

USER cachemgr
WORKDIR /data
# Delta's jars are fetched now, so that no container needs the network when it starts.
RUN python -c "from pyspark.sql import SparkSession; from cachemgr import configure_spark_with_cachemgr; \
configure_spark_with_cachemgr(SparkSession.builder.master('local[1]')).getOrCreate().stop()"

ENTRYPOINT ["tini", "-g", "--"]
CMD ["cachemgr", "serve"]
