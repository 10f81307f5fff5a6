"""Provider aws against moto (aws_front.py): made, found again, repaired, removed; with faults and kills at every creating call. moto's own data judges."""
import base64
import gzip
import json
import logging
import re
import signal
import subprocess
import time
from urllib.parse import parse_qs

import pytest
from aws_front import POOLS, REGION, SLIPWAY, AwsFront, Cloud, client, ours
from harness import ROOT, until

WHOLE = {"vpc": 1, "gateway": 1, "subnet": 6, "table": 2, "nat": 1, "address": 1, "group": 3, "interface": 5, "instance": 5, "volume": 8, "balancer": 1, "targets": 1}
CALLS_MOST = 16  # of a plan without changes


def counts(front):
    return {k: len(v) for k, v in ours(front).items()}


def calls(front, *actions):
    """How many different calls there were: a slow computer makes some of them late, and they are sent again."""
    return len({entry[:2] for entry in front.log if not actions or entry[0] in actions})


def unique(front):
    """Nothing was made twice."""
    return all(len(v) == len(set(v)) for v in ours(front).values())


@pytest.fixture(scope="module")
def server():
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    f = AwsFront()
    yield f
    f.server.shutdown()


@pytest.fixture
def front(server):
    server.emptied()
    server.fresh()
    yield server
    assert not server.problems  # signatures
    server.fresh()
    assert ours(server) == {}, "leaks"


@pytest.fixture
def cluster(front, tmp_path):
    c = Cloud(front, tmp_path)
    yield c
    front.faults = {}
    c.tool("down")


def foreign(front):
    """Somebody else's VPC with an interface, and what moto says of it."""
    ec2 = client(front, "ec2")
    vpc = ec2.create_vpc(CidrBlock="10.32.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": [{"Key": "slipway.dev/mark", "Value": "slipway-other"}]}])["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.32.16.0/20")["Subnet"]["SubnetId"]
    ec2.create_network_interface(SubnetId=subnet)

    def state():
        by = [{"Name": "vpc-id", "Values": [vpc]}]
        return json.dumps([ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"], ec2.describe_subnets(Filters=by)["Subnets"], ec2.describe_network_interfaces(Filters=by)["NetworkInterfaces"],
                           ec2.describe_security_groups(Filters=by)["SecurityGroups"]], default=str, sort_keys=True)
    return state


def targets(front):
    elb = client(front, "elbv2")
    group = elb.describe_target_groups(Names=["slipway-abcde"])["TargetGroups"][0]["TargetGroupArn"]
    return {t["Target"]["Id"] for t in elb.describe_target_health(TargetGroupArn=group)["TargetHealthDescriptions"]}


def test_made_found_and_removed(front, tmp_path):
    c = Cloud(front, tmp_path)
    theirs = foreign(front)
    before, front.made = theirs(), []
    assert {m["state"] for m in c.machines().values()} == {"absent"} and front.made == []
    c.tool("up")
    assert counts(front) == WHOLE and unique(front)
    machines = c.machines()
    assert {m["state"] for m in machines.values()} == {"running"}
    assert {n: m["zone"][-1] for n, m in machines.items()} == {"control-1": "a", "control-2": "b", "control-3": "c", "worker-1": "a", "worker-2": "b"}
    assert all(m["providerID"].startswith(f"aws:///{m['zone']}/i-") for m in machines.values())
    assert machines["control-1"]["balancer"].startswith("slipway-abcde-") and machines["control-1"]["endpoint"] == machines["control-1"]["balancer"]
    check_machines(front, c)
    # nothing to do: few calls, none of which makes anything
    front.log, front.made = [], []
    assert c.tool("survey")[-1] == {"changes": False} and calls(front) <= CALLS_MOST
    c.tool("up")
    assert front.made == [] and counts(front) == WHOLE
    c.tool("down")
    assert ours(front) == {} and theirs() == before


def check_machines(front, c):
    ec2, elb = client(front, "ec2"), client(front, "elbv2")
    runs = {entry[1] for entry in front.log if entry[0] == "RunInstances"}
    key = (c.state / "ssh" / "id_ed25519").read_text().splitlines()[1]
    assert len(runs) == 5
    for text in runs:
        for part in ("MetadataOptions.HttpTokens=required", "BlockDeviceMapping.1.Ebs.Encrypted=true", "ClientToken=", "NetworkInterface.1.NetworkInterfaceId=eni-"):
            assert part in text
        data = base64.b64decode(parse_qs(text)["UserData"][0])
        data = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
        assert "ssh-ed25519 AAAA" in data and key not in data and "PRIVATE KEY" not in data
        assert ("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol" in data) == ("InstanceType=m5.large" in text)  # the control plane has a volume
    assert sum("InstanceMarketOptions.MarketType=spot" in text for text in runs) == 2
    assert not any(word in entry[1] for entry in front.log for word in ("PRIVATE", "SECRET", key))
    groups = ec2.describe_security_groups(Filters=[{"Name": "tag:slipway.dev/mark", "Values": ["slipway-abcde"]}])["SecurityGroups"]
    assert sum(any(t["Key"].startswith("kubernetes.io/cluster/") for t in g["Tags"]) for g in groups) == 1
    group = elb.describe_target_groups(Names=["slipway-abcde"])["TargetGroups"][0]
    attributes = {a["Key"]: a["Value"] for a in elb.describe_target_group_attributes(TargetGroupArn=group["TargetGroupArn"])["Attributes"]}
    assert group["TargetType"] == "ip" and attributes["preserve_client_ip.enabled"] == "false"
    assert targets(front) == {"10.32.16.10", "10.32.32.10", "10.32.48.10"}


def test_a_machine_deleted_behind_our_back(cluster, front):
    """It is made anew with its name, address and volume; and so is one that was removed by us."""
    cluster.tool("up")
    before = cluster.machines()
    volumes = lambda: {v["VolumeId"] for v in client(front, "ec2").describe_volumes()["Volumes"] for t in v.get("Tags", []) if t["Value"].startswith("volume/")}  # noqa: E731
    kept = volumes()
    client(front, "ec2").terminate_instances(InstanceIds=[before["control-2"]["providerID"].split("/")[-1]])
    assert cluster.machines()["control-2"]["state"] == "absent"
    cluster.tool("up")
    after = cluster.machines()
    assert after["control-2"]["state"] == "running" and {n: (m["ip"], m["zone"]) for n, m in after.items()} == {n: (m["ip"], m["zone"]) for n, m in before.items()}
    assert after["control-2"]["providerID"] != before["control-2"]["providerID"] and counts(front) == WHOLE and volumes() == kept
    # replaced: its token is another one
    cluster.tool("destroy", "worker-2")
    assert counts(front) == WHOLE | {"instance": 4, "interface": 4, "volume": 7}
    cluster.tool("up")
    assert counts(front) == WHOLE and cluster.machines()["worker-2"]["providerID"] != before["worker-2"]["providerID"]


def outdated(said):
    return {line["outdated"]: line["why"] for line in said if "outdated" in line}


