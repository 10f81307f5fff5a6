"""moto behind a front that computes every signature again with botocore; the tables judged by botocore's models."""
import time

import pytest
from conftest import one, tool

VPCS = "ec2/list VPCs"


def test_read_calls(front):
    """All protocols: Query, REST-XML, JSON 1.1; each signature is botocore's."""
    assert front.call("sts/read identity")["answer"]["GetCallerIdentityResult.Account"] == "123456789012"
    vpcs = front.call(VPCS)["answer"]
    assert len(vpcs) == 1 and vpcs[0]["isDefault"] is True and vpcs[0]["vpcId"].startswith("vpc-")
    assert len(front.call("ec2/list subnets", "Filter.1.Name=vpc-id", f"Filter.1.Value.1={vpcs[0]['vpcId']}")["answer"]) == 3
    assert front.call("elasticloadbalancing/list load balancers")["answer"] == []
    assert front.call("route53/list hosted zones", "name=example.org/ä b")["answer"] == []
    assert front.call("servicequotas/read quota", 'body={"ServiceCode": "vpc", "QuotaCode": "L-F678F1CE"}')["answer"]["QuotaCode"] == "L-F678F1CE"
    assert front.call("tagging/find tagged resources")["answer"] is not None


def test_create_and_delete(front):
    new = front.call("ec2/create VPC", "CidrBlock=10.9.0.0/16", "TagSpecification.1.ResourceType=vpc", "TagSpecification.1.Tag.1.Key=slipway", "TagSpecification.1.Tag.1.Value=a b+c/ä*~")
    (vpc,) = new["answer"]
    assert vpc["tagSet.item"] == {"slipway": "a b+c/ä*~"} and vpc["cidrBlock"] == "10.9.0.0/16"
    assert [v["vpcId"] for v in front.call(VPCS, "Filter.1.Name=tag:slipway", "Filter.1.Value.1=a b+c/ä*~")["answer"]] == [vpc["vpcId"]]
    (subnet,) = front.call("ec2/create subnet", f"VpcId={vpc['vpcId']}", "CidrBlock=10.9.1.0/24")["answer"]
    (port,) = front.call("ec2/create network interface", f"SubnetId={subnet['subnetId']}", "ClientToken=t1")["answer"]
    assert port["privateIpAddress"].startswith("10.9.1.")
    held = front.call("ec2/delete VPC", f"VpcId={vpc['vpcId']}", TOOL_RESOURCE="net")
    assert held["fault"] == "DependencyViolation" and held["kind"] == 5 and held["error"].startswith("ec2: delete VPC net: status 400: DependencyViolation: ")
    for call, arg in (("network interface", f"NetworkInterfaceId={port['networkInterfaceId']}"), ("subnet", f"SubnetId={subnet['subnetId']}"), ("VPC", f"VpcId={vpc['vpcId']}")):
        assert front.call(f"ec2/delete {call}", arg)["status"] == 200
    gone = front.call("ec2/delete VPC", f"VpcId={vpc['vpcId']}")
    assert gone["fault"] == "InvalidVpcID.NotFound" and gone["kind"] == 4 and gone["id"]


def test_pages(front):
    made = [front.call("ec2/create volume", "AvailabilityZone=eu-central-1a", f"Size={i + 1}", "ClientToken=t", "TagSpecification.1.ResourceType=volume",
                       "TagSpecification.1.Tag.1.Key=k", f"TagSpecification.1.Tag.1.Value={i}")["answer"]["volumeId"] for i in range(3)]
    front.asked.clear()
    seen = front.call("ec2/list volumes", "MaxResults=1")["answer"]
    assert sorted(v["volumeId"] for v in seen) == sorted(made) or front.asked["DescribeVolumes"] == 1  # moto does not page every list
    types = front.call("ec2/list instance types")["answer"]
    assert len(types) > 100
    for v in made:
        assert front.call("ec2/delete volume", f"VolumeId={v}")["status"] == 200


