"""moto behind a front that does what moto does not: it computes every signature again with botocore, takes a ClientToken only once, refuses unknown
AMIs, answers quotas, and misbehaves by (action, nth). It logs every call. provider_tool and slipway run against it."""
import importlib.util
import json
import os
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from io import BytesIO
from pathlib import Path
from urllib.parse import parse_qs, urlencode

from harness import CACHE
from upstream import NEWEST

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("PROVIDER_TOOL") or ROOT / "build" / "tests" / "provider" / "provider_tool")
SLIPWAY = Path(os.environ.get("SLIPWAY") or ROOT / "build" / "slipway").resolve()
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "XDG_")) and not k.lower().endswith("_proxy")}
spec = importlib.util.spec_from_file_location("cloud_conftest", ROOT / "tests" / "cloud" / "conftest.py")
cloud = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cloud)
READS = ("Describe", "List", "Get", "ServiceQuotas", "AmazonSSM", "GET ")
REGION = "eu-central-1"
IDS = {"Vpc": "vpcId", "InternetGateway": "internetGatewayId", "Subnet": "subnetId", "RouteTable": "routeTableId", "NatGateway": "natGatewayId", "SecurityGroup": "groupId",
       "NetworkInterface": "networkInterfaceId", "Volume": "volumeId", "Instance": "instanceId", "Address": "allocationId"}
LISTS = {f"Describe{kind}{'es' if kind == 'Address' else 's'}": tag for kind, tag in IDS.items()}
MAKES = {f"Create{kind}": tag for kind, tag in IDS.items()} | {"RunInstances": "instanceId", "AllocateAddress": "allocationId"}


def sized(headers, out):
    return [h for h in headers if h[0].lower() != "content-length"] + [("Content-Length", str(len(out)))]