def held(front):
    """What stays when a machine is made anew: interfaces and volumes for data, by their roles."""
    ec2, by = client(front, "ec2"), [{"Name": "tag:slipway.dev/mark", "Values": ["slipway-abcde"]}]
    role = lambda tags: next(t["Value"] for t in tags if t["Key"] == "slipway.dev/role")  # noqa: E731
    return ({role(i["TagSet"]): (i["NetworkInterfaceId"], i["PrivateIpAddress"]) for i in ec2.describe_network_interfaces(Filters=by)["NetworkInterfaces"]},
            {role(v["Tags"]): v["VolumeId"] for v in ec2.describe_volumes(Filters=by)["Volumes"] if not role(v["Tags"]).startswith("root/")})


def test_replacement(cluster, front):
    """Another type, AMI or system disk in the file makes machines outdated, and they are made anew with interface, address and volumes. The same AMI by its name does not."""
    cluster.tool("up")
    before, kept = cluster.machines(), held(front)
    ami = client(front, "ec2").describe_images(ImageIds=[cluster.image])["Images"][0]
    cluster.edit(f"image: {cluster.image}", f"image: {{name: \"{ami['Name']}\", owner: \"{ami['OwnerId']}\"}}")
    front.made = []
    said = cluster.tool("survey")
    assert not outdated(said) and said[-1] == {"changes": False}
    cluster.edit("instanceType: m5.xlarge", "instanceType: m5.2xlarge")
    said = cluster.tool("survey")
    assert outdated(said) == {f"worker-{i}": "type m5.2xlarge instead of m5.xlarge" for i in (1, 2)} and front.made == []
    assert {"line": "machines of pool worker, made anew one after the other: 2 × m5.2xlarge spot (8 vCPUs, 32768 MiB)"} in said
    cluster.tool("replace")
    after = cluster.machines()
    assert counts(front) == WHOLE and unique(front) and held(front) == kept
    assert {n for n in after if after[n]["providerID"] != before[n]["providerID"]} == {"worker-1", "worker-2"} and {m["state"] for m in after.values()} == {"running"}
    front.log = []
    assert not outdated(cluster.tool("survey")) and calls(front) <= CALLS_MOST
    # the system disk, and another AMI for the control plane
    other = next(i["ImageId"] for i in client(front, "ec2").describe_images(Owners=["amazon"])["Images"] if i["ImageId"] != cluster.image and i["Architecture"] == ami["Architecture"])
    cluster.edit("rootVolume: {size: 30GiB}", "rootVolume: {size: 40GiB}")
    cluster.edit("instanceType: m5.large", f"instanceType: m5.large, image: {other}")
    why = outdated(cluster.tool("survey"))
    assert why["worker-1"] == "system disk of 40 GiB, gp3, encrypted instead of 30 GiB, gp3, encrypted" and why["control-3"] == f"AMI {other} instead of {cluster.image}"
    for call in ("TerminateInstances", "RunInstances"):
        front.fault(call, *KILLS)
    while any(front.faults.values()):
        cluster.tool("replace", ok=None)
        assert cluster.status == -9 and unique(front), front.faults
    cluster.tool("replace")
    assert not outdated(cluster.tool("survey")) and counts(front) == WHOLE and held(front) == kept
    assert {n: m["ip"] for n, m in cluster.machines().items()} == {n: m["ip"] for n, m in before.items()}


def test_the_balancer_has_exactly_these(cluster, front):
    """A node that leaves to come back is taken out, and put in again by the same run."""
    cluster.tool("up")
    machines = cluster.machines()
    cluster.tool("members", "control-1", "control-3")
    assert targets(front) == {machines[f"control-{i}"]["ip"] for i in (1, 3)}
    front.fault("RegisterTargets", (503, "Unavailable", "x"))
    cluster.tool("members", "control-1", "control-2", "control-3")
    assert targets(front) == {machines[f"control-{i}"]["ip"] for i in (1, 2, 3)}


def test_rules_follow_the_file(front, tmp_path):
    """Networks that the file no longer has lose their rules; somebody else's rule in the group stays."""
    ec2 = client(front, "ec2")
    c = Cloud(front, tmp_path, more="      access: {ssh: [192.0.2.0/24, 198.51.100.0/24], nodePorts: [192.0.2.0/24]}", pools=SMALL)
    c.tool("up")
    by = [{"Name": "tag:slipway.dev/mark", "Values": ["slipway-abcde"]}, {"Name": "tag:slipway.dev/role", "Values": ["nodes"]}]
    group = lambda: ec2.describe_security_groups(Filters=by)["SecurityGroups"][0]  # noqa: E731
    rules = lambda: sorted((p["IpProtocol"], p.get("FromPort"), r["CidrIp"]) for p in group()["IpPermissions"] for r in p["IpRanges"])  # noqa: E731
    ec2.authorize_security_group_ingress(GroupId=group()["GroupId"], IpPermissions=[{"IpProtocol": "tcp", "FromPort": 9100, "ToPort": 9100, "IpRanges": [{"CidrIp": "203.0.113.0/24", "Description": "theirs"}]}])
    before = rules()
    assert ("tcp", 22, "198.51.100.0/24") in before and ("udp", 30000, "192.0.2.0/24") in before
    c.edit(", 198.51.100.0/24], nodePorts: [192.0.2.0/24]}", "], nodePorts: [10.0.0.0/8]}")
    said = c.tool("survey")
    assert {"line": "unwanted rules of the security group: 1"} in said and {"line": "rules of the security group: 1"} in said and said[-1] == {"changes": True}
    front.fault("RevokeSecurityGroupIngress", "kill before", (503, "Unavailable", "x"), "kill after")
    for _ in range(2):
        c.tool("up", ok=None)
        assert c.status == -9
    c.tool("up")
    gone, new = {("tcp", 22, "198.51.100.0/24"), ("tcp", 30000, "192.0.2.0/24"), ("udp", 30000, "192.0.2.0/24")}, {("tcp", 30000, "10.0.0.0/8"), ("udp", 30000, "10.0.0.0/8")}
    assert set(rules()) == set(before) - gone | new and ("tcp", 9100, "203.0.113.0/24") in rules()
    assert c.tool("survey")[-1] == {"changes": False}
    c.tool("down")


def test_more_and_fewer(cluster, front):
    """Machines are spread over the zones, what is no longer in the file is found and removed, and the balancer follows."""
    cluster.tool("up")
    cluster.edit("name: worker, count: 2", "name: worker, count: 6")
    cluster.tool("up")
    machines = cluster.machines()
    assert counts(front) == WHOLE | {"interface": 9, "instance": 9, "volume": 12} and unique(front)
    assert [machines[f"worker-{i}"]["zone"][-1] for i in range(1, 7)] == list("abcabc") and len({m["ip"] for m in machines.values()}) == 9
    cluster.edit("name: worker, count: 6", "name: worker, count: 1")
    assert sorted(m["other"] for m in cluster.tool("others")) == [f"worker-{i}" for i in range(2, 7)]
    cluster.tool("sweep")
    assert counts(front) == WHOLE | {"interface": 4, "instance": 4, "volume": 7} and not cluster.tool("others")
    cluster.tool("members", "control-1", "control-2")
    assert targets(front) == {machines[n]["ip"] for n in ("control-1", "control-2")}
    assert cluster.tool("survey")[-1] == {"changes": True}  # the file still has control-3
    cluster.tool("up")
    assert targets(front) == {machines[f"control-{i}"]["ip"] for i in (1, 2, 3)}


