"""An S3 server for tests: moto's, which judges the signature of every request once its bucket and its user are there."""
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile

from harness import until

REGION = "eu-test-1"


class ObjectStore:
    """Used as `with`. `key` is what a client gives as KEY:SECRET."""

    def __init__(self, bucket):
        self.bucket = bucket
        with socket.socket() as s:
            s.bind(("", 0))
            self.port = s.getsockname()[1]

    def client(self, service, key="nobody", secret="nothing"):
        import boto3  # only where the store runs
        return boto3.client(service, endpoint_url=f"http://127.0.0.1:{self.port}", region_name=REGION, aws_access_key_id=key, aws_secret_access_key=secret)

    def answers(self):
        assert self.proc.poll() is None, "moto's server has ended"
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def __enter__(self):
        # four calls without a judgement: the bucket, the user, what it may do, its key
        env = dict(os.environ, INITIAL_NO_AUTH_ACTION_COUNT="4")
        self.log = tempfile.TemporaryFile()
        self.proc = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "0.0.0.0", "-p", str(self.port)], env=env, stdout=self.log, stderr=self.log)
        until("moto's server answers", self.answers)
        self.client("s3").create_bucket(Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        iam = self.client("iam")
        iam.create_user(UserName="node")
        allow = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
        iam.put_user_policy(UserName="node", PolicyName="all", PolicyDocument=json.dumps(allow))
        made = iam.create_access_key(UserName="node")["AccessKey"]
        self.key = f"{made['AccessKeyId']}:{made['SecretAccessKey']}"
        self.s3 = self.client("s3", made["AccessKeyId"], made["SecretAccessKey"])
        return self

    def __exit__(self, *_):
        self.proc.kill()
        self.proc.wait()
        self.log.close()

    def digests(self):
        """{name: sha256} of what is there"""
        found = self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", [])
        return {o["Key"]: hashlib.sha256(self.text(o["Key"])).hexdigest() for o in found}

    def text(self, name):
        return self.s3.get_object(Bucket=self.bucket, Key=name)["Body"].read()
