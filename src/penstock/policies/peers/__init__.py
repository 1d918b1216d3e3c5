"""What people have today, as policies: each by its own rules, defaults and names, replayed without our guards."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.policies.peers.aws_flink import AwsFlink
from penstock.policies.peers.dhalion import Dhalion
from penstock.policies.peers.ds2 import Ds2
from penstock.policies.peers.dstream import DStream
from penstock.policies.peers.elastic_scaling import ElasticScaling
from penstock.policies.peers.flink import Flink
from penstock.policies.peers.google_dataflow import GoogleDataflow
from penstock.policies.peers.hpa import Hpa
from penstock.policies.peers.keda import Keda
from penstock.policies.peers.spark_24815 import Spark24815
from penstock.policies.peers.spark_dynamic import SparkDynamic

PEERS: Mapping[str, type] = {
    "hpa": Hpa,
    "keda": Keda,
    "flink": Flink,
    "ds2": Ds2,
    "dhalion": Dhalion,
    "spark-dynamic": SparkDynamic,
    "spark-24815": Spark24815,
    "dstream": DStream,
    "elastic-scaling": ElasticScaling,
    "aws-flink": AwsFlink,
    "dataflow": GoogleDataflow,
}