def test_filters_are_ignored(front, tmp_path):
    """A service that does not know what a list is asked by answers with everything: nobody else's is found, used or removed."""
    elb, iam = client(front, "elbv2"), client(front, "iam")
    theirs = foreign(front)
    before = theirs()
    other = Cloud(front, tmp_path / "other", more="      iam: {control: managed, worker: managed}", pools=SMALL, prefix="fghij")
    other.tool("up")
    c = Cloud(front, tmp_path / "this", more="      iam: {control: managed, worker: managed}", pools=SMALL)
    c.edit("name: kraken", "name: squid")
    front.blind = True
    assert c.machines()["control-1"]["state"] == "absent" and not c.tool("others")
    c.tool("up")
    assert c.machines()["control-1"]["state"] == "running"
    front.blind = False
    assert unique(front)
    front.blind = True
    c.tool("down")
    front.blind = False
    assert ours(front) == {} and theirs() == before
    assert {k: len(v) for k, v in ours(front, "fghij").items()} == {k: v for k, v in ALONE.items() if k != "record"} | {"address": 1}
    assert len(elb.describe_load_balancers()["LoadBalancers"]) == 1 and len(iam.list_roles(PathPrefix="/slipway-fghij/")["Roles"]) == 2
    other.tool("down")
    assert ours(front, "fghij") == {}


def test_a_reservation_without_instances(front, tmp_path):
    """As AWS answers for a while after an instance was made or has ended."""
    c = Cloud(front, tmp_path, pools=SMALL)
    c.tool("up")
    instance = client(front, "ec2").describe_instances()["Reservations"][0]["Instances"][0]["InstanceId"]
    front.hidden = {instance: time.monotonic() + 3600}
    assert {m["state"] for m in c.machines().values()} != {"running"}
    front.hidden = {}
    assert {m["state"] for m in c.machines().values()} == {"running"}
    c.tool("down")


# ---- what Kubernetes' controllers made ----

OWNED = {"kubernetes.io/cluster/kraken-abcde": "owned"}


class Services:
    """What the cloud controller, the load balancer controller and the EBS CSI driver make for a cluster, with the tags of `marks`; all of it can be told by its name."""

    def __init__(self, front, vpc, name, owned, shown):
        self.front, self.name = front, name
        tags = lambda marks: [{"Key": k, "Value": v} for k, v in (marks | {"made-for": name}).items()]  # noqa: E731
        spec = lambda kind: [{"ResourceType": kind, "Tags": tags(owned)}]  # noqa: E731
        ec2, elb, v2 = (client(front, s) for s in ("ec2", "elb", "elbv2"))
        subnet = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"][0]["SubnetId"]
        group = ec2.create_security_group(GroupName=f"k8s-elb-{name}", Description="of a Service", VpcId=vpc, TagSpecifications=spec("security-group"))["GroupId"]
        elb.create_load_balancer(LoadBalancerName=f"a{name}", Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": 30080}],
                                 Subnets=[subnet], SecurityGroups=[group], Tags=tags(owned))
        for kind, marks in (("b", owned), ("c", shown)):  # by the cloud controller, and by the load balancer controller
            balancer = v2.create_load_balancer(Name=f"{kind}{name}", Type="network", Subnets=[subnet], Tags=tags(marks))["LoadBalancers"][0]["LoadBalancerArn"]
            target = v2.create_target_group(Name=f"{kind}{name}", Protocol="TCP", Port=30080, VpcId=vpc, Tags=tags(marks))["TargetGroups"][0]["TargetGroupArn"]
            v2.create_listener(LoadBalancerArn=balancer, Protocol="TCP", Port=80, DefaultActions=[{"Type": "forward", "TargetGroupArn": target}])
        ec2.create_security_group(GroupName=f"k8s-traffic-{name}", Description="of the load balancer controller", VpcId=vpc,
                                  TagSpecifications=[{"ResourceType": "security-group", "Tags": tags(shown)}])
        self.volume = ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=7, TagSpecifications=spec("volume"))["VolumeId"]

    def state(self):
        """{kind: what moto says of it}"""
        ec2, elb, v2 = (client(self.front, s) for s in ("ec2", "elb", "elbv2"))
        mine = lambda things, key: [x for x in things if x[key].endswith(self.name)]  # noqa: E731
        found = {"classic": mine(elb.describe_load_balancers()["LoadBalancerDescriptions"], "LoadBalancerName"), "balancer": mine(v2.describe_load_balancers()["LoadBalancers"], "LoadBalancerName"),
                 "targets": mine(v2.describe_target_groups()["TargetGroups"], "TargetGroupName"), "group": mine(ec2.describe_security_groups()["SecurityGroups"], "GroupName"),
                 "volume": [v for v in ec2.describe_volumes()["Volumes"] if v["VolumeId"] == self.volume]}
        return {k: json.dumps(v, default=str, sort_keys=True) for k, v in found.items() if v}