def test_dns(front):
    zone = """<?xml version="1.0"?><ChangeResourceRecordSetsRequest xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><ChangeBatch><Changes><Change><Action>UPSERT</Action>
<ResourceRecordSet><Name>api.example.org</Name><Type>A</Type><TTL>60</TTL><ResourceRecords><ResourceRecord><Value>192.0.2.1</Value></ResourceRecord></ResourceRecords>
</ResourceRecordSet></Change></Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"""
    import boto3
    r53 = boto3.client("route53", endpoint_url=front.url, region_name="us-east-1", aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key=front.KEYS["AKIDEXAMPLE"][0])
    made = r53.create_hosted_zone(Name="example.org.", CallerReference="1", HostedZoneConfig={"Comment": "mark"})["HostedZone"]["Id"].removeprefix("/hostedzone/")
    (found,) = front.call("route53/list hosted zones", "name=example.org")["answer"]
    assert found["Config.Comment"] == "mark" and found["Id"] == f"/hostedzone/{made}"
    assert front.call("route53/change records", f"zone={made}", f"text={zone}")["status"] == 200
    records = front.call("route53/list records", f"zone={made}")["answer"]
    assert {"192.0.2.1"} == {v["Value"] for r in records if r["Type"] == "A" for v in r["ResourceRecords.ResourceRecord"]}


@pytest.mark.parametrize("fault", [(503, "RequestLimitExceeded", "Request limit exceeded."), (400, "Throttling", "Rate exceeded"), (400, "PriorRequestNotComplete", "wait")])
def test_throttling(front, fault):
    front.fault("DescribeVpcs", fault)
    assert front.call(VPCS)["attempts"] == 2
    front.fault("CreateVpc", fault)
    said = front.call("ec2/create VPC", "CidrBlock=10.8.0.0/16")
    assert said["attempts"] == 2 and front.asked["CreateVpc"] == 2
    front.call("ec2/delete VPC", f"VpcId={said['answer'][0]['vpcId']}")


def test_lost_answers(front):
    """Without a token a create is told as lost; with one it is sent again."""
    front.fault("CreateVpc", "drop after")
    said = front.call("ec2/create VPC", "CidrBlock=10.7.0.0/16")
    assert said["lost"] and front.asked["CreateVpc"] == 1
    (vpc,) = [v for v in front.call(VPCS)["answer"] if v["cidrBlock"] == "10.7.0.0/16"]
    front.call("ec2/delete VPC", f"VpcId={vpc['vpcId']}")
    front.fault("CreateVolume", "drop before")
    said = front.call("ec2/create volume", "AvailabilityZone=eu-central-1a", "Size=1", "ClientToken=t")
    assert said["attempts"] == 2
    front.call("ec2/delete volume", f"VolumeId={said['answer']['volumeId']}")
    front.fault("CreateVolume", "drop before")
    assert front.call("ec2/create volume", "AvailabilityZone=eu-central-1a", "Size=1")["lost"]


@pytest.mark.parametrize("ahead", [900, -900, 4 * 86400])
def test_a_clock_that_is_off(front, ahead):
    """Signed again once, with the time of the answer; the second call knows."""
    front.ahead = ahead
    said = tool("call", VPCS, "then", VPCS, env=front.env())
    assert [s["attempts"] for s in said] == [2, 1]


def test_wrong_keys(front):
    said = front.call(VPCS, AWS_SECRET_ACCESS_KEY="wrongSECRETkey")
    front.problems.clear()
    assert said["fault"] == "SignatureDoesNotMatch" and said["exit"] == 5 and said["attempts"] == 1 and said["hint"]
    assert front.call(VPCS, AWS_ACCESS_KEY_ID="AKIDOTHER")["fault"] == "InvalidClientTokenId"


def home(tmp_path, config="", credentials=""):
    (tmp_path / ".aws").mkdir(exist_ok=True)
    (tmp_path / ".aws" / "config").write_text(config)
    (tmp_path / ".aws" / "credentials").write_text(credentials)
    return {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}


def keys(front):
    return f"aws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = {front.KEYS['AKIDEXAMPLE'][0]}\n"


def test_a_role_of_a_profile(front, tmp_path):
    """AssumeRole with the keys of source_profile; calls then carry its session token."""
    env = home(tmp_path, "[profile ops]\nregion = eu-central-1\nrole_arn = arn:aws:iam::123456789012:role/ops\nsource_profile = base\n", f"[base]\n{keys(front)}")
    said = one("call", "sts/read identity", env={**env, "AWS_PROFILE": "ops", "AWS_ENDPOINT_URL": front.url})
    assert "assumed-role/ops/slipway" in said["answer"]["GetCallerIdentityResult.Arn"] and front.asked["AssumeRole"] == 1
    assert "role arn:aws:iam::123456789012:role/ops of profile ops" == said["origin"]


