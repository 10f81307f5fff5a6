"""Kubernetes on provider aws, on machines that boot: moto behind a front that starts a machine for every instance (booting.py), with the address of its
interface and the user-data of the call, and relays the load balancer's listener to its targets."""
import base64
import json
import logging
import os
import re

import pytest
from aws_front import CLEAN, CLUSTER, AwsFront, client, ours
from booting import Booting, OnCloud, long_life, short_life
from harness import CACHE, NEWEST, PREVIOUS, SHARED_DISK

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines on this computer need root")
VPC, BALANCER = "10.190.0.0/16", "10.190.255.10"
POOLS = """    - {{name: control, roles: [control-plane, etcd], count: {}, instanceType: m5.large}}
    - {{name: worker, count: {}, instanceType: m5.large}}"""


class BootingFront(AwsFront):
    balancer = BALANCER  # the address of every load balancer

    def __init__(self, booting):
        super().__init__()
        self.booting, self.hosts = booting, None
        for service in ("ec2", "elbv2", "iam", "route53"):
            client(self, service)  # made here: they are asked in several threads

    def done(self, action, q, out):
        ids = [v[0] for k, v in q.items() if k.startswith("InstanceId")]
        if action == "RunInstances":
            self.boot(re.search(rb"<instanceId>([^<]+)<", out)[1].decode(), q)
        elif action in ("TerminateInstances", "StopInstances", "StartInstances"):
            for id in ids:
                {"T": self.booting.remove, "Sto": self.booting.off, "Sta": self.booting.on}[action[:1 if action[0] == "T" else 3]](id)
        elif action == "CreateListener":
            self.balance(q["LoadBalancerArn"][0], int(q["Port"][0]), q["DefaultActions.member.1.TargetGroupArn"][0])
        elif action == "DeleteLoadBalancer":
            self.booting.unbalance(q["LoadBalancerArn"][0])
        elif action == "GetConsoleOutput":
            text = base64.b64encode(self.booting.console(ids[0])[-65536:].encode())
            return re.sub(rb"<output>[^<]*<", b"<output>" + text + b"<", out)
        return out

    def boot(self, id, q):
        if id in self.booting.at:  # the answer to the same token
            return
        ec2 = client(self, "ec2")
        interface = ec2.describe_network_interfaces(NetworkInterfaceIds=q["NetworkInterface.1.NetworkInterfaceId"])["NetworkInterfaces"][0]
        subnet = ec2.describe_subnets(SubnetIds=[interface["SubnetId"]])["Subnets"][0]["CidrBlock"]
        self.booting.boot(id, interface["PrivateIpAddress"], subnet, interface["MacAddress"], base64.b64decode(q["UserData"][0]))

    def balance(self, arn, port, group):
        elb = client(self, "elbv2")
        name = elb.describe_load_balancers(LoadBalancerArns=[arn])["LoadBalancers"][0]["DNSName"]
        self.hosts.write_text(f"127.0.0.1 localhost\n{self.balancer} {name}\n")
        self.booting.balance(arn, self.balancer, port, lambda: [
            (t["Target"]["Id"], t["Target"]["Port"]) for t in elb.describe_target_health(TargetGroupArn=group)["TargetHealthDescriptions"]])


class Aws:
    """moto, as OnCloud asks it."""

    def __init__(self, booting, front=BootingFront):
        self.front = front(booting)
        self.dir = booting.dir
        ec2 = client(self.front, "ec2")
        self.image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        theirs = ec2.create_vpc(CidrBlock=str(booting.network))["Vpc"]["VpcId"]
        second = str([*booting.network.subnets(new_prefix=20)][1])
        ec2.create_network_interface(SubnetId=ec2.create_subnet(VpcId=theirs, CidrBlock=second)["Subnet"]["SubnetId"])

    def env(self):
        return {**CLEAN, **self.front.env(), "HOME": str(self.dir), "SLIPWAY_CACHE": str(CACHE)}

    def instances(self):
        found = [i for r in client(self.front, "ec2").describe_instances()["Reservations"] for i in r["Instances"] if i["State"]["Name"] == "running"]
        return {next(t["Value"] for t in i["Tags"] if t["Key"] == "slipway.dev/role").removeprefix("node/"): i for i in found}

    def servers(self):
        return {name: {"id": i["InstanceId"], "address": i["PrivateIpAddress"], "zone": i["Placement"]["AvailabilityZone"],
                       "provider": f"aws:///{i['Placement']['AvailabilityZone']}/{i['InstanceId']}"} for name, i in self.instances().items()}

    def delete(self, name):
        client(self.front, "ec2").terminate_instances(InstanceIds=[self.servers()[name]["id"]])

    def stop(self, name):
        client(self.front, "ec2").stop_instances(InstanceIds=[self.servers()[name]["id"]])

    def ours(self, prefix):
        return ours(self.front, prefix)

    def listing(self):
        """All that lists have, of everybody; but for the interface of a NAT gateway, which moto keeps when gateway and VPC are gone."""
        ec2, elb = client(self.front, "ec2"), client(self.front, "elbv2")
        live = [i for r in ec2.describe_instances()["Reservations"] for i in r["Instances"] if i["State"]["Name"] != "terminated"]
        vpcs = ec2.describe_vpcs()["Vpcs"]
        interfaces = [i for i in ec2.describe_network_interfaces()["NetworkInterfaces"] if i["VpcId"] in {v["VpcId"] for v in vpcs}]
        nats = [n for n in ec2.describe_nat_gateways()["NatGateways"] if n["State"] != "deleted"]
        return json.dumps([live, nats, vpcs, interfaces, ec2.describe_subnets()["Subnets"],
                           ec2.describe_security_groups()["SecurityGroups"], ec2.describe_volumes()["Volumes"], ec2.describe_addresses()["Addresses"],
                           ec2.describe_route_tables()["RouteTables"], ec2.describe_internet_gateways()["InternetGateways"],
                           elb.describe_load_balancers()["LoadBalancers"], elb.describe_target_groups()["TargetGroups"]], default=str, sort_keys=True)


def cluster(booting, cloud, control, worker, kubernetes=NEWEST):
    text = CLUSTER.format(kubernetes=kubernetes, image=cloud.image, more=f"      vpc: {{cidr: {VPC}}}", pools=POOLS.format(control, worker), spec=SHARED_DISK)
    c = OnCloud(booting, cloud, text)
    cloud.front.hosts = c.hosts
    return c


@pytest.fixture
def cloud():
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    with Booting("aws", VPC, "NoCloud") as booting:
        a = Aws(booting)
        yield booting, a
        a.front.server.shutdown()
        assert not a.front.problems  # signatures


def test_life(cloud):
    short_life(cluster(*cloud, 1, 1))


@pytest.mark.soak
def test_long_life(cloud):
    long_life(cluster(*cloud, 3, 2, PREVIOUS))
