"""AWS's cloud controller manager, as upstream has it, with slipway's flags, permissions and cloud.conf: against a real API server and moto. It runs on a
machine that slipway made there, as its metadata say: who it is, and the credentials of its instance profile. It initialises nodes,
makes load balancers for Services and deletes them, deletes Nodes whose instances are gone, and what it leaves behind is swept by `down`.

moto checks no policy: the calls are compared with the actions of the role. Its load balancers carry no traffic, have no health and no network interfaces;
what it lacks and the controller asks for is in Region."""
import json
import logging
import re
import threading
import time
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from aws_front import REGION, AwsFront, Cloud, client, ours
from controllers import api, ended, get, initialised, node, ready, run, served, service, taints, unrefused, until  # noqa: F401
from test_aws import SMALL, front  # noqa: F401

pytestmark = pytest.mark.soak
OWNER = "kubernetes.io/cluster/kraken-abcde"
KEY, SECRET, TOKEN = "ASIANODE", "SECRETofTheInstanceProfile", "a-token-of-the-session"
NLB = {"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"}
NO_TOPOLOGY = b"<DescribeInstanceTopologyResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><instanceSet/></DescribeInstanceTopologyResponse>"


class Region(AwsFront):
    """What moto lacks and the controller asks for."""

    def __init__(self):
        super().__init__()
        for name in ("ec2", "elb"):
            client(self, name)  # made here: they are asked in several threads

    def once(self, environ, action, q, body):
        if action == "DescribeInstanceTopology":  # common types have none
            return "200 OK", [("Content-Type", "text/xml")], NO_TOPOLOGY
        return super().once(environ, action, q, body)

    def done(self, action, q, out):
        if action == "CreateLoadBalancer" and "LoadBalancerName" in q:  # a classic one has a health check from the start, which the controller compares with its own
            client(self, "elb").configure_health_check(LoadBalancerName=q["LoadBalancerName"][0], HealthCheck={
                "Target": f"TCP:{q['Listeners.member.1.InstancePort'][0]}", "Interval": 30, "Timeout": 5, "UnhealthyThreshold": 2, "HealthyThreshold": 10})
        elif action == "RunInstances":  # its groups are those of its interface
            ec2, id = client(self, "ec2"), re.search(rb"<instanceId>([^<]+)<", out)[1].decode()
            interface, = ec2.describe_network_interfaces(NetworkInterfaceIds=q["NetworkInterface.1.NetworkInterfaceId"])["NetworkInterfaces"]
            ec2.modify_instance_attribute(InstanceId=id, Groups=[g["GroupId"] for g in interface["Groups"]])
        return out