def test_an_expired_role_is_assumed_again(front, tmp_path):
    env = home(tmp_path, "[profile ops]\nregion = eu-central-1\nrole_arn = arn:aws:iam::123456789012:role/ops\nsource_profile = base\n", f"[base]\n{keys(front)}")
    front.fault("DescribeVpcs", (403, "ExpiredToken", "The security token included in the request is expired"))
    said = one("call", VPCS, env={**env, "AWS_PROFILE": "ops", "AWS_ENDPOINT_URL": front.url})
    assert said["attempts"] == 2 and front.asked["AssumeRole"] == 2


def test_web_identity(front, tmp_path):
    (tmp_path / "token").write_text("header.SECRET.signature")
    env = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/web", "AWS_REGION": "eu-central-1", "AWS_ENDPOINT_URL": front.url,
           "HOME": str(tmp_path)}
    assert one("call", VPCS, env=env)["status"] == 200 and front.asked["AssumeRoleWithWebIdentity"] == 1
    (action, body, authorization), = [e for e in front.log if e[0] == "AssumeRoleWithWebIdentity"]
    assert authorization is None and "RoleSessionName=slipway" in body
    said = one("call", VPCS, env={**env, "AWS_WEB_IDENTITY_TOKEN_FILE": "/nonexistent"})
    assert said["exit"] == 5 and "/nonexistent" in said["error"] and "AWS credentials: the web identity" in said["error"]


def test_credential_process(front, tmp_path):
    script = tmp_path / "a program.sh"
    script.write_text(f"""#!/bin/sh\n[ "$1" = "two words" ] && echo '{{"Version": 1, "AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "{front.KEYS['AKIDEXAMPLE'][0]}"}}'\n""")
    script.chmod(0o755)
    env = home(tmp_path, f"[default]\nregion = eu-central-1\ncredential_process = '{script}' \"two words\"\n") | {"AWS_ENDPOINT_URL": front.url}
    assert one("call", VPCS, env=env)["status"] == 200
    for command, why in ((f"'{script}' other", "the program failed"), ("/nonexistent", "AWS credentials: credential_process of profile default"), ("echo {}", "Version 1"), ("'", "not closed")):
        said = one("call", VPCS, env=home(tmp_path, f"[default]\nregion = eu-central-1\ncredential_process = {command}\n") | {"AWS_ENDPOINT_URL": front.url})
        assert why in said["error"] and said["exit"] == 5


class Metadata:
    """IMDSv2 and a container's credentials, in the OpenStack's handler."""

    def __init__(self, stack, secret):
        self.stack, self.secret = stack, secret

    def answer(self, method, path, query, body, headers):
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        document = {"Code": "Success", "AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": self.secret, "Token": None, "Expiration": until}
        if (method, path) == ("PUT", "/latest/api/token"):
            return (200, "imdsSECRETtoken", {}) if headers.get("X-aws-ec2-metadata-token-ttl-seconds") else (400, "bad", {})
        if path == "/container":
            return (200, document, {}) if headers.get("Authorization") == "containerSECRET" else (401, "no", {})
        if headers.get("X-aws-ec2-metadata-token") != "imdsSECRETtoken":
            return 401, "no", {}
        if path == "/latest/meta-data/iam/security-credentials/":
            return 200, "node role", {}
        return (200, document, {}) if path.endswith("/node") else (404, "no", {})