class AwsFront(cloud.Front):
    """Faults: (status, code, message[, headers]), "drop before", "drop after", "cut" (half of the answer), ("stall", seconds), ("hide", seconds) (what the
    call made is in no list for a while), ("hide and drop", seconds), and "kill before", "kill after" and "kill answered": SIGKILL to the program under test
    before the call reaches moto, after it, or after the answer was sent. Calls that were on their way at that moment meet their own kill too."""

    def __init__(self):
        super().__init__()
        self.clients, self.images = {}, set()
        self.fresh()

    def fresh(self):
        """What a test begins with; moto keeps what it has."""
        self.faults, self.log, self.ahead, self.problems, self.made = {}, [], 0, [], []
        self.tokens, self.quotas, self.hidden, self.process = {}, {}, {}, None
        self.blind = False  # filters, names and paths of lists are ignored
        self.closed = set()  # (action, version) that the account may not use

    def emptied(self):
        """A new account: no VPC of an earlier test counts in the quotas."""
        from moto.moto_api._internal.models import moto_api_backend
        with self.lock:
            moto_api_backend.reset()

    def kill(self):
        if self.process:
            os.kill(self.process, signal.SIGKILL)
            self.process = None

    def unfiltered(self, environ, action, q, body):
        """A list of everything, whatever was asked for."""
        if not self.blind or not action.startswith(("Describe", "List")):
            return body
        body = urlencode([(k, v) for k, vs in q.items() for v in vs if not k.startswith(("Filter.", "Names.", "PathPrefix"))]).encode()
        environ["CONTENT_LENGTH"] = str(len(body))
        return body

    def moto_answer(self, environ, body):
        environ["wsgi.input"] = BytesIO(body)
        began = []
        out = b"".join(self.moto(environ, lambda *a: began.append(a) or (lambda _: None)))
        return began[0][0], list(began[0][1]), out

    def quota(self, body, start):
        asked = json.loads(body)
        if asked["QuotaCode"] not in self.quotas:
            return None
        text = json.dumps({"Quota": {"QuotaCode": asked["QuotaCode"], "ServiceCode": asked["ServiceCode"], "Value": float(self.quotas[asked["QuotaCode"]])}}).encode()
        start("200 OK", sized([("Content-Type", "application/x-amz-json-1.1")], text))
        return [text]

    def twice(self, q):
        """A rule that is twice in one call, which moto takes."""
        rules = {}
        for key, (value, *_) in q.items():
            if key.startswith("IpPermissions.") and not key.endswith(".Description"):
                rules.setdefault(key.split(".")[1], []).append((key.split(".", 2)[2], value))
        seen = [tuple(sorted(rule)) for rule in rules.values()]
        return len(seen) != len(set(seen))

    def known_image(self, q):
        self.images = self.images or {i["ImageId"] for i in client(self, "ec2").describe_images()["Images"]}
        return q["ImageId"][0] in self.images

    def address_is_taken(self, q):
        """moto gives one address to two interfaces."""
        wanted, subnet = q.get("PrivateIpAddress"), [{"Name": "subnet-id", "Values": q["SubnetId"]}]
        return wanted and any(i["PrivateIpAddress"] == wanted[0] for i in client(self, "ec2").describe_network_interfaces(Filters=subnet)["NetworkInterfaces"])

    def without_hidden(self, action, out):
        """The list without rows that are hidden still."""
        self.hidden = {id: until for id, until in self.hidden.items() if until > time.monotonic()}
        if not self.hidden or action not in LISTS:
            return out
        tree = ElementTree.fromstring(out)
        space = tree.tag.partition("}")[0] + "}" if tree.tag.startswith("{") else ""
        ElementTree.register_namespace("", space.strip("{}"))
        for rows in list(tree.iter()):
            for row in list(rows):
                if row.findtext(space + LISTS[action]) in self.hidden and row.tag == space + "item":
                    rows.remove(row)
        return ElementTree.tostring(tree)

    def once(self, environ, action, q, body):
        """What moto answers; one call after the other. A token with the same parameters has the first answer, with others a refusal (None)."""
        token = (q.get("ClientToken") or (q.get("Name", [None]) if action == "CreateLoadBalancer" else [None]))[0]  # its name is unique, and moto makes a second one
        with self.lock:
            if action == "DeleteLoadBalancer":
                self.tokens = {k: v for k, v in self.tokens.items() if k[0] != "CreateLoadBalancer"}
            known = self.tokens.get((action, token)) if token else None
            if known and known[0] != body:
                return None
            answer = known[1] if known else self.moto_answer(environ, self.unfiltered(environ, action, q, body))
            if token and answer[0].startswith("2"):
                self.tokens[action, token] = (body, answer)
        return answer

    def done(self, action, q, out):
        """What moto has done, for clouds that do more; its answer."""
        return out

    def before(self, fault, environ, start):
        """Faults that keep the call from moto; a refusal, or None."""
        kind = fault[0] if isinstance(fault, tuple) else fault
        if isinstance(kind, int):
            return self.refuse(*fault[:3], start, fault[3] if len(fault) > 3 else ())
        if kind == "kill before":
            self.kill()
        if kind == "stall":
            time.sleep(fault[1])
        if kind in ("kill before", "stall", "drop before"):
            self.hang_up(environ)
        return None

    def after(self, fault, environ, action, out):
        """Faults after moto has done it."""
        kind, seconds = fault if isinstance(fault, tuple) else (fault, 0)
        made = re.search(rf"<{MAKES[action]}>([^<]+)<".encode(), out) if action in MAKES else None
        if kind in ("hide", "hide and drop") and made:
            self.hidden[made[1].decode()] = time.monotonic() + seconds
        if kind == "kill after":
            self.kill()
        if kind in ("kill after", "drop after", "hide and drop"):
            self.hang_up(environ)

    def answered(self, out):
        yield out
        time.sleep(0.05)
        self.kill()

    def __call__(self, environ, start):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        q = parse_qs(body.decode(errors="replace"))
        action = (q.get("Action") or [environ.get("HTTP_X_AMZ_TARGET") or f"{environ['REQUEST_METHOD']} {environ['PATH_INFO'].rstrip('/').rsplit('/', 1)[-1]}"])[0]
        fault = self.next(action, (action, body.decode(errors="replace"), environ.get("HTTP_AUTHORIZATION")))
        if bad := self.verify(environ, body):
            return self.refuse(*bad, start)
        if (action, (q.get("Version") or [""])[0]) in self.closed:
            return self.refuse(403, "AccessDenied", f"not authorized to perform: {action}", start)
        if not action.startswith(READS):
            self.made.append(action)
        if refusal := self.before(fault, environ, start):
            return refusal
        if action.endswith("GetServiceQuota") and (said := self.quota(body, start)):
            return said
        if action == "RunInstances" and not self.known_image(q):
            return self.refuse(400, "InvalidAMIID.NotFound", f"The image id '[{q['ImageId'][0]}]' does not exist", start)
        if action == "AuthorizeSecurityGroupIngress" and self.twice(q):
            return self.refuse(400, "InvalidParameterValue", "The same permission must not appear multiple times", start)
        if action == "CreateNetworkInterface" and ("CreateNetworkInterface", q["ClientToken"][0]) not in self.tokens and self.address_is_taken(q):
            return self.refuse(400, "InvalidIPAddress.InUse", "The specified address is already in use.", start)
        if not (answer := self.once(environ, action, q, body)):
            return self.refuse(400, "IdempotentParameterMismatch", "the token was used with other parameters", start)
        status, headers, out = answer
        out = self.done(action, q, out) if status.startswith("2") else out
        self.after(fault, environ, action, out)
        out = self.without_hidden(action, out)
        start(status, sized(headers, out))
        return self.answered(out) if fault == "kill answered" else [out[:len(out) // 2] if fault == "cut" else out]


def client(front, service):
    """boto3's, which is slow to make."""
    import boto3
    from botocore.config import Config
    if service not in front.clients:
        front.clients[service] = boto3.client(service, config=Config(read_timeout=900, retries={"total_max_attempts": 1}), endpoint_url=front.url, region_name=REGION,
                                              aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key=front.KEYS["AKIDEXAMPLE"][0])
    return front.clients[service]


CLUSTER = """apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {{name: kraken}}
spec:
  kubernetes: {kubernetes}
  provider:
    aws:
      region: eu-central-1
      zones: [eu-central-1a, eu-central-1b, eu-central-1c]
      image: {image}
{more}
{spec}
  pools:
{pools}
"""
POOLS = """    - {name: control, roles: [control-plane, etcd], count: 3, instanceType: m5.large, volumes: [{size: 20GiB, type: gp3, mount: /var/lib/etcd}]}
    - {name: worker, count: 2, instanceType: m5.xlarge, spot: true, rootVolume: {size: 30GiB}}"""


class Cloud:
    """One cluster in the cloud of a front."""

    def __init__(self, front, where, more="", pools=POOLS, prefix="abcde", spec=""):
        self.front, self.where, self.prefix, self.state = front, where, prefix, where / "state"
        where.mkdir(exist_ok=True)
        self.image = front.image = getattr(front, "image", None) or client(front, "ec2").describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        self.file = where / "cluster.yaml"
        self.file.write_text(CLUSTER.format(kubernetes=NEWEST, image=self.image, more=more, pools=pools, spec=spec))

    def edit(self, old, new):
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new))

    def env(self):
        return {**CLEAN, **self.front.env(), **({"PROVIDER_PREFIX": self.prefix} if self.prefix else {}), "HOME": str(self.where), "SLIPWAY_CACHE": str(CACHE)}

    def tool(self, *args, ok=0):
        p = subprocess.Popen([TOOL, self.file, self.state, *args], env=self.env(), cwd=self.where, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.front.process = p.pid
        out, err = p.communicate()
        self.front.process = None
        assert ok is None or p.returncode == ok, f"{args}: status {p.returncode}\n{out[-3000:]}\n{err[-3000:]}"
        assert "SECRET" not in out + err and "PRIVATE KEY" not in out + err
        self.status = p.returncode
        return [json.loads(line) for line in out.splitlines() if line.startswith("{") and line.endswith("}")]

    def slipway(self, *args, ok=0):
        """(stdout, stderr) of slipway itself, in a directory of its own."""
        p = subprocess.run([SLIPWAY, *args], env=self.env(), cwd=self.where, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert p.returncode == ok, f"{args}: status {p.returncode}\n{p.stdout}\n{p.stderr}"
        assert "SECRET" not in p.stdout + p.stderr
        return p.stdout, p.stderr

    def machines(self):
        return {m["node"]: m for m in self.tool("list")}


MARK = "slipway.dev/mark"


def ours(front, prefix="abcde"):
    """{kind: [role]} of what moto itself has with the cluster's mark; instances that ended do not count."""
    ec2, elb, iam, r53 = (client(front, s) for s in ("ec2", "elbv2", "iam", "route53"))
    by = [{"Name": f"tag:{MARK}", "Values": [f"slipway-{prefix}"]}]
    role = lambda things: sorted(next((t["Value"] for t in x.get("Tags", x.get("TagSet", [])) if t["Key"] == "slipway.dev/role"), "?") for x in things)  # noqa: E731
    live = [i for r in ec2.describe_instances(Filters=by)["Reservations"] for i in r["Instances"] if i["State"]["Name"] not in ("terminated", "shutting-down")]
    nats = [n for n in ec2.describe_nat_gateways()["NatGateways"] if n["State"] not in ("deleted", "deleting") and {"Key": MARK, "Value": f"slipway-{prefix}"} in n["Tags"]]
    named = lambda list, key: [x[key] for x in list if f"slipway-{prefix}" in x[key]]  # noqa: E731
    records = [r["Name"] for z in r53.list_hosted_zones()["HostedZones"] for r in r53.list_resource_record_sets(HostedZoneId=z["Id"])["ResourceRecordSets"] if r["Type"] == "A"]
    found = {
        "vpc": role(ec2.describe_vpcs(Filters=by)["Vpcs"]), "gateway": role(ec2.describe_internet_gateways(Filters=by)["InternetGateways"]),
        "subnet": role(ec2.describe_subnets(Filters=by)["Subnets"]), "table": role(ec2.describe_route_tables(Filters=by)["RouteTables"]), "nat": role(nats),
        "address": role(ec2.describe_addresses(Filters=by)["Addresses"]), "group": role(ec2.describe_security_groups(Filters=by)["SecurityGroups"]),
        "interface": role(ec2.describe_network_interfaces(Filters=by)["NetworkInterfaces"]), "instance": role(live),
        "volume": role(ec2.describe_volumes(Filters=by)["Volumes"]),
        "balancer": named(elb.describe_load_balancers()["LoadBalancers"], "LoadBalancerName"), "targets": named(elb.describe_target_groups()["TargetGroups"], "TargetGroupName"),
        "role": [r["RoleName"] for r in iam.list_roles(PathPrefix=f"/slipway-{prefix}/")["Roles"]],
        "profile": [r["InstanceProfileName"] for r in iam.list_instance_profiles()["InstanceProfiles"] if r["Path"] == f"/slipway-{prefix}/"],
        "record": records,
    }
    return {k: v for k, v in found.items() if v}