class InstanceMetadata(BaseHTTPRequestHandler):
    """Version 2 alone, as slipway's machines have it."""

    def log_message(self, *_):
        pass

    def say(self, status, text=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("X-aws-ec2-metadata-token-ttl-seconds", "21600")
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        self.say(*(200, "a-token-of-metadata") if self.path == "/latest/api/token" else (404,))

    def do_GET(self):
        if self.headers.get("X-aws-ec2-metadata-token") != "a-token-of-metadata":
            return self.say(401)
        path = self.path.rstrip("/")
        return self.say(200, self.server.known[path]) if path in self.server.known else self.say(404)


@pytest.fixture
def metadata():
    """url, and known: {path: text}"""
    http = ThreadingHTTPServer(("127.0.0.1", 0), InstanceMetadata)
    http.daemon_threads, http.known, http.url = True, {}, f"http://127.0.0.1:{http.server_port}"
    threading.Thread(target=http.serve_forever, args=[0.05], daemon=True).start()
    yield http
    http.shutdown()
    http.server_close()


@pytest.fixture(scope="module")
def server():
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    f = Region()
    yield f
    f.server.shutdown()


def instance(machine):
    return machine["providerID"].rpartition("/")[2]


def runs_on(front, machine):  # noqa: F811
    """{path: text}: metadata of a machine and the session of its instance profile."""
    i, = client(front, "ec2").describe_instances(InstanceIds=[instance(machine)])["Reservations"][0]["Instances"]
    role = i["IamInstanceProfile"]["Arn"].rpartition("/")[2]
    front.keys[KEY] = (SECRET, TOKEN)
    session = {"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": "2026-01-01T00:00:00Z", "AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": TOKEN,
               "Expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 6 * 3600))}
    return {"/latest/meta-data/instance-id": i["InstanceId"], "/latest/dynamic/instance-identity/document": json.dumps({"region": REGION, "instanceId": i["InstanceId"]}),
            "/latest/meta-data/iam/security-credentials": role, f"/latest/meta-data/iam/security-credentials/{role}": json.dumps(session)}


def balancers(front):  # noqa: F811
    """({DNS name: classic load balancer}, {DNS name: network load balancer}) with the cluster's tag, and no others but slipway's own."""
    elb, v2 = client(front, "elb"), client(front, "elbv2")
    classic = {b["DNSName"]: b for b in elb.describe_load_balancers()["LoadBalancerDescriptions"]}
    network = {b["DNSName"]: b for b in v2.describe_load_balancers()["LoadBalancers"] if b["LoadBalancerName"] != "slipway-abcde"}
    tags = [t["Tags"] for name in (b["LoadBalancerName"] for b in classic.values()) for t in elb.describe_tags(LoadBalancerNames=[name])["TagDescriptions"]]
    tags += [t["Tags"] for b in network.values() for t in v2.describe_tags(ResourceArns=[b["LoadBalancerArn"]])["TagDescriptions"]]
    assert all({"Key": OWNER, "Value": "owned"} in t for t in tags), tags
    return classic, network


def groups(front):  # noqa: F811
    """Security groups of Services, by their names."""
    return {g["GroupName"]: g for g in client(front, "ec2").describe_security_groups()["SecurityGroups"] if g["GroupName"].startswith("k8s-elb-")}


def rules(front, group):  # noqa: F811
    return client(front, "ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]


def allowed_in(front, group):  # noqa: F811
    """Groups that may reach what is in this group."""
    return {p["GroupId"] for rule in rules(front, group) for p in rule["UserIdGroupPairs"]}


def role_of_control(front):  # noqa: F811
    iam = client(front, "iam")
    role, = [r["RoleName"] for r in iam.list_roles(PathPrefix="/slipway-abcde/")["Roles"]]
    statement, = iam.get_role_policy(RoleName=role, PolicyName="slipway")["PolicyDocument"]["Statement"]
    return statement["Action"]


def asked(front):  # noqa: F811
    """{service:Action} that the controller called."""
    by_it = [(action, auth) for action, _, auth in front.log if auth and f"Credential={KEY}/" in auth]
    return {f"{auth.partition('/aws4_request')[0].rpartition('/')[2]}:{action}" for action, auth in by_it}


@pytest.fixture
def cluster(front, tmp_path):  # noqa: F811
    c = Cloud(front, tmp_path / "cluster", more="      iam: {control: managed}\n      cloud: {controller: true}",
              pools=SMALL + "\n    - {name: worker, count: 3, instanceType: m5.large}")
    yield c
    c.tool("down")


def test_controller(front, cluster, api, metadata, tmp_path):  # noqa: F811
    ec2, child = client(front, "ec2"), None
    cluster.tool("up")
    machines = cluster.machines()
    metadata.known.update(runs_on(front, machines["control-1"]))
    env = {"AWS_ENDPOINT_URL": front.url, "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url}  # the computer's and the cloud's own names for both; nothing else
    try:
        for name, machine in machines.items():
            node(api, name, machine)
        conf, = cluster.tool("conf")
        child, log = run(api, cluster.slipway("addons", "aws-cloud-controller")[0], "aws-cloud-controller-manager", conf, tmp_path, env)

        # it initialises nodes
        for name, machine in machines.items():
            n = until(f"node {name} is initialised", lambda: initialised(api, name), child, log)
            labels = n["metadata"]["labels"]
            assert n["spec"]["providerID"] == machine["providerID"] and {"type": "InternalIP", "address": machine["ip"]} in n["status"]["addresses"]
            assert (labels["topology.kubernetes.io/zone"], labels["topology.kubernetes.io/region"], labels["node.kubernetes.io/instance-type"]) == (machine["zone"], REGION, "m5.large")
        assert [machines[f"worker-{i}"]["zone"][-1] for i in (1, 2, 3)] == ["a", "b", "c"]

        # and makes load balancers in the public subnets, of both kinds; the classic one has a group that the nodes' group admits
        workers = {instance(machines[f"worker-{i}"]) for i in (1, 2, 3)}
        for i in (1, 2, 3):
            ready(api, f"worker-{i}", "True")
        for name, kind in (("web", {}), ("left", {}), ("web-nlb", NLB), ("left-nlb", NLB)):
            service(api, name, **kind)
        at = {name: until(f"Service {name} has an address", lambda: served(api, name), child, log)[0]["hostname"] for name in ("web", "left", "web-nlb", "left-nlb")}
        classic, network = balancers(front)
        assert set(classic) == {at["web"], at["left"]} and set(network) == {at["web-nlb"], at["left-nlb"]}
        public = {s["SubnetId"] for s in ec2.describe_subnets(Filters=[{"Name": "tag:kubernetes.io/role/elb", "Values": ["1"]}, {"Name": f"tag:{OWNER}", "Values": ["owned"]}])["Subnets"]}
        assert len(public) == 3 and all(set(b["Subnets"]) == public for b in classic.values())
        assert all({z["SubnetId"] for z in b["AvailabilityZones"]} == public for b in network.values())
        nodes, = ec2.describe_security_groups(Filters=[{"Name": f"tag:{OWNER}", "Values": ["owned"]}, {"Name": "tag:slipway.dev/role", "Values": ["nodes"]}])["SecurityGroups"]

        def behind(name):
            return {i["InstanceId"] for i in balancers(front)[0][at[name]]["Instances"]}
        until("the workers are behind it", lambda: behind("left") >= workers, child, log)
        assert len(groups(front)) == 2 and {g["GroupId"] for g in groups(front).values()} <= allowed_in(front, nodes["GroupId"])

        assert any(r.get("Description", "").startswith("kubernetes.io/rule/nlb/client=") for p in rules(front, nodes["GroupId"]) for r in p["IpRanges"])
        assert cluster.tool("survey")[-1] == {"changes": False}  # rules of the controller in slipway's group are its own

        # a Service that is deleted has none
        for name in ("web", "web-nlb"):
            assert api.kubectl("delete", "service", name, "--wait=false").returncode == 0
        for name in ("web", "web-nlb"):
            until(f"Service {name} is gone", lambda: get(api, f"/api/v1/namespaces/default/services/{name}") is None, child, log)
        classic, network = balancers(front)
        assert set(classic) == {at["left"]} and set(network) == {at["left-nlb"]}
        assert len(groups(front)) == 1 and {g["GroupId"] for g in groups(front).values()} <= allowed_in(front, nodes["GroupId"])

        # a Node goes with its instance, and keeps while it is only stopped
        ec2.terminate_instances(InstanceIds=[instance(machines["worker-2"])])
        ec2.stop_instances(InstanceIds=[instance(machines["worker-3"])])
        for i in (2, 3):
            ready(api, f"worker-{i}", "Unknown")
        until("the Node is deleted", lambda: get(api, "/api/v1/nodes/worker-2") is None, child, log)
        until("the Node is tainted", lambda: "node.cloudprovider.kubernetes.io/shutdown" in taints(api, "worker-3"), child, log)
        until("it is behind no load balancer", lambda: instance(machines["worker-2"]) not in behind("left"), child, log)
        assert {n["metadata"]["name"] for n in get(api, "/api/v1/nodes")["items"]} == {"control-1", "worker-1", "worker-3"}

        unrefused(child, log)
        said, rights = asked(front), role_of_control(front)
        assert {"ec2:DescribeInstances", "ec2:CreateSecurityGroup", "ec2:AuthorizeSecurityGroupIngress", "elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing:RegisterTargets"} <= said
        assert not {call for call in said if not any(fnmatchcase(call, right) for right in rights)}
    finally:
        ended(child)
    # what it left behind goes with the cluster
    cluster.tool("down")
    assert ours(front) == {} and balancers(front) == ({}, {}) and not groups(front) and not client(front, "elbv2").describe_target_groups()["TargetGroups"]