def test_instance_and_container(front, stack, tmp_path):
    stack.answer = Metadata(stack, front.KEYS["AKIDEXAMPLE"][0]).answer
    common = {"HOME": str(tmp_path), "AWS_REGION": "eu-central-1", "AWS_ENDPOINT_URL": front.url}
    said = one("call", VPCS, env={**common, "AWS_EC2_METADATA_SERVICE_ENDPOINT": stack.url + "/"})
    assert said["status"] == 200 and said["origin"] == "the instance's metadata" and len(stack.log) == 3
    env = {**common, "AWS_CONTAINER_CREDENTIALS_FULL_URI": stack.url + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "containerSECRET"}
    assert one("call", VPCS, env=env)["origin"] == "the container's credentials"
    assert "neither https nor this host" in one("call", VPCS, env={**common, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://198.51.100.1/x"})["error"]


def test_no_credentials(tmp_path):
    env = {"HOME": str(tmp_path), "AWS_REGION": "eu-central-1"}
    said = one("call", VPCS, env={**env, "AWS_EC2_METADATA_DISABLED": "true"})
    assert said["error"] == "AWS credentials: there are none" and said["hint"] and said["exit"] == 5
    said = one("call", VPCS, env={**env, "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9"})
    assert "no metadata service answers" in said["error"] and said["exit"] == 5
    said = one("call", VPCS, env={"HOME": str(tmp_path), "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})
    assert said["error"] == "AWS: no region is set"


def protocols(model):
    return {model.metadata["protocol"], *model.metadata.get("protocols", [])}


def test_the_table_is_botocores():
    """Every action, its protocol and the parameters and fields that the rows name are in the models."""
    import botocore.session
    session = botocore.session.get_session()
    names = {"ec2": "ec2", "elasticloadbalancing": "elbv2", "elb": "elb", "sts": "sts", "iam": "iam", "route53": "route53", "servicequotas": "service-quotas", "tagging": "resourcegroupstaggingapi",
             "ssm": "ssm"}
    models = {s: session.get_service_model(n) for s, n in names.items()}
    rows = [r for r in tool("calls") if r["aws"]]
    assert len(rows) > 60
    for row in rows:
        model = models[row["service"]]
        if row["body"] == 2:
            operation = model.operation_model(row["path"])
            assert protocols(model) & {"query", "ec2"}, row
            if row["retry"] == 2:
                assert "ClientToken" in operation.input_shape.members, row
            for source, parameter in row["pages"]:
                assert parameter in operation.input_shape.members or parameter[0].lower() + parameter[1:] in operation.input_shape.members, row
        elif row["body"] == 4:
            prefix, operation = row["path"].split(".")
            assert model.metadata["targetPrefix"] == prefix and "json" in protocols(model) and model.operation_model(operation), row
        else:
            path = row["path"].replace("{zone}", "{Id}")
            found = [o for o in model.operation_names if model.operation_model(o).http["requestUri"].removesuffix("/") == path.removesuffix("/") and model.operation_model(o).http["method"] == row["method"]]
            assert found, row
        if row["list"] and row["body"] == 2:
            check_list(models[row["service"]].operation_model(row["path"]).output_shape, row)


def wire(shape):
    """{name in the answer: shape} of a structure."""
    return {m.serialization.get("name", n): m for n, m in shape.members.items()} if shape.type_name == "structure" else {}


def step(shape, name):
    if shape.type_name == "list":
        inner = shape.member
        return inner if name in (inner.serialization.get("name", "member"), shape.member.serialization.get("locationName", "member"), "item", "member") else step(inner, name)
    return wire(shape)[name]


def check_list(shape, row):
    words = row["list"].split(".")
    words = words[1:] if words[0].endswith("Result") else words
    for word in words:
        shape = step(shape, word)
    for field in row["fields"]:
        at = shape
        for word in field.split("."):
            at = step(at, word)


def test_addresses():
    """Of each service and partition, as botocore resolves them."""
    import botocore.session
    session = botocore.session.get_session()
    names = {"ec2/list VPCs": "ec2", "elasticloadbalancing/list load balancers": "elbv2", "elb/list classic load balancers": "elb", "sts/read identity": "sts", "iam/read role": "iam", "route53/list hosted zones": "route53",
             "servicequotas/read quota": "service-quotas", "tagging/find tagged resources": "resourcegroupstaggingapi"}
    env = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "bbbbbbbb", "https_proxy": "http://127.0.0.1:9"}
    for region in ("eu-central-1", "cn-north-1", "us-gov-east-1"):
        for call, name in names.items():
            if region != "eu-central-1" and name not in ("ec2", "iam", "route53"):
                continue  # clients are slow to make
            client = session.create_client(name, region_name=region, aws_access_key_id="a", aws_secret_access_key="b")
            said = one("address", call, env={**env, "AWS_REGION": region})
            assert said["url"] == client.meta.endpoint_url, (region, name)
            assert said["region"] == client._request_signer._region_name or name in ("iam", "route53"), (region, name)