def with_services(front, where, more=""):
    """A cluster with what its controllers made, and others': of another cluster, with another value, without tags."""
    ec2 = client(front, "ec2")
    c = Cloud(front, where, more=more, pools=SMALL)
    c.tool("up")
    vpc = next(v["VpcId"] for v in ec2.describe_vpcs()["Vpcs"] if {"Key": "slipway.dev/mark", "Value": "slipway-abcde"} in v.get("Tags", []))
    theirs = ec2.create_vpc(CidrBlock="10.60.0.0/16")["Vpc"]["VpcId"]
    ec2.create_subnet(VpcId=theirs, CidrBlock="10.60.0.0/24")
    mine = Services(front, vpc, "mine", OWNED, {"elbv2.k8s.aws/cluster": "kraken-abcde"})
    others = [Services(front, theirs, f"their{i}", *marks) for i, marks in enumerate((
        ({"kubernetes.io/cluster/kraken-fghij": "owned"}, {"elbv2.k8s.aws/cluster": "kraken-fghij"}),
        ({"kubernetes.io/cluster/kraken-abcde": "shared"}, {"elbv2.k8s.aws/cluster": "kraken-abcde2"}),
        ({}, {}),
        ({"kubernetes.io/cluster/kraken-abcde": "owned", "slipway.dev/mark": "slipway-fghij"}, {"elbv2.k8s.aws/cluster": "kraken-abcde", "slipway.dev/mark": "slipway-fghij"})))]
    for i in range(23):  # more than one call asks the tags of
        client(front, "elb").create_load_balancer(LoadBalancerName=f"more{i}", Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": 80}], AvailabilityZones=[f"{REGION}a"])
    return c, mine, others


@pytest.mark.parametrize("blind", [False, True])
def test_what_controllers_left(front, tmp_path, blind):
    """Load balancers, target groups and groups with the cluster's own marks go with it, before its network; volumes stay, in one sentence. Everybody else's stay as they are."""
    c, mine, others = with_services(front, tmp_path)
    before, volume = [o.state() for o in others], mine.state()["volume"]
    assert set(mine.state()) == {"classic", "balancer", "targets", "group", "volume"}
    front.blind = blind
    front.fault("DescribeTags", "drop after", (400, "LoadBalancerNotFound", "it went meanwhile"), (503, "RequestLimitExceeded", "x"))
    front.fault("DeleteSecurityGroup", (400, "DependencyViolation", "resource has a dependent object"))
    front.log = []
    said = c.tool("down")
    front.blind = False
    assert mine.state() == {"volume": volume} and [o.state() for o in others] == before
    assert {"kept": f"1 volume of claims is left in {REGION}, with all data: {mine.volume} (7 GiB)"} in said, said
    order = [entry[0] for entry in front.log]
    assert order.index("DeleteLoadBalancer") > order.index("TerminateInstances") and max(i for i, a in enumerate(order) if a == "DeleteLoadBalancer") < order.index("DeleteVpc")
    assert ours(front) == {}


def test_who_may_not_look_for_services(front, tmp_path):
    """Without the controller in the file, a cluster goes although the tags of load balancers cannot be read; with it, that is an error."""
    c, mine, _ = with_services(front, tmp_path)
    before = mine.state()
    c.edit("region: eu-central-1", "region: eu-central-1\n      iam: {control: managed}\n      cloud: {controller: true}")
    front.closed = {("DescribeTags", "2012-06-01"), ("DescribeTags", "2015-12-01")}
    said = c.tool("down", ok=1)
    assert "read tags: status 403: AccessDenied" in said[-1]["error"] and mine.state() == before
    c.edit("cloud: {controller: true}", "cloud: {controller: false}")
    c.tool("down")
    assert ours(front) == {} and set(mine.state()) == {"classic", "balancer", "targets", "volume"}  # moto lets the network go with its balancers


def test_leaks_of_services(front, tmp_path):
    """Of a cluster whose state directory is lost, if the file has its name."""
    c, mine, others = with_services(front, tmp_path / "lost")
    before = [o.state() for o in others]
    other = Cloud(front, tmp_path / "other", pools=SMALL, prefix="")
    said = other.slipway("leaks", "--prefix", "abcde")[0]
    for kind, name in (("load balancer", "amine"), ("target group", "bmine"), ("security group", "sg-")):
        assert re.search(rf"^{kind} +\S*{name}\S* +of a Service +of no node$", said, re.M), (kind, said)
    assert "their" not in said
    said = other.slipway("leaks", "--prefix", "abcde", "--delete", "--yes")[0]
    assert set(mine.state()) == {"volume"} and [o.state() for o in others] == before and f"1 volume of claims is left in {REGION}" in said and ours(front) == {}


# ---- kills and faults ----

# A cluster with every kind of call that creates or sets something.
RICH = """      iam: {control: managed, worker: managed}
      dns: {zone: example.net}
"""
ROUTED = "  network: {fabric: {name: flannel, backend: host-gw}}"  # so that interfaces forward
ONE = "    - {name: control, roles: [control-plane, etcd], count: 1, instanceType: m5.large, publicIP: true, volumes: [{size: 20GiB, mount: /var/lib/etcd}]}"
CALLS = ["CreateVpc", "ModifyVpcAttribute", "CreateInternetGateway", "AttachInternetGateway", "CreateSubnet", "CreateRouteTable", "CreateRoute", "AssociateRouteTable", "AllocateAddress",
         "CreateNatGateway", "CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "CreateRole", "PutRolePolicy", "CreateInstanceProfile", "AddRoleToInstanceProfile", "CreateTargetGroup",
         "ModifyTargetGroupAttributes", "CreateLoadBalancer", "CreateListener", "RegisterTargets", "POST associatevpc", "POST rrset", "CreateNetworkInterface",
         "ModifyNetworkInterfaceAttribute", "AssociateAddress", "CreateVolume", "RunInstances", "AttachVolume"]
ALONE = {"vpc": 1, "gateway": 1, "subnet": 6, "table": 2, "nat": 1, "address": 2, "group": 3, "interface": 1, "instance": 1, "volume": 2, "balancer": 1, "targets": 1, "role": 2,
         "profile": 2, "record": 1}
SMALL = ONE.replace("publicIP: true, ", "")


@pytest.fixture
def rich(front, tmp_path):
    """The cluster of CALLS; its zone is the user's."""
    r53, ec2 = client(front, "route53"), client(front, "ec2")
    theirs = ec2.create_vpc(CidrBlock="10.50.0.0/16")["Vpc"]["VpcId"]
    zone = r53.create_hosted_zone(Name="example.net.", CallerReference=str(time.time()), HostedZoneConfig={"Comment": "", "PrivateZone": True}, VPC={"VPCRegion": "eu-central-1", "VPCId": theirs})["HostedZone"]["Id"]
    c = Cloud(front, tmp_path, more=RICH, pools=ONE, spec=ROUTED)
    yield c
    front.faults = {}
    c.tool("down")
    assert [v["VPCId"] for v in r53.get_hosted_zone(Id=zone)["VPCs"]] == [theirs]
    r53.delete_hosted_zone(Id=zone)
    ec2.delete_vpc(VpcId=theirs)


KILLS = ("kill before", "kill after", "kill answered")
ROTATIONS = [0, *(pytest.param(i, marks=pytest.mark.soak) for i in (1, 2))]


@pytest.mark.parametrize("turn", ROTATIONS)
def test_killed_at_every_call(rich, front, turn):
    """Before the send, after it and after the answer of each kind of creating call: every run goes on where the last one ended."""
    for i, call in enumerate(CALLS):
        front.fault(call, KILLS[(i + turn) % 3])
    runs = 0
    while any(front.faults.values()):
        rich.tool("up", ok=None)
        assert rich.status == -9, f"never reached: {[call for call, left in front.faults.items() if left]}"
        assert unique(front), front.made[-5:]
        runs += 1
    assert runs >= 3  # calls that were on their way together are killed together
    rich.tool("up")
    assert counts(front) == ALONE


FAULTS = [(429, "ThrottlingException", "slow down", [("Retry-After", "1")]), (503, "RequestLimitExceeded", "Request limit exceeded."), (503, "Unavailable", "x"), (500, "InternalError", "x"),
          "drop before", "drop after", "cut", ("hide", 3), ("hide and drop", 3), (400, "InvalidVpcID.NotFound", "not known here yet")]


@pytest.mark.parametrize("turn", [0, *(pytest.param(i, marks=pytest.mark.soak) for i in range(1, len(FAULTS)))])
def test_every_fault_goes_unnoticed(rich, front, turn):
    """Each kind of creating call meets one of the faults, and lists and deletions meet some. The run itself goes on."""
    for i, call in enumerate(CALLS):
        front.fault(call, FAULTS[(i + turn) % len(FAULTS)])
    for call in ("DescribeVpcs", "DescribeInstances", "DescribeLoadBalancers"):
        front.fault(call, "cut", (503, "RequestLimitExceeded", "x"), "drop after")
    rich.tool("up")
    assert not any(front.faults.values()), front.faults
    assert counts(front) == ALONE and unique(front)
    front.fault("TerminateInstances", "drop after")
    front.fault("DeleteVpc", (400, "DependencyViolation", "it is used"), "drop after")
    front.fault("DeleteSecurityGroup", (503, "RequestLimitExceeded", "x"), (400, "DependencyViolation", "it is used"))


@pytest.mark.soak
@pytest.mark.parametrize("call", ["CreateVpc", "AllocateAddress", "RunInstances", "DescribeInstances"])
def test_no_answer(rich, front, call):
    """A connection on which nothing comes for longer than a call waits."""
    front.fault(call, ("stall", 70))
    rich.tool("up")
    assert counts(front) == ALONE and unique(front)


def test_a_refusal_is_one_sentence(front, tmp_path):
    c = Cloud(front, tmp_path, pools=SMALL)
    front.fault("CreateNatGateway", (403, "UnauthorizedOperation", "You are not authorized to perform this operation."))
    (said,) = [m for m in c.tool("up", ok=1) if m.get("error")]
    assert said["error"].startswith("ec2: create NAT gateway kraken-abcde-nat-eu-central-1a: status 403: UnauthorizedOperation") and "(request req-" in said["error"] and said["hint"]
    # what cannot be removed is named, and the rest goes on at the next attempt
    front.fault("DeleteVpc", *[(403, "UnauthorizedOperation", "not allowed")] * 9)
    said = [m for m in c.tool("down", ok=1) if m.get("error")]
    assert "delete VPC vpc-" in said[-1]["error"] and "UnauthorizedOperation" in said[-1]["error"]
    front.faults = {}
    c.tool("down")


# ---- before anything is made ----

def test_what_is_short_is_said_before(front, tmp_path):
    """Everything at once, and nothing was made."""
    front.quotas = {"L-1216C47A": 5, "L-34B43A08": 7, "L-0263D0A3": 0}
    said = Cloud(front, tmp_path, pools=POOLS.replace("m5.xlarge", "m5.xlarge, image: ami-00000000")).tool("up", ok=1)
    problems = [p["problem"] for p in said if "problem" in p]
    assert len(problems) == 4 and front.made == []
    for words in ("6 vCPUs of on-demand instances are needed, but only 5 of 5", "8 vCPUs of spot instances are needed, but only 7 of 7", "1 Elastic IP addresses are needed, but only 0 of 0",
                  "pool worker: there is no available AMI ami-00000000"):
        assert any(words in p for p in problems), words
    front.quotas = {"L-1216C47A": 6, "L-34B43A08": 8, "L-0263D0A3": 1}
    c = Cloud(front, tmp_path)
    assert c.tool("survey")[-1] == {"changes": True}
    c.edit("eu-central-1c]", "eu-central-1c, eu-central-1z]")
    c.edit("m5.large", "m99.large")
    c.edit("count: 2", "count: 2, zones: [eu-central-1z]")
    problems = [p["problem"] for p in c.tool("up", ok=1) if "problem" in p]
    assert any("AWS has no instance type m99.large" in p for p in problems) and any("m5.xlarge is not offered in the zone eu-central-1z" in p for p in problems) and front.made == []


def test_another_cluster_of_this_name(front, tmp_path):
    c = Cloud(front, tmp_path, pools=SMALL)
    c.tool("up")
    for prefix in ("fghij", ""):  # and before there is an identity
        said = Cloud(front, tmp_path / f"other{prefix}", pools=SMALL, prefix=prefix).tool("survey", ok=1)
        assert "another cluster is called kraken in eu-central-1" in said[0]["error"]
    c.tool("down")


def test_a_clock_that_is_off(front, tmp_path):
    c = Cloud(front, tmp_path, pools=SMALL)
    front.ahead = 600
    assert c.tool("survey")[-1] == {"changes": True}


# ---- other shapes ----

def test_an_existing_vpc(front, tmp_path):
    """Only its machines, groups and balancer are made, and only they are removed."""
    ec2, r53 = client(front, "ec2"), client(front, "route53")
    vpc = ec2.create_vpc(CidrBlock="10.40.0.0/16")["Vpc"]["VpcId"]
    subnets = [ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.40.{i}.0/24", AvailabilityZone=f"eu-central-1{z}")["Subnet"]["SubnetId"] for i, z in enumerate("abc")]
    ec2.create_network_interface(SubnetId=subnets[0], PrivateIpAddress="10.40.0.10")
    zone = r53.create_hosted_zone(Name="example.org.", CallerReference=str(time.time()))["HostedZone"]["Id"]
    c = Cloud(front, tmp_path, more=f"      vpc: {{id: {vpc}, subnets: [{', '.join(subnets)}]}}\n      iam: {{control: managed, worker: managed}}\n      loadBalancer: nlb-internal\n"
              "      dns: {zone: example.org, private: false}", pools=SMALL)
    c.tool("up")
    made = ours(front)
    assert set(made) == {"group", "interface", "instance", "volume", "balancer", "targets", "role", "profile", "record"} and made["record"] == ["kraken.example.org."]
    machine = c.machines()["control-1"]
    assert machine["balancer"] == "kraken.example.org" and machine["ip"].startswith("10.40.0.") and machine["ip"] != "10.40.0.10"
    front.log = []
    assert c.tool("survey")[-1] == {"changes": False} and calls(front) <= CALLS_MOST
    c.tool("down")
    assert len(ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"]) == 3 and r53.get_hosted_zone(Id=zone)
    r53.delete_hosted_zone(Id=zone)


def test_nat_per_zone_without_a_balancer(front, tmp_path):
    c = Cloud(front, tmp_path, more="      nat: perZone\n      loadBalancer: none", pools=SMALL)
    c.tool("up")
    made = counts(front)
    assert made["nat"] == 3 and made["address"] == 3 and made["table"] == 4 and "balancer" not in made
    machine = c.machines()["control-1"]
    assert machine["endpoint"] == machine["ip"] and not machine["balancer"]
    c.tool("down")


@pytest.mark.soak
def test_300_nodes(front, tmp_path):
    """A plan without changes of 300 nodes has as many calls as one of five; at most three calls a node make them."""
    c = Cloud(front, tmp_path, pools=SMALL + "\n    - {name: worker, count: 299, instanceType: m5.large}")
    c.tool("up")
    assert len(ours(front)["instance"]) == 300 and calls(front, *front.made) <= 3 * 300
    front.log = []
    assert c.tool("survey")[-1] == {"changes": False} and calls(front) <= CALLS_MOST
    c.tool("down")


# ---- leaks ----

def test_lost_state(front, tmp_path):
    """A cluster whose state directory is not here can be found and deleted by its prefix, with a file that only has its region."""
    theirs = foreign(front)
    c, before = Cloud(front, tmp_path / "lost", more="      iam: {control: managed, worker: managed}", pools=SMALL), theirs()
    c.tool("up")
    other = Cloud(front, tmp_path / "other", more="      loadBalancer: none", pools=SMALL, prefix="")
    other.edit("name: kraken", "name: squid")
    front.made = []
    said = other.slipway("leaks")[0]
    for kind in ("instance", "load balancer", "target group", "NAT gateway", "interface", "volume", "address", "security group", "subnet", "gateway", "route table", "VPC", "profile", "role"):
        assert re.search(rf"^{kind} +\S+ .* abcde$", said, re.M), (kind, said)
    assert "belong to other clusters" in said and "slipway-other" not in said
    other.slipway("leaks", "--delete", "--yes")
    assert "type abcde, or give --yes" in other.slipway("leaks", "--prefix", "abcde", "--delete", ok=2)[1]
    assert "nothing is left over" in other.slipway("leaks", "--prefix", "zz99z", "--delete", "--yes")[0] and front.made == []
    front.fault("TerminateInstances", (503, "Unavailable", "x"), "drop after")
    front.fault("DeleteVpc", (400, "DependencyViolation", "it is used"))
    other.slipway("leaks", "--prefix", "abcde", "--delete", "--yes")
    assert ours(front) == {} and theirs() == before
    assert "abcde" not in other.slipway("leaks")[0]


def test_leaks_of_this_cluster(front, tmp_path):
    """Machines of no node and of no record; what the nodes have and share is none."""
    c = Cloud(front, tmp_path)
    c.slipway("kubeconfig")  # makes the Identity
    c.prefix = json.loads((tmp_path / ".slipway/kraken/identity.json").read_text())["prefix"]
    c.tool("up")
    assert "of no node" not in c.slipway("leaks")[0]
    whole = ours(front, c.prefix)
    c.edit("name: worker, count: 2", "name: worker, count: 1")
    leaks = [x for x in json.loads(c.slipway("leaks", "-o", "json")[0]) if x["ours"]]
    assert sorted((x["kind"], x["name"]) for x in leaks) == [("instance", "worker-2"), ("interface", "worker-2"), ("volume", "worker-2")]
    front.fault("TerminateInstances", "drop after")
    front.fault("DeleteNetworkInterface", (400, "InvalidNetworkInterface.InUse", "x"))
    c.slipway("leaks", "--delete", "--yes")
    assert "of no node" not in c.slipway("leaks")[0]
    assert ours(front, c.prefix) == {k: [r for r in v if r not in ("node/worker-2", "root/worker-2")] for k, v in whole.items()}
    c.tool("down")
    assert ours(front, c.prefix) == {}


def test_init_asks(front, tmp_path):
    """A first file with what the account has in its region; it passes check and plan."""
    c = Cloud(front, tmp_path, pools=SMALL)
    ec2 = client(front, "ec2")
    said = c.slipway("init", "--provider", "aws", "--name", "mine", "--force")[0]
    assert "check the names, which come from the cloud" in said and front.made == []
    text = c.file.read_text()
    subnets = ec2.describe_subnets()["Subnets"]
    assert "region: eu-central-1\n" in text and "zones: [eu-central-1a, eu-central-1b, eu-central-1c]\n" in text
    assert f"# vpc: {{id: {subnets[0]['VpcId']}, subnets: [subnet-" in text and re.search(r"count: 3, instanceType: (m7i|m6i|m5).large}", text), text
    assert 'owner: "' in text
    c.slipway("check")
    del front.log[:]
    other = subprocess.run([SLIPWAY, "init", "--provider", "aws", "-f", "other.yaml"], cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                           env={k: v for k, v in c.env().items() if not k.startswith("AWS_")})
    assert other.returncode == 0 and "could not be asked" not in other.stderr and front.log == []  # no credentials, no question
    assert "region: eu-central-1" in (tmp_path / "other.yaml").read_text()


def test_the_example_as_it_is(front, tmp_path):
    """examples/aws.yaml, unchanged: made, nothing to do, removed. moto knows no image of Debian's account, so it gets one."""
    from moto.backends import get_backend
    c = Cloud(front, tmp_path)
    c.file.write_text((ROOT / "examples" / "aws.yaml").read_text())
    id = client(front, "ec2").register_image(Name="debian-12-amd64-20260601-2130", Architecture="x86_64", RootDeviceName="/dev/xvda")["ImageId"]
    for account in get_backend("ec2").values():
        if id in account[REGION].amis:
            account[REGION].amis[id].owner_id = "136693071363"
    front.images = set()
    assert c.slipway("check")[0].startswith("kraken: Kubernetes ")
    plan = c.slipway("plan")[0]
    for line in ("machines of pool control: 3 × m7i.large", "machines of pool etcd: 3 × m7i.large", "machines of pool worker: 6 × m7i.xlarge"):
        assert f"  aws: {line}" in plan, plan
    front.made = []
    c.tool("up")
    assert len(c.machines()) == 12 and {m["state"] for m in c.machines().values()} == {"running"} and unique(front)
    front.log, front.made = [], []
    assert c.tool("survey")[-1] == {"changes": False} and calls(front) <= CALLS_MOST
    c.tool("down")
    client(front, "ec2").deregister_image(ImageId=id)


# ---- slipway itself ----

def test_slipway(front, tmp_path):
    """What people see: check, plan, render, `up` until the machines are there (moto boots none), status, and `down`."""
    c = Cloud(front, tmp_path, more="      bastion: jump@127.0.0.1:1  # nobody listens")
    marks = lambda: {t["Value"].removeprefix("slipway-") for t in client(front, "ec2").describe_tags(Filters=[{"Name": "key", "Values": ["slipway.dev/mark"]}])["Tags"]}  # noqa: E731
    before = marks()
    assert c.slipway("check")[0].startswith("kraken: Kubernetes ")
    said = c.slipway("plan")[0]
    for line in ("machines of pool control: 3 × m5.large (2 vCPUs, 8192 MiB)", "machines of pool worker: 2 × m5.xlarge spot (4 vCPUs, 16384 MiB)", "VPC: 1", "NAT gateway: 1", "load balancer: 1"):
        assert f"  aws: {line}" in said, said
    c.slipway("render", "-d", "out")
    assert "providerID" not in (tmp_path / "out/worker-1/root/var/lib/kubelet/config.yaml").read_text()  # it has none yet
    front.quotas = {"L-1216C47A": 5, "L-34B43A08": 7}
    for verb in (["plan"], ["up", "--yes"]):
        said = c.slipway(*verb, ok=4)[1]
        assert "2 problems: quota: 6 vCPUs of on-demand instances are needed, but only 5 of 5 are free in eu-central-1 (ask for" in said and "; quota: 8 vCPUs of spot" in said
    front.quotas = {}
    assert front.made == [] and marks() == before
    p = subprocess.Popen([SLIPWAY, "up", "--yes"], env=c.env(), cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until("machines are made", lambda: calls(front, "RunInstances") == 5 or p.poll() is not None)
    (prefix,) = marks() - before
    until("they run", lambda: len(ours(front, prefix).get("instance", [])) == 5 or p.poll() is not None)
    p.send_signal(signal.SIGINT)
    said, _ = p.communicate()
    assert p.returncode and "SECRET" not in said
    said = c.slipway("status", ok=7)[0]
    assert len(re.findall(r"^(?:control|worker)-\d .*\(running\)", said, re.M)) == 5, said
    # the secret key of the account is nowhere, and our private key only in its own file
    key = next(tmp_path.glob(".slipway/*/ssh/id_ed25519"))
    secrets = front.KEYS["AKIDEXAMPLE"][0].encode(), key.read_bytes().splitlines()[1]
    for path in (p for p in tmp_path.rglob("*") if p.is_file() and p != key):
        assert not any(secret in path.read_bytes() for secret in secrets), path
    c.slipway("down", "--yes")
    assert ours(front, prefix) == {}


BASTION = "      bastion: {instanceType: t3.micro, user: jump}\n      access: {ssh: [192.0.2.0/24]}"
NODE = "node/bastion"


def group_of(front, role):
    by = [{"Name": "tag:slipway.dev/mark", "Values": ["slipway-abcde"]}, {"Name": "tag:slipway.dev/role", "Values": [role]}]
    return client(front, "ec2").describe_security_groups(Filters=by)["SecurityGroups"][0]


def ways_in(front, role):
    """(port, where from) of a group's rules."""
    return {(p.get("FromPort"), x) for p in group_of(front, role)["IpPermissions"]
            for x in [r["CidrIp"] for r in p["IpRanges"]] + [g["GroupId"] for g in p["UserIdGroupPairs"]]}


def balancer(front):
    return client(front, "elbv2").describe_load_balancers(Names=["slipway-abcde"])["LoadBalancers"][0]


def lines(said):
    return [line["line"] for line in said if "line" in line]


def public(front, role):
    """(port of the API, the Elastic IP address of this role as a range)"""
    by = [{"Name": "tag:slipway.dev/mark", "Values": ["slipway-abcde"]}, {"Name": "tag:slipway.dev/role", "Values": [role]}]
    return 6443, client(front, "ec2").describe_addresses(Filters=by)["Addresses"][0]["PublicIp"] + "/32"


def test_who_reaches_the_balancer(front, tmp_path):
    """Only access.api, the VPC, and the addresses with which the cluster itself comes from outside. The rules follow the file, and changes behind our back are repaired."""
    ec2, vpc, nat = client(front, "ec2"), (6443, "10.32.0.0/16"), "nat/eu-central-1a"
    c = Cloud(front, tmp_path, more="      bastion: {instanceType: t3.micro}\n      access: {api: [192.0.2.0/24, 10.32.0.0/16]}", pools=ONE)
    c.tool("up")
    group = group_of(front, "balancer")["GroupId"]
    inside = {vpc, public(front, nat), public(front, NODE)}
    assert balancer(front)["SecurityGroups"] == [group] and not any(group in [g["GroupId"] for g in e["Groups"]] for e in ec2.describe_network_interfaces()["NetworkInterfaces"])
    assert ways_in(front, "balancer") == {(6443, "192.0.2.0/24")} | inside
    front.log = []
    assert c.tool("survey")[-1] == {"changes": False} and calls(front) <= CALLS_MOST
    # the file changes
    c.edit("api: [192.0.2.0/24, 10.32.0.0/16]", "api: [198.51.100.0/24]")
    said = c.tool("survey")
    assert {"rules of the security group: 2", "unwanted rules of the security group: 2"} <= set(lines(said)) and said[-1] == {"changes": True}, said
    for call in ("AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"):
        front.fault(call, "kill after")
    c.tool("up", ok=None)
    assert c.status == -9
    c.tool("up", ok=None)
    c.tool("up")
    assert ways_in(front, "balancer") == {(6443, "198.51.100.0/24")} | inside and c.tool("survey")[-1] == {"changes": False}
    # somebody else changes it
    rule = lambda range: [{"IpProtocol": "tcp", "FromPort": 6443, "ToPort": 6443, "IpRanges": [{"CidrIp": range, "Description": "slipway"}]}]  # noqa: E731
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=rule("198.51.100.0/24"))
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=rule("0.0.0.0/0"))
    assert {"rules of the security group: 1", "unwanted rules of the security group: 1"} <= set(lines(c.tool("survey")))
    c.tool("up")
    assert ways_in(front, "balancer") == {(6443, "198.51.100.0/24")} | inside
    # an address that is made anew, in the same run
    assert public(front, NODE) in inside
    ec2.terminate_instances(InstanceIds=[c.tool("bastion")[0]["providerID"].split("/")[-1]])
    old, = ec2.describe_addresses(PublicIps=[public(front, NODE)[1].removesuffix("/32")])["Addresses"]
    ec2.release_address(AllocationId=old["AllocationId"])
    c.tool("up")
    inside = {vpc, public(front, nat), public(front, NODE)}
    assert (6443, old["PublicIp"] + "/32") not in inside and ways_in(front, "balancer") == {(6443, "198.51.100.0/24")} | inside
    # nodes that use the endpoint themselves, and everybody
    c.edit("  pools:", "  api: {localBalancer: false}\n  pools:")
    c.tool("up")
    assert ways_in(front, "balancer") == {(6443, "198.51.100.0/24"), public(front, "node/control-1")} | inside
    c.edit("api: [198.51.100.0/24]", "api: [0.0.0.0/0]")
    c.tool("up")
    assert ways_in(front, "balancer") == {(6443, "0.0.0.0/0"), vpc} and c.tool("survey")[-1] == {"changes": False}
    # its interfaces stay for a while
    front.fault("DeleteSecurityGroup", *[(400, "DependencyViolation", "resource has a dependent object")] * 6)
    c.tool("down")
    assert ours(front) == {}


def test_an_internal_balancer_has_no_clients_outside(front, tmp_path):
    """It is reached by private addresses alone."""
    c = Cloud(front, tmp_path, more="      loadBalancer: nlb-internal\n      access: {api: []}", pools=SMALL)
    c.tool("up")
    assert ways_in(front, "balancer") == {(6443, "10.32.0.0/16")} and balancer(front)["SecurityGroups"] == [group_of(front, "balancer")["GroupId"]]
    c.edit("loadBalancer: nlb-internal", "loadBalancer: none")  # it is there until `down`, and its group with it
    assert c.tool("survey")[-1] == {"changes": False}
    c.tool("down")


def test_a_balancer_without_a_group(front, tmp_path):
    """One of an earlier slipway: AWS gives it none later. The plan says so if access.api would need one; made anew, it has one."""
    ec2, elb = client(front, "ec2"), client(front, "elbv2")
    c = Cloud(front, tmp_path, more="      access: {api: [192.0.2.0/24]}", pools=SMALL)
    c.tool("up")
    old, group = balancer(front), elb.describe_target_groups(Names=["slipway-abcde"])["TargetGroups"][0]["TargetGroupArn"]
    elb.delete_load_balancer(LoadBalancerArn=old["LoadBalancerArn"])
    ec2.delete_security_group(GroupId=group_of(front, "balancer")["GroupId"])
    made = elb.create_load_balancer(Name="slipway-abcde", Type="network", Scheme="internet-facing", Subnets=[z["SubnetId"] for z in old["AvailabilityZones"]])["LoadBalancers"][0]["LoadBalancerArn"]
    elb.create_listener(LoadBalancerArn=made, Protocol="TCP", Port=6443, DefaultActions=[{"Type": "forward", "TargetGroupArn": group}])
    words = "load balancer slipway-abcde was made without a security group: access.api has no effect on it"
    front.log, front.made = [], []
    said = c.tool("survey")
    assert lines(said) == [words] and said[-1] == {"changes": False} and calls(front) <= CALLS_MOST, said
    c.tool("up")
    assert front.made == [] and "balancer" not in ours(front)["group"]
    # open to everybody: nothing is said but the rules of the control plane's group, and nothing about the balancer
    c.edit("api: [192.0.2.0/24]", "ssh: [0.0.0.0/0]")
    assert words not in lines(c.tool("survey"))
    c.tool("up")
    said = c.tool("survey")
    assert lines(said) == [] and said[-1] == {"changes": False} and "balancer" not in ours(front)["group"], said
    # deleted by hand
    elb.delete_load_balancer(LoadBalancerArn=made)
    c.edit("ssh: [0.0.0.0/0]", "api: [192.0.2.0/24]")
    c.tool("up")
    assert balancer(front)["SecurityGroups"] == [group_of(front, "balancer")["GroupId"]] and (6443, "192.0.2.0/24") in ways_in(front, "balancer")
    assert c.tool("survey")[-1] == {"changes": False}
    c.tool("down")
    assert ours(front) == {}


def test_bastion(front, tmp_path):
    """Made with a public address and a group of its own, found again, made again, and no node."""
    ec2 = client(front, "ec2")
    c = Cloud(front, tmp_path, more=BASTION, pools=SMALL)
    assert {m["bastion"] for m in c.machines().values()} == {"bastion.invalid"}
    said = c.tool("up")
    assert any(line.get("line", "").startswith("bastion: t3.micro (") for line in said), said
    made, = c.tool("bastion")
    nodes = c.machines()
    assert made["state"] == "running" and made["user"] == "jump" and made["zone"] == "eu-central-1a" and "bastion" not in nodes and not c.tool("others")
    assert {(m["bastion"], m["ownBastion"]) for m in nodes.values()} == {(f"jump@{made['host']}", True)} and all(m["host"] == m["ip"] for m in nodes.values())
    # a public subnet, its own group alone, no instance profile, nothing of Kubernetes
    i = ec2.describe_instances(InstanceIds=[made["providerID"].split("/")[-1]])["Reservations"][0]["Instances"][0]
    bastion = group_of(front, "bastion")
    tags = {t["Key"]: t["Value"] for t in i["Tags"]}
    assert made["host"] == i["PublicIpAddress"] and "IamInstanceProfile" not in i
    assert [g["GroupId"] for e in i["NetworkInterfaces"] for g in e["Groups"]] == [bastion["GroupId"]]
    assert tags["slipway.dev/role"] == NODE and tags["slipway.dev/mark"] == "slipway-abcde" and not any(k.startswith("kubernetes.io/") for k in tags)
    subnet = ec2.describe_subnets(SubnetIds=[i["SubnetId"]])["Subnets"][0]
    assert {"Key": "slipway.dev/role", "Value": "public/eu-central-1a"} in subnet["Tags"]
    assert ways_in(front, "bastion") == {(22, "192.0.2.0/24")} and (22, bastion["GroupId"]) in ways_in(front, "nodes")
    run, = (entry[1] for entry in front.log if entry[0] == "RunInstances" and "InstanceType=t3.micro" in entry[1])
    data = base64.b64decode(parse_qs(run)["UserData"][0]).decode()
    assert "jump" in data and "ssh-ed25519 AAAA" in data and "write_files" not in data and "runcmd" not in data and "packages" not in data, data
    # nothing to do
    front.log, front.made = [], []
    assert c.tool("survey")[-1] == {"changes": False} and calls(front) <= CALLS_MOST
    c.tool("up")
    assert front.made == [] and unique(front)
    # deleted, and switched off, behind our back: the same address, and the old key is forgotten
    known = c.state / "known_hosts"
    known.write_text(f"{made['host']} ssh-ed25519 AAAA\n10.32.16.77 ssh-ed25519 BBBB\n")
    ec2.terminate_instances(InstanceIds=[i["InstanceId"]])
    assert c.tool("bastion")[0]["state"] == "absent" and {m["bastion"] for m in c.machines().values()} == {"bastion.invalid"}
    c.tool("up")
    again, = c.tool("bastion")
    assert again["host"] == made["host"] and again["providerID"] != made["providerID"] and known.read_text() == "10.32.16.77 ssh-ed25519 BBBB\n"
    ec2.stop_instances(InstanceIds=[again["providerID"].split("/")[-1]])
    said = c.tool("survey")
    assert {"line": "start the bastion"} in said and said[-1] == {"changes": True}
    c.tool("up")
    assert c.tool("bastion")[0]["state"] == "running" and unique(front)
    c.tool("down")
    assert ours(front) == {}


def test_bastion_goes(front, tmp_path):
    """The file no longer wants it: all of it goes, also after kills; an address instead works as ever."""
    c = Cloud(front, tmp_path, more=BASTION, pools=SMALL)
    c.tool("up")
    whole = counts(front)
    c.edit("{instanceType: t3.micro, user: jump}", "ops@jump.example.net")
    assert not c.tool("bastion") and not c.tool("others") and {(m["bastion"], m["ownBastion"]) for m in c.machines().values()} == {("ops@jump.example.net", False)}
    said = c.tool("survey")
    assert {"line": "delete the bastion"} in said and {"line": "unwanted rules of the security group: 1"} in said, said
    for call in ("RevokeSecurityGroupIngress", "TerminateInstances", "DeleteNetworkInterface", "ReleaseAddress"):  # the group may go at the same time
        if call == "TerminateInstances" and NODE not in ours(front).get("instance", []):
            continue  # and so may the instance: beside the rule, when that takes long
        front.fault(call, "kill after")
        said = c.tool("up", ok=None)
        assert c.status == -9, (call, said[-3:])
    c.tool("up")
    assert counts(front) == {k: n - (k in ("instance", "interface", "address", "group", "volume")) for k, n in whole.items()}
    assert not any(NODE in v or "bastion" in v for v in ours(front).values()) and c.tool("survey")[-1] == {"changes": False}
    c.tool("down")


@pytest.mark.parametrize("call", ["CreateSecurityGroup", "AllocateAddress", "CreateNetworkInterface", "RunInstances"])
def test_bastion_meets_faults(front, tmp_path, call):
    c = Cloud(front, tmp_path, more=BASTION, pools=SMALL)
    front.fault(call, "kill after")
    c.tool("up", ok=None)
    assert c.status == -9
    c.tool("up")
    assert c.tool("bastion")[0]["state"] == "running" and unique(front)
    c.tool("down")


def test_bastion_that_cannot_be(front, tmp_path):
    c = Cloud(front, tmp_path, more=BASTION.replace("t3.micro", "t99.huge").replace("user: jump", "image: ami-00000000000000bad"), pools=SMALL)
    problems = {line["problem"] for line in c.tool("survey", ok=1) if "problem" in line}
    assert {"bastion: AWS has no instance type t99.huge in eu-central-1", "bastion: there is no available AMI ami-00000000000000bad in eu-central-1"} <= problems, problems
    assert front.made == [] or not ours(front)


def test_bastion_and_leaks(front, tmp_path):
    """It belongs to the cluster as long as the file wants it. Its group is in a rule of the nodes' group until `up` takes it away."""
    c = Cloud(front, tmp_path, more=BASTION, pools=SMALL)
    c.slipway("kubeconfig")  # makes the Identity
    c.prefix = json.loads((tmp_path / ".slipway/kraken/identity.json").read_text())["prefix"]
    c.tool("up")
    assert not [x for x in json.loads(c.slipway("leaks", "-o", "json")[0]) if x["ours"]]
    c.edit("{instanceType: t3.micro, user: jump}", "ops@jump.example.net")
    leaks = [x for x in json.loads(c.slipway("leaks", "-o", "json")[0]) if x["ours"]]
    assert sorted((x["kind"], x["name"]) for x in leaks) == [("address", "bastion"), ("instance", "bastion"), ("interface", "bastion"), ("volume", "bastion")]
    c.slipway("leaks", "--delete", "--yes")
    left = ours(front, c.prefix)
    assert not [r for v in left.values() for r in v if r in (NODE, "root/bastion")] and "bastion" in left["group"]
    c.tool("up")
    assert "bastion" not in ours(front, c.prefix)["group"] and c.tool("survey")[-1] == {"changes": False}
    c.tool("down")
    assert ours(front, c.prefix) == {}
